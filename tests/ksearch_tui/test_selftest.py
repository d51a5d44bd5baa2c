"""What `doctor --selftest` prints, on a list of a few kernels."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import pytest

from ksearch_tui.headless import selftest as command
from search.evaluation.selftest.planted import Kernel, load_kernels


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """A kernel with three faults of its list: a missing barrier, a sum in half, a wrong stride."""
    monkeypatch.setenv("KSEARCH_CACHE", str(tmp_path_factory.getbasetemp() / "selftest-cache"))
    tiled = next(kernel for kernel in load_kernels() if kernel.name == "matmul/tiled")
    wanted = ("no second barrier", "the sum is kept in half", "right is read as its transpose")
    return replace(tiled, faults=tuple(fault for fault in tiled.faults if fault.name in wanted))


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *kernels: Kernel, json: bool = False):
    monkeypatch.setattr(command, "load_kernels", lambda: kernels)
    code = command.selftest(argparse.Namespace(json=json))
    return code, capsys.readouterr().out


def test_it_prints_how_many_were_caught_and_how_many_falsely_refused(kernel, monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, kernel)
    assert code == 0
    assert "planted faults   3 of 3 caught, in 1 kernels" in out
    assert "synchronization  1 of 1" in out and "boundary         0 of 0" in out
    assert "caught by        correctness 2, race 1" in out
    assert "right kernels    0 of 1 falsely refused" in out


def test_it_names_every_kernel_that_went_wrong_and_fails(kernel, monkeypatch, capsys):
    harmless = replace(kernel.faults[0], name="harmless", replace=kernel.faults[0].find + "\n")
    refused = replace(
        kernel, name="matmul/wrong", text=kernel.text.replace("col] = half(sum)", "col] = half(0)"), faults=()
    )
    code, out = run(monkeypatch, capsys, replace(kernel, faults=(harmless,)), refused)
    assert code == 1
    assert "planted faults   0 of 1 caught" in out
    assert "right kernels    1 of 2 falsely refused" in out
    assert f"✗ matmul/tiled: harmless: passed: {harmless.what}" in out
    assert "✗ matmul/wrong: falsely refused at correctness: " in out


def test_as_json_it_has_every_verdict(kernel, monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, kernel, json=True)
    found = json.loads(out)
    assert code == 0
    assert (found["planted"], found["caught"], found["right"], found["falsely_refused"]) == (3, 3, 1, 0)
    stages = {entry["name"]: entry["stage"] for entry in found["verdicts"]}
    assert stages["matmul/tiled"] == "" and stages["matmul/tiled: no second barrier"] == "race"
