"""A CUDA original as the reference: what it writes is compared, and where it is itself at a loss, nothing is."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.cases import RANDOM, make_case
from search.evaluation.judge import evaluate
from search.evaluation.originals import run_original
from search.from_cuda.folder import write_problem
from search.from_cuda.reading import read_cuda
from search.kernels.text import program_from_text
from search.problems.definition import Problem, ProblemError, load_problem

PROFILE = load_profile("apple-m3-max")

# The exponential of x overflows above 88.7: the original has no maximum subtracted.
NAIVE_SOFTMAX = """\
__global__ void softmax(const float* x, float* y, int cols) {
  float sum = 0.0f;
  for (int c = 0; c < cols; ++c) sum += expf(x[blockIdx.x * cols + c]);
  for (int c = 0; c < cols; ++c) y[blockIdx.x * cols + c] = expf(x[blockIdx.x * cols + c]) / sum;
}

void run(const float* x, float* y, int rows, int cols) { softmax<<<rows, 1>>>(x, y, cols); }
"""
STABLE_SOFTMAX = """\
//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid rows
//@ threadgroup 32
//@ template cols = cols
//@ source
uint at = thread_position_in_grid.x * cols;
float top = -INFINITY, sum = 0.0f;
for (int c = 0; c < cols; ++c) top = max(top, x[at + c]);
for (int c = 0; c < cols; ++c) sum += exp(x[at + c] - top);
for (int c = 0; c < cols; ++c) y[at + c] = exp(x[at + c] - top) / sum;
"""
EACH = """\
__global__ void each(const float* x,  // [n]
                     float* y,        // [n]
                     int n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}

void run(const float* x, float* y, int n, float a) { each<<<(n + 63) / 64, 64>>>(x, y, n, a); }
"""
EVERY_OTHER = EACH.replace("if (i < n) y[i] = a * x[i]", "if (i < n && i % 2 == 0) y[i] = x[i] + 1.0f")
ZEROS_BETWEEN = """\
//@ pass each
//@ inputs x
//@ outputs y
//@ grid n
//@ threadgroup 32
//@ template n = n
//@ source
uint i = thread_position_in_grid.x;
if (i < n) y[i] = i % 2 ? 0.0f : x[i] + 1.0f;
"""


@pytest.fixture
def made(tmp_path: Path):
    """Return what makes a problem of a CUDA text."""

    def make(text: str) -> Problem:
        (tmp_path / "k.cu").write_text(text)
        write_problem(read_cuda(tmp_path / "k.cu", None, {}), tmp_path / "p", PROFILE, lambda said: None)
        return load_problem(tmp_path / "p")

    return make


def failure_of(problem: Problem, text: str):
    return evaluate(program_from_text(text), problem, SimulatorDevice(PROFILE), PROFILE).failure


def test_the_original_computes_the_right_outputs(made) -> None:
    problem = made(NAIVE_SOFTMAX)
    workload = problem.of_role("check")[0]
    case = make_case(problem, workload, RANDOM, 3)
    exponentials = np.exp(case.inputs["x"].astype(np.float64))
    assert case.want["y"] == pytest.approx(exponentials / exponentials.sum(axis=-1, keepdims=True), rel=1e-5)
    assert case.want["y"].dtype == np.float64


@pytest.mark.parametrize("kind", ["large", "shifted"])
def test_a_magnitude_at_which_the_original_overflows_is_not_asked_for(made, kind: str) -> None:
    problem = made(NAIVE_SOFTMAX)
    for workload in problem.of_role("check"):
        case = make_case(problem, workload, kind, 0)
        assert case.inputs["x"].max() < 88.8
        assert np.isfinite(case.want["y"]).all()


def test_a_kernel_that_is_better_than_the_original_passes(made) -> None:
    assert failure_of(made(NAIVE_SOFTMAX), STABLE_SOFTMAX) is None


def test_what_the_original_leaves_unwritten_is_not_compared(made) -> None:
    problem = made(EVERY_OTHER)
    workload = max(problem.of_role("check"), key=lambda w: w.axes["n"])
    case = make_case(problem, workload, RANDOM, 0)
    assert list(case.compared["y"][:4]) == [True, False, True, False]
    assert failure_of(problem, ZEROS_BETWEEN) is None
    assert np.abs(make_case(problem, workload, "large", 0).inputs["x"]).max() > 10  # a magnitude of 128 is settled
    failure = failure_of(problem, ZEROS_BETWEEN.replace("+ 1.0f", "+ 1.1f"))
    assert failure is not None and "'y' is wrong" in failure.message


def test_zeros_that_the_original_divides_by_are_not_compared(made) -> None:
    problem = made(EACH.replace("a * x[i]", "a / x[i]"))
    case = make_case(problem, problem.of_role("check")[0], "zeros", 0)
    assert not case.compared["y"].any()
    assert make_case(problem, problem.of_role("check")[0], RANDOM, 0).compared["y"].all()


def test_inputs_that_the_original_can_not_take_are_replaced_by_random_ones(made) -> None:
    # Where the first and the last key are the same, it writes far outside of y.
    text = EACH.replace("const float* x,  // [n]", "const int* k,  // [n]").replace(
        "const float* x, ", "const int* k, "
    )
    problem = made(
        text.replace("y[i] = a * x[i]", "y[i + (k[0] == k[n - 1]) * (1 << 26)] = a").replace("(x, y", "(k, y")
    )
    workload = problem.of_role("check")[0]
    assert workload.axes["n"] > 1
    case = make_case(problem, workload, "large", 0)
    assert case.kind == RANDOM
    assert case.inputs["k"][0] != case.inputs["k"][-1]
    assert case.want["y"] == pytest.approx(np.full(case.want["y"].shape, workload.scalars["a"]))


def test_numbers_of_a_workload_reach_the_original(made) -> None:
    problem = made(EACH)
    values = {workload.scalars["a"] for workload in problem.of_role("check")}
    assert len(values) > 1
    for workload in problem.of_role("check")[:2]:
        x = np.arange(math.prod(problem.arrays(workload)["x"].shape), dtype=np.float64)
        found = run_original(problem, workload, {"x": x, "a": np.array(workload.scalars["a"])})
        assert found.values["y"] == pytest.approx(workload.scalars["a"] * x)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("original.toml", 'y = "y"', 'y = "z"', r"\[outputs\] y: the original has no array 'z'"),
        ("original.toml", 'extent = "n"', 'extent = "2 * n"', "elements, and 'x' of the original has"),
        ("original.toml", 'device_code = "k.device.cu"', 'device_code = "nowhere.cu"', "nowhere.cu"),
        ("original.toml", 'role = "output"', 'role = "result"', "'result' is not a valid Role"),
        ("problem.toml", 'root = "root.metal"', 'root = "gone.metal"', "there is no root program 'gone.metal'"),
    ],
)
def test_a_mistake_in_the_files_is_said_when_the_problem_is_loaded(made, file, old, new, said) -> None:
    problem = made(EVERY_OTHER)
    path = problem.folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ProblemError, match=said):
        load_problem(problem.folder)


def test_an_original_that_does_not_compile_is_told_with_its_line(made) -> None:
    problem = made(EVERY_OTHER)
    code = problem.folder / "k.device.cu"
    code.write_text(code.read_text().replace("x[i] + 1.0f", "nothing[i]"))
    problem = load_problem(problem.folder)
    with pytest.raises(ProblemError, match=r"the original: line 5: .*nothing"):
        make_case(problem, problem.of_role("check")[0], RANDOM, 0)
