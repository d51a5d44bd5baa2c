"""What the judge makes of the lint's rules that need a launch: threadgroup memory, grids that count threadgroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.base import RunResult
from search.evaluation.judge import evaluate
from search.evaluation.record import Failure

SOURCE = """threadgroup T row_of_x[N * 4096 / N];
y[threadgroup_position_in_grid.x * N] = T(gain);
"""


class WrongDevice:
    """A device whose every kernel leaves zeros."""

    name = "wrong"

    def describe(self) -> str:
        return "wrong"

    def compile(self, bound: Any) -> None:
        pass

    def run(self, bound: Any, inputs: Any, *, time_limit: float) -> RunResult:
        return RunResult({"y": np.zeros_like(inputs["x"])}, ())

    def time(self, bound: Any, inputs: Any, *, time_limit: float) -> Any:
        raise AssertionError("a wrong kernel is not timed")

    def close(self) -> None:
        pass


@pytest.fixture
def failure(centre, program):
    """Return why a kernel with wrong results failed."""

    def failure(source: str, grid: str) -> Failure:
        result = evaluate(program(source, grid=grid), centre, WrongDevice(), load_profile("apple-m3-max"))
        assert result.failure is not None
        return result.failure

    return failure


def test_a_wrong_result_of_a_grid_in_threadgroups_says_what_may_be_wrong(failure):
    found = failure(SOURCE, "rows")
    assert found.stage == "correctness"
    assert "perhaps because the grid has " in found.message
    assert "MLX's grid counts threads, not threadgroups" in found.message


def test_a_wrong_result_of_a_grid_in_threads_does_not(failure):
    assert "perhaps" not in failure(SOURCE, "64 * rows").message


def test_threadgroup_memory_is_counted_with_the_dtype_of_the_launch(failure):
    # 8200 halves fit in 32 KiB, 8200 floats don't, and a workload of the problem is float32.
    found = failure(SOURCE.replace("N * 4096 / N", "8200"), "64 * rows")
    assert (found.stage, found.pass_name) == ("lint", "centre")
    assert found.message.startswith("32,800 bytes of threadgroup memory are declared")


def test_the_lint_is_told_nothing_of_hidden_workloads(centre, program):
    hidden = replace(centre, workloads=tuple(replace(workload, hidden=True) for workload in centre.workloads))
    candidate = program(SOURCE.replace("N * 4096 / N", "8200"))
    result = evaluate(candidate, hidden, WrongDevice(), load_profile("apple-m3-max"))
    assert result.failure is not None and result.failure.stage != "lint"
