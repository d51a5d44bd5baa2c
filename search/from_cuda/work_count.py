"""The floating-point operations of an original as an expression over its axes, fitted to what the simulator counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from profiles.hardware import HardwareProfile
from search.devices.base import KernelFault
from search.devices.simulator.cuda_device import CudaSimulator
from search.evaluation.originals import SECONDS, bind_original, given_arrays
from search.from_cuda.trials import original_inputs
from search.problems.definition import Problem, Workload

MOST_EXPONENT = 2
MOST_AXES, MOST_FACTORS = 5, 5
BUDGET = 4_000_000
"""Accesses and basic blocks to run while counting one launch: about a tenth of a second."""

NEAR = 0.15
"""How far a count may be from the formula, as a share, for the formula to be called theirs."""


@dataclass(frozen=True)
class WorkCount:
    """The operations as an expression; ``sizes`` were counted, the one that fits least is off by ``error``, a share."""

    expression: str
    sizes: int
    error: float

    @property
    def sure(self) -> bool:
        """Whether the expression follows the counts."""
        return self.error <= NEAR


def count_work(problem: Problem, workloads: Sequence[Workload], profile: HardwareProfile) -> WorkCount | None:
    """Return the operations of the original over the axes, special functions as one; None when it can't be counted."""
    counted: list[tuple[Mapping[str, int], float]] = []
    for workload in workloads:
        try:
            counted.append((problem.bind_axes(workload), _operations(problem, workload, profile)))
        except KernelFault:
            continue
    return fit_products(counted) if counted else None


def fit_products(counted: Sequence[tuple[Mapping[str, int], float]]) -> WorkCount:
    """Return the product of axes, times a number, that the counts at several sizes grow with.

    Two products are fitted, one a part of the other: what is done for each element, and for each row besides. The
    expression is the first alone, because another kernel may do without the second.
    """
    if not any(count for _, count in counted):
        return WorkCount("0", len(counted), 0.0)
    powers = _powers(list(counted[0][0]))
    counts = np.array([count for _, count in counted])
    columns = {p: np.array([prod(axes[a] for a in p) for axes, _ in counted], dtype=float) for p in powers}
    best = WorkCount("0", len(counted), float("inf"))
    for whole, part in ((whole, part) for whole in powers for part in powers if _divides(part, whole)):
        matrix = np.stack([columns[whole], columns[part]], axis=1) / counts[:, None]
        times, *_ = np.linalg.lstsq(matrix if part != whole else matrix[:, :1], np.ones(len(counts)), rcond=None)
        if times.min() < 0 or times[0] < 0.5:
            continue
        error = float(np.abs(matrix[:, : len(times)] @ times - 1).max())
        if error < 0.9 * best.error:
            best = WorkCount(" * ".join([str(max(1, round(float(times[0])))), *whole]), len(counted), error)
    return best


def _powers(axes: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the products of axes as tuples of their factors, those of fewer factors first."""
    axes = axes[:MOST_AXES]
    every = product(range(MOST_EXPONENT + 1), repeat=len(axes))
    found = [tuple(a for a, power in zip(axes, powers, strict=True) for _ in range(power)) for powers in every]
    return sorted((p for p in found if len(p) <= MOST_FACTORS), key=len)


def _divides(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return all(part.count(axis) <= whole.count(axis) for axis in part)


def _operations(problem: Problem, workload: Workload, profile: HardwareProfile) -> float:
    assert problem.original is not None
    exact = original_inputs(problem, workload)
    program = bind_original(problem, problem.original, workload, exact)
    given = given_arrays(problem.original, program, exact)
    passes = CudaSimulator(workers=1).count(program, given, profile, time_limit=SECONDS, budget=BUDGET)
    return sum(entry.flops + entry.matrix_flops + sum(entry.special.values()) for entry in passes)
