"""Passes one after another: which array each kernel reads and writes, and what an array is called after it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from translator.launch_plan import ArrayPlan, LaunchPlan, Role
from translator.metal_writer.accesses import ATOMIC, UPDATE, WRITE
from translator.metal_writer.names import renamed, reserved_words
from translator.metal_writer.passes import ArrayUse
from translator.translation import NamedArray

Uses = Mapping[str, frozenset[str]]
"""What one launch does with each array: kinds of `translator.metal_writer.accesses`."""


@dataclass
class Versions:
    """The names of one array: the one that holds its contents now ("" while it has none) and those still to come.

    ``initial`` is what it begins with where a kernel or the host fills it with one number.
    """

    plan: ArrayPlan
    current: str
    coming: list[str]
    initial: float | None = None


def writes(kinds: frozenset[str]) -> bool:
    """Whether a kernel changes an array."""
    return bool(kinds & {WRITE, UPDATE, ATOMIC})


def name_versions(plan: LaunchPlan, uses: list[Uses]) -> dict[str, Versions]:
    """Return the names of each array before the first launch."""
    versions = {}
    taken = {array.name for array in plan.arrays}
    for array in plan.arrays:
        name = renamed(array.name, reserved_words(()))
        count = sum(writes(use.get(array.name, frozenset())) for use in uses)
        comes_in = array.role in (Role.INPUT, Role.INOUT)
        last = renamed(f"{name}_out", taken) if comes_in else name
        versions[array.name] = Versions(
            array,
            name if comes_in else "",
            [renamed(f"{name}_{i}", taken) for i in range(1, count)] + [last] * bool(count),
            0.0 if array.zeroed else None,
        )
    return versions


def step_arrays(versions: dict[str, Versions], uses: Uses) -> tuple[dict[str, ArrayUse], set[float]]:
    """Return how one launch has its arrays, and the numbers that outputs must begin as; go on to the next names."""
    arrays: dict[str, ArrayUse] = {}
    initial: set[float] = set()
    for name, kinds in uses.items():
        array = versions[name]
        if not writes(kinds):
            arrays[name] = ArrayUse(array.current, "")
            continue
        after = array.coming.pop(0)
        if array.current:
            arrays[name] = ArrayUse(array.current, after)
        else:
            arrays[name] = ArrayUse(after, after)
            if array.initial is not None:
                initial.add(array.initial)
        array.current = after
    return arrays, initial


def named(array: ArrayPlan, name: str) -> NamedArray:
    """Return an array of the plan under one of its names."""
    return NamedArray(name, array.name, (array.extent,), array.dtype)
