"""What the judge says of Metal kernels on the simulator: which stage, which line, which words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from profiles.hardware import load_profile
from search.devices.registry import open_device
from search.evaluation.judge import evaluate
from search.evaluation.limits import Limits
from search.kernels.program import Program


@pytest.fixture(scope="module")
def simulator() -> Iterator[object]:
    device = open_device("simulator", load_profile("apple-m3-max"))
    yield device
    device.close()


@pytest.fixture
def judge(simulator, centre):
    def run(candidate: Program):
        profile = load_profile("apple-m3-max")
        return evaluate(candidate, centre, simulator, profile, seed=1, limits=Limits(run=2.0))

    return run


def changed(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


def test_a_right_kernel_is_proven_and_timed_as_modelled(judge, program):
    found = judge(program())
    assert found.failure is None
    assert (found.outcome, found.kind, found.on) == ("passed", "modelled", "apple-m3-max")
    (taken,) = found.times
    assert taken.seconds >= taken.roofline_seconds > 0
    assert taken.bound_by in taken.terms


def test_a_grid_in_blocks_instead_of_threads_is_caught(judge, program):
    found = judge(program(grid="rows"))
    assert (found.failure.stage, found.failure.line) == ("uninitialised", 8)
    assert "which no thread of its threadgroup has written" in found.failure.message


def test_a_write_past_the_end_names_the_array(judge, program, source):
    found = judge(program(changed(source, "y[row * N + c]", "y[row * N + c + 1]")))
    assert (found.failure.stage, found.failure.line) == ("bounds", 12)
    assert "writes y[650] in line 12; the array has 650 elements (5x130)" in found.failure.message


def test_an_endless_loop_ends_at_the_limit(judge, program, source):
    endless = changed(source, "float mean", "for (uint i = 1; i != 0; i |= 1) { y[0] = T(i); } float mean")
    found = judge(program(endless))
    assert (found.failure.stage, found.failure.pass_name) == ("timeout", "centre")
    assert found.elapsed_seconds < 10


def test_a_compile_error_has_the_line_of_the_kernels_own_source(judge, program, source):
    found = judge(program(changed(source, "float mean = partial[0] / N;", "float mean = partal[0] / N;")))
    assert (found.failure.stage, found.failure.pass_name, found.failure.line) == ("compile", "centre", 11)
    assert "partal" in found.failure.message


def test_a_wild_pointer_fails_the_kernel_and_not_the_judge(judge, program, source):
    wild = changed(source, "float mean", "*(device float*)(ulong(8)) = 1.0f; float mean")
    assert judge(program(wild)).failure.stage in ("bounds", "crash", "compile")
    assert judge(program()).passed
