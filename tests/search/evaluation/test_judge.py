"""The judge with a device that runs Python in place of kernels: its stages, and what it says at each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.base import MODELLED, DeviceTime, KernelFault, PassTime, RunResult
from search.evaluation.judge import evaluate
from search.kernels.program import Buffer, Program
from search.problems.definition import ProblemError

Kernel = Callable[[np.ndarray, float], np.ndarray]


def exact(x: np.ndarray, gain: float) -> np.ndarray:
    """What the kernel should compute, in float64."""
    wide = x.astype(np.float64)
    return ((wide - wide.mean(axis=-1, keepdims=True)) * gain).astype(x.dtype)


class PythonDevice:
    """A device whose every kernel is ``kernel``; ``seconds`` is what any run takes."""

    name = "python"

    def __init__(self, kernel: Kernel = exact, seconds: float = 1e-3, overruns: tuple[str, ...] = ()) -> None:
        self.kernel, self.seconds, self.overruns = kernel, seconds, overruns
        self.compiled, self.ran = 0, 0

    def describe(self) -> str:
        return "python → test (modelled)"

    def compile(self, bound: Any) -> None:
        self.compiled += 1

    def run(self, bound: Any, inputs: Any, *, time_limit: float) -> RunResult:
        self.ran += 1
        return RunResult({"y": self.kernel(inputs["x"], float(inputs["gain"]))}, self.overruns)

    def time(self, bound: Any, inputs: Any, *, time_limit: float) -> DeviceTime:
        terms = {"memory": self.seconds, "latency": 0.0}
        passes = (PassTime("a", self.seconds, terms, "memory"), PassTime("b", self.seconds, terms, "memory"))
        return DeviceTime(MODELLED, "apple-m3-max", self.seconds, self.seconds, self.seconds, "memory", passes)

    def close(self) -> None:
        pass


@pytest.fixture
def judge(centre, program):
    """Return a function that judges a program (a right text by default) on a device."""

    def run(device: PythonDevice, candidate: Program | None = None, problem: Any = centre, **options: Any):
        return evaluate(candidate or program(), problem, device, load_profile("apple-m3-max"), **options)

    return run


def test_a_right_kernel_passes_with_its_times(judge, program):
    device = PythonDevice()
    found = judge(device)
    assert found.passed
    assert (found.program, found.device, found.kind, found.on) == (
        program().sha256,
        "python",
        MODELLED,
        "apple-m3-max",
    )
    # 3 random cases, 4 kinds for each of 2 dtypes, 4 kinds once; random ones run twice.
    assert (found.cases, device.ran) == (15, 18)
    assert 0 < found.worst_error < 1
    (taken,) = found.times
    assert (taken.workload, taken.seconds, taken.bound_by) == ("wide", 1e-3, "memory")
    assert taken.terms == {"memory": 2e-3, "latency": 0.0}
    # 256 * 1024 half-precision elements read and written: 1 MiB at 409.6 GB/s.
    assert taken.roofline_seconds == pytest.approx(2**20 / 409.6e9, rel=0.01)
    assert found.mlx_version.startswith("0.")


def test_progress_is_told_and_hidden_workloads_are_not_named(judge):
    told: list[str] = []
    judge(PythonDevice(), progress=told.append)
    assert told[0] == "compiling"
    assert told[1] == "checking 1/15 tail"
    assert "checking 15/15 hidden" in told
    assert told[-1] == "timing 1/1 wide"
    assert not any("secret" in text for text in told)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        (lambda x, gain: x, "passthrough"),
        (lambda x, gain: np.zeros_like(x), "zeros"),
        (lambda x, gain: np.full_like(x, 0.5), "a constant"),
        (lambda x, gain: exact(x, 1.0), "the scalar ignored"),
        (lambda x, gain: np.roll(exact(x, gain), 1, axis=0), "rows off by one"),
    ],
)
def test_plausible_wrong_answers_fail(judge, kernel: Kernel, kind: str):
    found = judge(PythonDevice(kernel))
    assert (found.outcome, found.failure.stage, found.failure.workload) == ("failed", "correctness", "tail"), kind
    assert found.failure.message.startswith("with random inputs, 'y' is wrong, by up to")
    assert "it should be" in found.failure.message
    assert found.times == ()


def test_elements_that_are_never_written_fail(judge):
    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        y = exact(x, gain)
        y[-1, -1] = np.nan
        return y

    found = judge(PythonDevice(kernel))
    assert "y[2, 66] was never written" in found.failure.message


def test_half_precision_sums_are_found_where_random_inputs_hide_them(judge):
    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        if x.dtype == np.float32:
            return exact(x, gain)
        mean = np.add.accumulate(x, axis=-1, dtype=np.float16)[:, -1:] / np.float16(x.shape[-1])
        return ((x - mean.astype(np.float32)) * gain).astype(x.dtype)

    assert judge(PythonDevice(kernel)).failure.stage == "correctness"


def test_an_answer_kept_from_the_last_run_fails(judge):
    kept: dict[tuple[int, ...], np.ndarray] = {}

    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        return kept.setdefault(x.shape, exact(x, gain))

    found = judge(PythonDevice(kernel))
    assert found.failure.stage == "correctness"


def test_a_failure_in_a_hidden_case_gives_away_nothing_of_it(judge):
    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        return exact(x, gain) if x.shape[-1] < 3000 else x

    failure = judge(PythonDevice(kernel)).failure
    assert (failure.stage, failure.workload) == ("correctness", "hidden")
    assert failure.message.startswith("a hidden case with random inputs failed: 'y' is wrong, by up to")
    assert "3001" not in failure.message
    assert "secret" not in failure.message
    assert "y[" not in failure.message


def test_a_fault_in_a_hidden_case_keeps_its_line_but_not_its_numbers(judge):
    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        if x.shape[-1] > 3000:
            raise KernelFault("bounds", "x[6002] is out of bounds (6002 elements)", pass_name="centre", line=4)
        return exact(x, gain)

    failure = judge(PythonDevice(kernel)).failure
    assert failure.message == "a hidden case failed: an array was accessed outside its bounds"
    assert (failure.stage, failure.pass_name, failure.line, failure.workload) == ("bounds", "centre", 4, "hidden")


def test_a_fault_names_pass_line_and_workload(judge):
    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        raise KernelFault("timeout", "did not end within 10 s", pass_name="centre", line=7)

    failure = judge(PythonDevice(kernel)).failure
    assert (failure.stage, failure.message) == ("timeout", "did not end within 10 s")
    assert (failure.pass_name, failure.line, failure.workload) == ("centre", 7, "tail")


def test_a_fault_in_the_header_says_so(judge):
    class Device(PythonDevice):
        def compile(self, bound: Any) -> None:
            raise KernelFault("compile", "no such type", pass_name="centre", line=3, in_header=True)

    failure = judge(Device()).failure
    assert (failure.stage, failure.message) == ("compile", "in the header: no such type")
    assert (failure.line, failure.in_header) == (3, True)


def test_a_write_outside_an_array_fails(judge):
    failure = judge(PythonDevice(overruns=("y",))).failure
    assert (failure.stage, failure.workload) == ("bounds", "tail")
    assert "'y' was written outside its bounds" in failure.message


def test_runs_that_differ_beyond_the_tolerance_fail_as_nondeterministic(judge):
    runs = iter(range(1000))

    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        return exact(x, gain) + np.asarray(next(runs) % 2, x.dtype)

    assert judge(PythonDevice(kernel)).failure.stage == "nondeterministic"


def test_runs_that_differ_within_the_tolerance_pass(judge):
    """Atomics add in any order."""
    runs = iter(range(1000))

    def kernel(x: np.ndarray, gain: float) -> np.ndarray:
        return exact(x, gain) * np.asarray(1 + next(runs) % 2 * 2e-6, np.float32).astype(x.dtype)

    assert judge(PythonDevice(kernel)).passed


def test_faster_than_the_hardware_allows_is_rejected(judge):
    failure = judge(PythonDevice(seconds=1e-6)).failure
    assert (failure.stage, failure.workload) == ("timing", "wide")
    assert "faster than the hardware allows" in failure.message
    assert judge(PythonDevice(seconds=3e-6)).passed


def test_lint_comes_before_any_compiler(judge, program):
    device = PythonDevice()
    failure = judge(device, program("y[0] = 1;\ndouble z = 2;")).failure
    assert (failure.stage, failure.pass_name, failure.line) == ("lint", "centre", 2)
    assert device.compiled == 0
    failure = judge(device, program(header="\n#include <x>")).failure
    assert (failure.stage, failure.line, failure.in_header) == ("lint", 2, True)
    assert failure.message.startswith("in the header: drop the #include")


def test_a_launch_that_cannot_be_bound_fails_before_it_runs(judge, program):
    device = PythonDevice()
    failure = judge(device, program(grid="rows // 1000")).failure
    assert (failure.stage, failure.workload) == ("launch", "tail")
    assert "must be at least 1" in failure.message
    assert device.compiled == 0


def test_a_launch_that_fails_only_for_a_hidden_shape_does_not_tell_the_shape(judge, program):
    failure = judge(PythonDevice(), program(grid="3001 - n")).failure
    assert failure.stage == "launch"
    assert failure.message == "a hidden case failed: it can't be launched for that shape"


def test_a_broken_reference_is_an_error_of_the_problem_not_of_the_candidate(judge, centre, tmp_path):
    (tmp_path / "reference.py").write_text("def reference(axes, x, gain): return x.nope")
    with pytest.raises(ProblemError, match=r"reference\.py.*nope"):
        judge(PythonDevice(), problem=replace(centre, folder=tmp_path))


def test_mlx_is_timed_in_turn_where_it_runs(judge):
    class Measured(PythonDevice):
        def time_beside(self, bound, inputs, specs, baseline, *, time_limit):
            (out,) = baseline({name: inputs[name].astype(np.float64) for name in specs if name in inputs})
            assert out.shape == specs["y"].shape
            taken = DeviceTime("measured", "Apple M0", 2e-3, 1.9e-3, 2.1e-3)
            return taken, replace(taken, seconds=5e-3)

    found = judge(Measured())
    assert (found.kind, found.on) == ("measured", "Apple M0")
    assert (found.times[0].seconds, found.times[0].low, found.times[0].high) == (2e-3, 1.9e-3, 2.1e-3)
    assert found.times[0].baseline_seconds == 5e-3


def test_a_failed_evaluation_still_says_where_it_ran(judge):
    found = judge(PythonDevice(lambda x, gain: x))
    assert (found.kind, found.on) == ("", "python → test (modelled)")
    assert found.elapsed_seconds > 0


def test_a_launch_that_would_take_the_machine_down_is_refused(judge, program):
    failure = judge(PythonDevice(), program(grid="64 * rows * 1000000000")).failure
    assert (failure.stage, failure.workload) == ("launch", "tail")
    assert failure.message == "pass 'centre' has a grid of 192000000000 x 1 x 1 threads; 2^32 are allowed"
    huge = replace(program(), buffers=(Buffer("scratch", ("rows", "1073741824"), "float32"),))
    first = replace(huge.passes[0], name="fill", outputs=("scratch",))
    failure = judge(PythonDevice(), replace(huge, passes=(first, *huge.passes))).failure
    assert failure.message == "the arrays need 12 GiB, 'scratch' the most; 8 GiB are allowed"
