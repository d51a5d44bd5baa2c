"""What a family of kernels is: a plan, the transformations that lead from plan to plan, and a writer.

A plan says in a few typed fields how the kernel is built (who computes a row, what is kept where). A transformation is
one optimization: it returns the changed plan or refuses. Since programs are written from plans and never patched as
text, transformations compose along any path of the option tree in any order that they allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from search.kernels.program import Program

Plan = TypeVar("Plan")


class Refused(ValueError):
    """A plan that a transformation can't start from; ``first`` names the one that would open the way, if any."""

    def __init__(self, reason: str, first: str = "") -> None:
        super().__init__(reason)
        self.reason, self.first = reason, first


class Present(Refused):
    """A plan that has already what the transformation would bring."""


@dataclass(frozen=True)
class Room:
    """What every plan must fit: the axes of each workload, and the threadgroup memory of a threadgroup in bytes."""

    workloads: tuple[Mapping[str, int], ...]
    threadgroup_bytes: int


@dataclass(frozen=True)
class Family(Generic[Plan]):
    """Kernels for one kind of problem.

    ``threadgroup_bytes`` gives what a plan declares under a workload's axes. ``shrink`` names the transformation that
    needs less of it ("" when there is none). ``lighter`` gives the same kernel with smaller tiles or threadgroups, for
    a plan that turned out not to fit, None when it can't be smaller.
    """

    name: str
    start: Plan
    transformations: Mapping[str, Callable[[Plan], Plan]]
    threadgroup_bytes: Callable[[Plan, Mapping[str, int]], int]
    write: Callable[[Plan], Program]
    lighter: Callable[[Plan], Plan | None]
    shrink: str = ""

    def apply(self, plan: Plan, key: str, room: Room) -> Plan:
        """Return ``plan`` after the transformation ``key``; raise `Refused` when it isn't legal or does not fit."""
        changed = self.transformations[key](plan)
        needed = max(self.threadgroup_bytes(changed, axes) for axes in room.workloads)
        if needed > room.threadgroup_bytes:
            raise Refused(
                f"it would take {needed / 1024:.1f} KiB of threadgroup memory; "
                f"a threadgroup has {room.threadgroup_bytes / 1024:.0f} KiB",
                first=self.shrink if key != self.shrink else "",
            )
        return changed

    def way_to(self, plan: Plan, key: str, room: Room) -> tuple[str, ...]:
        """Return the transformations that lead to what ``key`` brings: just ``(key,)`` when that is legal.

        Raises `Refused` with the reason when there is no way.
        """
        return self._way(plan, key, room, frozenset())

    def _way(self, plan: Plan, key: str, room: Room, sought: frozenset[str]) -> tuple[str, ...]:
        way: tuple[str, ...] = ()
        while True:
            try:
                self.apply(plan, key, room)
                return (*way, key)
            except Present:
                if not way:
                    raise
                return way
            except Refused as refusal:
                if not refusal.first or refusal.first in sought or len(way) > len(self.transformations):
                    raise
                opening = self._way(plan, refusal.first, room, sought | {key})
            for step in opening:
                plan = self.apply(plan, step, room)
            way += opening
