"""Each CUDA file in Metal computes what its original does, at any size; the rest is refused, with the reason."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from profiles.hardware import load_profile
from search.evaluation.proof import Both, prove
from search.evaluation.trial_sizes import admitted, repair
from tests.corpus.cuda.test_originals import CASES, HERE, RETURNS_BEFORE_A_BARRIER
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import read_launches
from translator.metal_writer import write_metal

PROFILE = load_profile("apple-m3-max")
TRANSLATED = [name for name, case in CASES.items() if case["translates"]]
REFUSED = [name for name, case in CASES.items() if not case["translates"]]
BY_TURNS = TRANSLATED[::8]
"""What meets shapes that hypothesis draws in every run; the others do so in the slow tests."""


@cache
def both(name: str) -> Both:
    """Return a file's original and its translation, made without any help."""
    source = parse_cuda((HERE / CASES[name]["file"]).read_text(), CASES[name]["file"])
    plan = read_launches(source)
    assert not plan.questions, [question.message for question in plan.questions]
    translation = write_metal(source, plan)
    assert not translation.refusals, [str(refusal) for refusal in translation.refusals]
    return Both(plan, device_text(source), translation)


def proven(name: str, *sizes: dict[str, int]) -> None:
    """Check that both compute the same at each size, with no fault in either."""
    for trial in prove(both(name), PROFILE, sizes):
        assert not trial.skipped, trial
        assert not trial.difference, trial
        assert not [report for report in trial.translated if report.certain], trial
        assert name in RETURNS_BEFORE_A_BARRIER or not trial.original, trial
        assert trial.compared, trial


def test_most_of_the_corpus_translates() -> None:
    assert len(TRANSLATED) >= 38


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translation_computes_what_the_original_does(name: str) -> None:
    axes = both(name).plan.axes
    proven(name, *({axis: size[axis] for axis in axes} for size in CASES[name]["sizes"]))


def _at_drawn_sizes(name: str, data: st.DataObject) -> None:
    plan = both(name).plan
    axes = {axis: data.draw(st.integers(1, 200), label=axis) for axis in plan.axes}
    repair(plan, axes, frozenset())
    assume(admitted(plan, axes))
    proven(name, axes)


_FEW = settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
_MANY = settings(_FEW, max_examples=15)


@pytest.mark.parametrize("name", BY_TURNS)
@_FEW
@given(data=st.data())
def test_it_does_so_at_sizes_that_nobody_chose(name: str, data: st.DataObject) -> None:
    _at_drawn_sizes(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSLATED)
@_MANY
@given(data=st.data())
def test_it_does_so_at_many_sizes(name: str, data: st.DataObject) -> None:
    _at_drawn_sizes(name, data)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_translation_is_refused_with_the_reason(name: str) -> None:
    case = CASES[name]
    source = parse_cuda((HERE / case["file"]).read_text(), case["file"])
    plan = read_launches(source)
    said = [question.message for question in plan.questions]
    if not said:
        said = [str(refusal) for refusal in write_metal(source, plan).refusals]
    assert any(case["reason"].casefold() in sentence.casefold() for sentence in said), said
