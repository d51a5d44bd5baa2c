"""The sizes at which an original and its translation are compared: small, with tails, as the host would allow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from math import prod

from search.kernels.cuda_program import holds
from search.kernels.expressions import ExpressionError, evaluate
from translator.launch_plan import LaunchPlan

MOST_ELEMENTS = 1 << 18
MOST_THREADS = 1 << 14
"""What one trial may take, over all arrays and in its largest launch: under a second, watched."""

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
    rng = random.Random(0)
    found: list[dict[str, int]] = []
    for number in range(_TRIES):
        axes = {axis: _draw(rng, number) for axis in plan.axes} | dict(fixed or {})
        repair(plan, axes, frozenset(fixed or {}))
        if axes not in found and admitted(plan, axes):
            found.append(axes)
            if len(found) == count or set(plan.axes) <= set(fixed or {}):
                break
    if not found:
        checks = ", ".join(f"{kind} {size} {bound}" for kind, size, bound in plan.requires) or "none"
        raise NoSizes(f"found no sizes of {', '.join(plan.axes)} that the host launches (its checks: {checks})")
    return found


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


def admitted(plan: LaunchPlan, axes: Mapping[str, int]) -> bool:
    """Whether the host launches with ``axes``, in a size that a trial has time for."""
    try:
        if not all(holds(check, axes) for check in plan.requires):
            return False
        elements = sum(evaluate(entry.extent, axes) for entry in plan.arrays if entry.extent)
        return elements <= MOST_ELEMENTS and all(threads <= MOST_THREADS for threads in _threads(plan, axes))
    except (ExpressionError, ZeroDivisionError):
        return False


def _threads(plan: LaunchPlan, axes: Mapping[str, int]) -> Iterator[int]:
    for step in plan.steps:
        sizes = [evaluate(text, axes) for text in (*step.grid, *step.block)]
        yield prod(sizes) if min(sizes) > 0 else MOST_THREADS + 1
