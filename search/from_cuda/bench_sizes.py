"""The size at which a problem from a CUDA file is timed: that of the source's ``main``, else one that people use."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from search.evaluation.trial_sizes import repair
from search.kernels.cuda_program import bind_launches, holds
from search.kernels.expressions import ExpressionError, evaluate, names
from search.kernels.program import ProgramError
from translator.launch_plan import LaunchPlan

LEAST_ELEMENTS, MOST_ELEMENTS = 1 << 23, 1 << 26
"""Elements of all arrays together: enough to keep a GPU busy, few enough to draw in a second."""

COUNTED_ELEMENTS = 1 << 20
"""Elements at most when an original's work is counted, from a sample of its blocks."""

_TRIES = 40


def bench_size(plan: LaunchPlan) -> dict[str, int] | None:
    """Return a value for each axis that the host's checks and CUDA's limits admit, None when none was found."""
    given = dict(plan.given)
    axes = {axis: given.get(axis) or usual_size(axis) for axis in plan.axes}
    growing = [axis for axis in _axes_of_extents(plan) if axis not in given]
    for _ in range(_TRIES):
        repair(plan, axes, frozenset())
        if _too_large(plan, axes):
            axes = _with_largest(axes, growing or list(axes), lambda value: max(1, value // 2))
        elif growing and _elements(plan, axes) < LEAST_ELEMENTS:
            grown = _with_largest(axes, growing, lambda value: value * 2)
            repair(plan, grown, frozenset())
            if grown == axes or _too_large(plan, grown):
                break
            axes = grown
        else:
            break
    return axes if not _too_large(plan, axes) else None


def _with_largest(axes: Mapping[str, int], among: Sequence[str], change: Callable[[int], int]) -> dict[str, int]:
    if not among:
        return dict(axes)
    largest = max(among, key=lambda axis: axes[axis])
    return {**axes, largest: change(axes[largest])}


def _axes_of_extents(plan: LaunchPlan) -> list[str]:
    named = frozenset[str]().union(*(names(array.extent) for array in plan.arrays))
    return [axis for axis in plan.axes if axis in named]


def counting_sizes(plan: LaunchPlan) -> list[dict[str, int]]:
    """Return sizes at which to count an original's work: the one that is timed, smaller, and with less of each axis."""
    base = bench_size(plan)
    if base is None:
        return []
    for _ in range(_TRIES):
        if _elements(plan, base) <= COUNTED_ELEMENTS:
            break
        base = _with_largest(base, _axes_of_extents(plan) or list(base), lambda value: max(1, value // 2))
        repair(plan, base, frozenset())
    found = [base]
    for axis in plan.axes:
        for divisor in (2, 4):
            smaller = {**base, axis: max(1, base[axis] // divisor)}
            repair(plan, smaller, frozenset())
            if smaller not in found:
                found.append(smaller)
    return [axes for axes in found if not _too_large(plan, axes)]


@cache
def _usual() -> tuple[int, Mapping[str, int]]:
    data = tomllib.loads(Path(__file__).with_name("usual_sizes.toml").read_text(encoding="utf-8"))
    sizes: dict[str, int] = {}
    for entry in data["sizes"]:
        for name in entry["names"]:
            sizes.setdefault(name, entry["size"])
    return data["other"], sizes


def usual_size(axis: str) -> int:
    """Return the size that an axis of this name usually has."""
    other, sizes = _usual()
    name = axis.lower()
    ends = [known for known in sizes if name == known or (len(known) > 1 and name.endswith(f"_{known}"))]
    return sizes[max(ends, key=len)] if ends else other


def _elements(plan: LaunchPlan, axes: Mapping[str, int]) -> int:
    return sum(evaluate(array.extent, axes) for array in plan.arrays)


def _too_large(plan: LaunchPlan, axes: Mapping[str, int]) -> bool:
    """Whether the arrays are too large, or the host or CUDA launches nothing at this size."""
    return not _launches(plan, axes) or _elements(plan, axes) > MOST_ELEMENTS


def _launches(plan: LaunchPlan, axes: Mapping[str, int]) -> bool:
    try:
        bind_launches(plan, "", axes, {scalar.name: 1.0 for scalar in plan.scalars})
        return all(holds(check, axes) for check in plan.requires)
    except (ProgramError, ExpressionError, ZeroDivisionError):
        return False
