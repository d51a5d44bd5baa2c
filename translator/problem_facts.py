"""What a briefing says of a problem, apart from how problems are kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayFacts:
    """An input or output: shape as axis expressions (none: a number), and a dtype or dtype variable."""

    name: str
    shape: tuple[str, ...]
    dtype: str
    output: bool
    description: str = ""


@dataclass(frozen=True)
class WorkFacts:
    """A workload that is timed: the bytes that must move at least, and the FLOPs of one run."""

    name: str
    bytes: int
    flops: int


@dataclass(frozen=True)
class ProblemFacts:
    """The problem: ``tolerance`` pairs each dtype with ``atol`` and ``rtol``, ``axes`` each name with its meaning."""

    title: str
    description: str
    arrays: tuple[ArrayFacts, ...]
    axes: tuple[str, ...]
    tolerance: tuple[tuple[str, float, float], ...]
    work: tuple[WorkFacts, ...]
