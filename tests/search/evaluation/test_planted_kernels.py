"""Metal kernels on the simulator: planted mistakes that must be caught, and right kernels of unusual shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from profiles.hardware import load_profile
from search.devices.registry import open_device
from search.evaluation.judge import evaluate
from search.evaluation.limits import Limits
from search.kernels.program import Buffer, Pass, Program


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


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
WRITE = "for (uint c = t; c < N; c += 64) { y["

PLANTED = {
    "the last element of a row is left out of the sum": ("c < N; c += 64) { sum", "c < N - 1; c += 64) { sum"),
    "the last element of a row is not written": (WRITE, WRITE.replace("c < N", "c + 1 < N")),
    "one element too many is written": (WRITE, WRITE.replace("c < N", "c <= N")),
    "everything is written one place on": ("y[row * N + c]", "y[row * N + c + 1]"),
    "no barrier anywhere": (BARRIER, ""),
    "half-precision sum": ("float sum = 0;", "half sum = 0;"),
    "some elements are skipped": (WRITE, WRITE + "0]; if (c % 97 == 5) { continue; } y["),
    "zeros": ("T((float(x[row * N + c]) - mean) * gain)", "T(0)"),
    "the input handed through": ("(float(x[row * N + c]) - mean) * gain", "float(x[row * N + c])"),
    "the scalar ignored": (" * gain", ""),
    "the tree one level short": ("reach > 0", "reach > 1"),
    "a stride that misses elements": ("c += 64) { sum", "c += 65) { sum"),
    "the wrong row": ("row = threadgroup_position_in_grid.x", "row = threadgroup_position_in_grid.x ^ 1"),
    "division by the wrong length": ("/ N", "/ (N + 1)"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_caught(judge, program, source, fault: str):
    found = judge(program(changed(source, *PLANTED[fault])))
    assert found.failure is not None, fault
    assert found.failure.stage in ("correctness", "bounds", "nondeterministic", "race"), found.failure
    assert found.times == ()


def test_a_grid_in_blocks_instead_of_threads_is_caught(judge, program):
    found = judge(program(grid="rows"))
    assert (found.failure.stage, found.failure.line) == ("uninitialised", 8)
    assert "which no thread of its threadgroup has written" in found.failure.message


def test_a_write_past_the_end_names_the_array(judge, program, source):
    found = judge(program(changed(source, "y[row * N + c]", "y[row * N + c + 1]")))
    assert found.failure.stage in ("bounds", "correctness")
    if found.failure.stage == "bounds":
        assert "y" in found.failure.message


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


SIMD = """uint row = thread_position_in_grid.x / 32, lane = thread_index_in_simdgroup;
if (row >= uint(x_shape[0])) { return; }
float sum = 0;
for (uint c = lane; c < N; c += 32) { sum += float(x[row * N + c]); }
float mean = simd_sum(sum) / N;
for (uint c = lane; c < N; c += 32) { y[row * N + c] = T((float(x[row * N + c]) - mean) * gain); }
"""
STRIDED = """for (uint row = thread_position_in_grid.x; row < uint(x_shape[0]); row += threads_per_grid.x) {
  float sum = 0;
  for (uint c = 0; c < N; ++c) { sum += float(x[row * N + c]); }
  for (uint c = 0; c < N; ++c) { y[row * N + c] = T((float(x[row * N + c]) - sum / N) * gain); }
}
"""


@pytest.mark.parametrize(
    ("source", "grid"),
    [
        (SIMD, "32 * rows"),
        (SIMD, "64 * ceildiv(rows, 2)"),
        (STRIDED, "1"),
        (STRIDED, "rows"),
        (STRIDED, "rows + 100"),
    ],
)
def test_right_kernels_of_unusual_shape_are_not_refused(judge, program, source: str, grid: str):
    found = judge(program(source, grid=grid))
    assert found.failure is None


def test_two_passes_with_a_buffer_between_are_judged_as_one(judge):
    mean = Pass(
        name="mean",
        inputs=("x",),
        outputs=("means",),
        source="uint row = thread_position_in_grid.x;\nfloat sum = 0;\n"
        "for (uint c = 0; c < N; ++c) { sum += float(x[row * N + c]); }\nmeans[row] = sum / N;",
        grid=("rows", "1", "1"),
        threadgroup=("32", "1", "1"),
        template=(("N", "n"),),
    )
    apply = Pass(
        name="apply",
        inputs=("x", "means", "gain"),
        outputs=("y",),
        source="uint i = thread_position_in_grid.x;\ny[i] = T((float(x[i]) - means[i / N]) * gain);",
        grid=("rows * n", "1", "1"),
        threadgroup=("256", "1", "1"),
        template=(("T", "T"), ("N", "n")),
    )
    found = judge(Program((mean, apply), (Buffer("means", ("rows",), "float32"),)))
    assert found.failure is None
    wrong = Pass(**{**mean.__dict__, "source": re.sub(r"c < N", "c < N - 1", mean.source)})
    found = judge(Program((wrong, apply), (Buffer("means", ("rows",), "float32"),)))
    assert found.failure.stage == "correctness"
