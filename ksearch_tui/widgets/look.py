"""What the tabs show: a run at one moment, and the option under the cursor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from search.calibration import Calibration
from search.config import RunConfig
from search.problems.definition import Problem
from search.tree import Option, Tree


@dataclass(frozen=True)
class Look:
    """A run at one moment.

    ``policy_next`` is the option that the policy would take while a person decides, "" when there is none.
    ``seen`` counts its events, so that a look can be told from a later one. ``found`` has the speedup over the naive
    program of each evaluation so far, 0 for one that failed.
    """

    config: RunConfig
    tree: Tree
    option: Option | None
    problem: Problem | None
    seen: int
    calibration: Calibration = field(default_factory=Calibration)
    policy_next: str = ""
    found: tuple[float, ...] = ()
    best: Option | None = None


class Tab(Protocol):
    """A tab of the explorer and the replay."""

    def show(self, look: Look) -> None:
        """Show ``look``; called on every change while the tab is in view."""
