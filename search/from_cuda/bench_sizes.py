"""The size at which a problem from a CUDA file is timed: that of the source's ``main``, else one that people use."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from search.evaluation.trial_sizes import repair
from search.kernels.cuda_program import bind_launches, holds
from search.kernels.expressions import ExpressionError, evaluate, names
from search.kernels.program import ProgramError
from translator.launch_plan import LaunchPlan

LEAST_ELEMENTS, MOST_ELEMENTS = 1 << 23, 1 << 26
"""Elements of all arrays together: enough to keep a GPU busy, few enough to draw in a second."""

MOST_SHARED_BYTES = 24 << 10
"""Dynamic shared memory at most: of the 32 KiB that a threadgroup has, this leaves some for what has a fixed size."""

COUNTED_ELEMENTS = 1 << 20
"""Elements at most when an original's work is counted, from a sample of its blocks."""

MORE = 4
"""How much longer an axis is in one of the sizes that are counted."""

_TRIES = 40


def bench_size(plan: LaunchPlan) -> dict[str, int] | None:
    """Return a value for each axis that the host's checks and CUDA's limits admit, None when none was found."""
    given = dict(plan.given)
    about = " ".join([plan.function, *(step.kernel for step in plan.steps)])
    axes = {axis: given.get(axis) or usual_size(axis, about) for axis in plan.axes}
    growing = [axis for axis in _axes_of_extents(plan) if axis not in given]
    for _ in range(_TRIES):
        repair(plan, axes, frozenset())
        if _too_large(plan, axes):
            axes = _smaller(plan, axes, growing or list(axes))
        elif growing and _elements(plan, axes) < LEAST_ELEMENTS:
            grown = _larger(plan, axes, growing)
            if grown is None:
                break
            axes = grown
        else:
            break
    return axes if not _too_large(plan, axes) else None


def _larger(plan: LaunchPlan, axes: Mapping[str, int], among: Sequence[str]) -> dict[str, int] | None:
    """Return sizes with the largest axis doubled that may grow, None when there is none."""
    for axis in sorted(among, key=lambda axis: -axes[axis]):
        doubled = {**axes, axis: axes[axis] * 2}
        repair(plan, doubled, frozenset())
        if doubled != axes and not _too_large(plan, doubled):
            return doubled
    return None


def _smaller(plan: LaunchPlan, axes: Mapping[str, int], among: Sequence[str]) -> dict[str, int]:
    """Return sizes with the largest axis halved that a check doesn't hold where it is."""
    for axis in sorted(among, key=lambda axis: -axes[axis]):
        halved = {**axes, axis: max(1, axes[axis] // 2)}
        repair(plan, halved, frozenset())
        if _elements(plan, halved) < _elements(plan, axes):
            return halved
    return _with_largest(axes, among, lambda value: max(1, value // 2))


def _with_largest(axes: Mapping[str, int], among: Sequence[str], change: Callable[[int], int]) -> dict[str, int]:
    if not among:
        return dict(axes)
    largest = max(among, key=lambda axis: axes[axis])
    return {**axes, largest: change(axes[largest])}


def _axes_of_extents(plan: LaunchPlan) -> list[str]:
    named = frozenset[str]().union(*(names(array.extent) for array in plan.arrays))
    return [axis for axis in plan.axes if axis in named]


def counting_sizes(plan: LaunchPlan) -> list[dict[str, int]]:
    """Return sizes at which to count an original's work: the one that is timed, smaller, and with more and less of each
    axis. More, because kernels work in tiles: below one tile the work doesn't grow.
    """
    base = bench_size(plan)
    if base is None:
        return []
    for _ in range(_TRIES):
        if _elements(plan, base) <= COUNTED_ELEMENTS // MORE:
            break
        base = _smaller(plan, base, _axes_of_extents(plan) or list(base))
    found = [base]
    for axis in plan.axes:
        for changed in (base[axis] * MORE, max(1, base[axis] // 2)):
            other = {**base, axis: changed}
            repair(plan, other, frozenset())
            if other[axis] == base[axis] > 1:  # a check ties it to another axis: both become smaller
                tied = {each for _, size, bound in plan.requires if axis in (names(size) | names(bound))
                        for each in names(size) | names(bound)}  # fmt: skip
                other = {**base, **{each: max(1, base[each] // 2) for each in tied & base.keys()}}
                repair(plan, other, frozenset())
            if other not in found:
                found.append(other)
    return [axes for axes in found if not _too_large(plan, axes)]


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("usual_sizes.toml").read_text(encoding="utf-8"))


@cache
def _usual(about: str) -> tuple[int, Mapping[str, int]]:
    sizes: dict[str, int] = {}
    for entry in _table()["sizes"]:
        if re.search(entry.get("within", ""), about, re.IGNORECASE):
            for name in entry["names"]:
                sizes.setdefault(name, entry["size"])
    return _table()["other"], sizes


def usual_size(axis: str, about: str = "") -> int:
    """Return the size that an axis of this name usually has; ``about`` names the functions of its source."""
    other, sizes = _usual(about)
    name = axis.lower()
    ends = [known for known in sizes if name == known or (len(known) > 1 and name.endswith(f"_{known}"))]
    return sizes[max(ends, key=len)] if ends else other


def _elements(plan: LaunchPlan, axes: Mapping[str, int]) -> int:
    return sum(evaluate(array.extent, axes) for array in plan.arrays)


def _too_large(plan: LaunchPlan, axes: Mapping[str, int]) -> bool:
    """Whether the arrays or the shared memory are too large, or nothing is launched at this size."""
    return not _launches(plan, axes) or _elements(plan, axes) > MOST_ELEMENTS


def _launches(plan: LaunchPlan, axes: Mapping[str, int]) -> bool:
    try:
        program = bind_launches(plan, "", axes, {scalar.name: 1.0 for scalar in plan.scalars})
        if any(launch.shared > MOST_SHARED_BYTES and names(step.shared) & set(axes)
               for launch, step in zip(program.launches, plan.steps, strict=True)):  # fmt: skip
            return False
        return all(holds(check, axes) for check in plan.requires)
    except (ProgramError, ExpressionError, ZeroDivisionError):
        return False
