"""The judge on a real Apple GPU, where there is one: what the tests without one can't reach is Apple's compiler."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import pytest

from profiles.detect import local_profile
from profiles.hardware import load_profile
from search.devices.metal import MetalDevice
from search.evaluation.judge import evaluate
from search.evaluation.record import Evaluation
from search.kernels.program import Program
from search.problems.definition import Problem

pytestmark = pytest.mark.skipif(not mx.metal.is_available(), reason="needs an Apple GPU")


@pytest.fixture
def metal() -> Iterator[MetalDevice]:
    device = MetalDevice()
    yield device
    device.close()


def judge(candidate: Program, problem: Problem, device: MetalDevice) -> Evaluation:
    profile = load_profile(local_profile(device.gpu) or "apple-m1")
    return evaluate(candidate, problem, device, profile, seed=1)


def test_a_right_kernel_is_proven_and_measured_beside_mlx(metal, centre, program):
    found = judge(program(), centre, metal)
    assert found.failure is None
    (taken,) = found.times
    assert (found.kind, found.on) == ("measured", metal.gpu)
    assert taken.low <= taken.seconds <= taken.high
    assert taken.baseline_seconds > 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float sum = 0;", "half sum = 0;"),
        ("c < N; c += 64) { y", "c + 1 < N; c += 64) { y"),
        ("y[row * N + c]", "y[row * N + c + 1]"),
        (" * gain", ""),
    ],
)
def test_planted_faults_are_caught(metal, centre, program, source, old: str, new: str):
    assert old in source
    failure = judge(program(source.replace(old, new)), centre, metal).failure
    assert failure.stage in ("correctness", "bounds", "nondeterministic")


def test_apples_compiler_reports_the_line_of_the_kernels_own_source(metal, centre, program, source):
    failure = judge(program(source.replace("partial[0] / N", "partal[0] / N")), centre, metal).failure
    assert (failure.stage, failure.pass_name, failure.line) == ("compile", "centre", 11)
    assert "partal" in failure.message


def test_apples_compiler_reports_the_line_of_the_header(metal, centre, program):
    failure = judge(program(header="inline float one() { return 1; }\nnosuch two();"), centre, metal).failure
    assert (failure.stage, failure.line, failure.in_header) == ("compile", 2, True)


def test_too_much_threadgroup_memory_is_told_as_that(metal, centre, program, source):
    failure = judge(program(source.replace("partial[64]", "partial[16384]")), centre, metal).failure
    assert failure.stage == "memory"
