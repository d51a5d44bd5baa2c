"""Which cases a program is checked on with every access watched, and what of the findings fails it."""

from __future__ import annotations

import math

from search.devices.base import Checked, Checking, CheckReport
from search.evaluation.cases import Case
from search.kernels.program import BoundProgram
from search.problems.definition import Problem, Workload

MOST_WORKLOADS = 2
"""Each costs a compilation of its own, about a third of a second."""

MOST_ELEMENTS = 1 << 18
"""Of all arrays of a workload: what a checked run gets through in well under a second."""

SECONDS = 1.0
"""A checked run that is not done by then tells what it has found so far."""

_CAUSES = {"divergence": 0, "race": 1}

_SEED = 1  # threads in an order that is not that of their numbers, which plain runs have


def workloads_to_watch(problem: Problem) -> list[Workload]:
    """Return the largest visible check workloads that are small enough: they have several groups, and tails."""
    visible = [workload for workload in problem.of_role("check") if not workload.hidden]
    by_size = sorted(visible, key=lambda workload: _elements(problem, workload))
    small = [workload for workload in by_size if _elements(problem, workload) <= MOST_ELEMENTS]
    return (small or by_size[:1])[: -MOST_WORKLOADS - 1 : -1]


def _elements(problem: Problem, workload: Workload) -> int:
    return sum(math.prod(spec.shape) for spec in problem.arrays(workload).values())


def watch(device: Checking, bound: BoundProgram, case: Case) -> Checked:
    """Return what a checked run of ``case`` finds.

    That it ran out of time says nothing: watching is slow, and plain runs have a limit of their own.
    """
    found = device.check(bound, case.inputs, time_limit=SECONDS, seed=_SEED)
    reports = tuple(report for report in found.reports if report.stage != "timeout")
    return Checked(reports, found.outputs, found.complete)


def failing(found: Checked) -> CheckReport | None:
    """Return the report that the program fails by: one that others follow from, where there is one.

    Threads that miss a barrier go on to what it should have kept apart, which is a race then; and a race leaves
    indices and values that are wrong for no reason of their own.
    """
    certain = [report for report in found.reports if report.certain]
    return min(certain, key=lambda report: _CAUSES.get(report.stage, len(_CAUSES)), default=None)


def suspicion(found: Checked) -> str:
    """Return what may be the reason if the outputs are wrong, '' when nothing is known."""
    return next((report.message for report in found.reports if not report.certain), "")
