from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from search.kernels.program import Pass, Program
from search.problems.definition import Problem, load_problem

CENTRE = Path(__file__).parent / "centre"

SOURCE = """threadgroup float partial[64];
uint row = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
float sum = 0;
for (uint c = t; c < N; c += 64) { sum += float(x[row * N + c]); }
partial[t] = sum;
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint reach = 32; reach > 0; reach /= 2) {
  if (t < reach) { partial[t] += partial[t + reach]; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
float mean = partial[0] / N;
for (uint c = t; c < N; c += 64) { y[row * N + c] = T((float(x[row * N + c]) - mean) * gain); }
"""


@pytest.fixture
def centre() -> Problem:
    """The small problem that the evaluator is tested on: y = (x - mean of the row) * gain."""
    return load_problem(CENTRE)


@pytest.fixture
def source() -> str:
    """The body of a right kernel for `centre`, one threadgroup of 64 threads a row."""
    return SOURCE


@pytest.fixture
def program() -> Callable[..., Program]:
    """Return a program for `centre` with the given kernel body."""

    def build(source: str = SOURCE, *, grid: str = "64 * rows", header: str = "") -> Program:
        return Program(
            (
                Pass(
                    name="centre",
                    inputs=("x", "gain"),
                    outputs=("y",),
                    source=source,
                    grid=(grid, "1", "1"),
                    threadgroup=("64", "1", "1"),
                    header=header,
                    template=(("T", "T"), ("N", "n")),
                ),
            )
        )

    return build
