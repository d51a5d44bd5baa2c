"""``ksearch-tui briefing``: the text on stdout, what is said about it on stderr."""

from __future__ import annotations

import pytest

from ksearch_tui.cli import main


def test_the_briefing_goes_to_stdout_and_its_length_to_stderr(capsys):
    assert main(["briefing", "softmax", "--profile", "apple-m1"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("# A Metal kernel for MLX: Softmax over rows\n")
    assert "Apple M1" in told.out
    assert "tokens, for apple-m1" in told.err and "tokens" not in told.out


def test_the_mapping_can_be_had_alone(capsys):
    assert main(["briefing", "softmax", "--context", "mapping"]) == 0
    told = capsys.readouterr().out
    assert "simd_shuffle_xor" in told and "KiB a threadgroup" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softmaxx"], "did you mean 'softmax'?"),
        (["softmax", "--profile", "apple-m3-maxx"], "did you mean 'apple-m3-max'?"),
    ],
)
def test_a_name_that_is_not_there_is_wrong_usage(capsys, arguments, message):
    assert main(["briefing", *arguments]) == 2
    assert message in capsys.readouterr().err
