"""The settings of a run, as they stand at the head of a session file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunConfig:
    """Which problem, on which device and for which hardware profile, proposed by whom, and how much may be spent.

    ``problem`` is a built-in name or a folder; ``budget`` counts evaluations.
    """

    problem: str
    device: str = "simulator"
    profile: str = "apple-m3-max"
    proposer: str = "catalogue"
    budget: int = 40
