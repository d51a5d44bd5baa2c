"""The sizes at which an original and its translation are compared: small, with tails, as the host would allow."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from search.kernels.cuda_program import holds
from search.kernels.expressions import ExpressionError, evaluate
from translator.launch_plan import LaunchPlan, LaunchStep

MOST_ELEMENTS = 1 << 18
MOST_THREADS = 1 << 14
"""What one trial may take, over all arrays and in its largest launch: under a second, watched."""

MORE_THREADS = 1 << 17
"""Threads of a launch at most where the source launches no fewer: there are two trials then, of a few seconds."""

MOST_SHARED = 32 << 10
"""Bytes of dynamic shared memory: what a threadgroup has."""

_TRIES = 400
_SMALL = (1, 2, 3, 4, 5, 7, 8)
_MIDDLE = (12, 16, 24, 31, 32, 33, 48, 63, 64, 65)
_LARGE = (96, 100, 127, 128, 129, 200, 256, 257, 300, 512, 1000)
_STEPS = 4


class NoSizes(ValueError):
    """No sizes were found that the host's checks admit; the message names these."""


def trial_sizes(plan: LaunchPlan, count: int, *, fixed: Mapping[str, int] | None = None) -> list[dict[str, int]]:
    """Return up to ``count`` different values of the axes; ``fixed`` ones are taken as they are.

    The same plan gives the same sizes. Raises `NoSizes` when not even one is admitted.
    """
    found = _drawn(plan, count, fixed or {}, MOST_THREADS) or _drawn(plan, 2, fixed or {}, MORE_THREADS)
    if not found:
        if not plan.axes:
            most = f"{MOST_ELEMENTS:,} elements, {MORE_THREADS:,} threads"
            said = "the source fixes all sizes, and they take more than a trial has time for"
            raise NoSizes(f"{said} ({most}): pass one to the host function")
        checks = ", ".join(f"{kind} {size} {bound}" for kind, size, bound in plan.requires) or "none"
        raise NoSizes(f"found no sizes of {', '.join(plan.axes)} that the host launches (its checks: {checks})")
    if len(found) > 1:
        _launch_several(plan, found, frozenset(fixed or {}))
    return found


def _drawn(plan: LaunchPlan, count: int, fixed: Mapping[str, int], threads: int) -> list[dict[str, int]]:
    rng = random.Random(0)
    flags = [axis for axis in plan.axes if ("most", axis, "1") in plan.requires]
    found: list[dict[str, int]] = []
    for number in range(_TRIES):
        axes = {axis: _draw(rng, number) for axis in plan.axes}
        axes |= {axis: rng.randrange(2) for axis in flags} | dict(fixed)
        repair(plan, axes, frozenset(fixed))
        if axes not in found and admitted(plan, axes, threads):
            found.append(axes)
            if len(found) == count or set(plan.axes) <= set(fixed):
                break
    return found


def _launch_several(plan: LaunchPlan, found: list[dict[str, int]], fixed: frozenset[str]) -> None:
    """Have the last size launch several blocks where no size does, and more work than blocks where these are capped."""
    for step in plan.steps:
        growing = [axis for axis in plan.axes if axis not in fixed and _names(step, axis)]
        capped = any("min(" in text for text in step.grid)
        if any(_blocks(step, axes) > 1 and not (capped and _grows(step, axes, growing)) for axes in found):
            continue
        sizes = (_grown(plan, step, axes, axis, capped, fixed) for axes in found for axis in growing)
        found[-1] = next((axes for axes in sizes if axes is not None), found[-1])


def _grown(
    plan: LaunchPlan, step: LaunchStep, axes: Mapping[str, int], axis: str, capped: bool, fixed: frozenset[str]
) -> dict[str, int] | None:
    """Return sizes with one axis so long that a step launches several blocks, None when there is no time for them."""
    held: dict[str, int] | None = None
    longer = dict(axes)
    while True:
        longer[axis] = 2 * longer[axis] + 1
        repair(plan, longer, fixed)
        if not admitted(plan, longer) or (held is not None and longer[axis] <= held[axis]):
            return held
        if _blocks(step, longer) > 2:
            held = dict(longer)
            if not capped or not _grows(step, longer, [axis]):
                return held


def _grows(step: LaunchStep, axes: Mapping[str, int], growing: Sequence[str]) -> bool:
    return any(_blocks(step, {**axes, axis: 2 * axes[axis] + 1}) > _blocks(step, axes) for axis in growing)


def _names(step: LaunchStep, axis: str) -> bool:
    return any(re.search(rf"\b{axis}\b", text) for text in step.grid)


def _blocks(step: LaunchStep, axes: Mapping[str, int]) -> int:
    try:
        return prod(evaluate(text, axes) for text in step.grid)
    except (ExpressionError, ZeroDivisionError):
        return 0


def _draw(rng: random.Random, number: int) -> int:
    # Few axes of a kernel are long; which of them are is left to chance, less often as small sizes fail.
    pool = rng.choices((_SMALL, _MIDDLE, _LARGE), (4, 3, 1 if number % 3 else 2))[0]
    return rng.choice(pool)


def repair(plan: LaunchPlan, axes: dict[str, int], fixed: frozenset[str]) -> None:
    """Move axes to where the host's simple checks hold: those that name one axis."""
    for _ in range(_STEPS):
        for kind, size, bound in plan.requires:
            axis = size if size in axes else ""
            if not axis or axis in fixed:
                continue
            try:
                limit = evaluate(bound, axes)
            except ExpressionError:
                continue
            value = axes[axis]
            if kind == "multiple" and limit > 0:
                axes[axis] = max(limit, -(-value // limit) * limit)
            elif kind == "most":
                axes[axis] = min(value, limit)
            elif kind == "least":
                axes[axis] = max(value, limit)
            elif kind == "equal":
                axes[axis] = limit


def admitted(plan: LaunchPlan, axes: Mapping[str, int], threads: int = MOST_THREADS) -> bool:
    """Whether the host launches with ``axes``, in a size that a trial has time for: ``threads`` at most."""
    try:
        if not all(holds(check, axes) for check in plan.requires):
            return False
        elements = sum(evaluate(entry.extent, axes) for entry in plan.arrays if entry.extent)
        fits = all(evaluate(step.shared, axes) <= MOST_SHARED for step in plan.steps if step.shared)
        return fits and elements <= MOST_ELEMENTS and all(launched <= threads for launched in _threads(plan, axes))
    except (ExpressionError, ZeroDivisionError):
        return False


def _threads(plan: LaunchPlan, axes: Mapping[str, int]) -> Iterator[int]:
    for step in plan.steps:
        sizes = [evaluate(text, axes) for text in (*step.grid, *step.block)]
        yield prod(sizes) if min(sizes) > 0 else MORE_THREADS + 1
