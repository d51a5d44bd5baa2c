"""What follows a result where the proposer can say: a faster program of the option, a change of the tree."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from search import attempt, refining
from search.attempt import Bench
from search.option import PASSED
from search.proposers.base import BrokenOff, BudgetSpent, Improver, ProposerError, ProposerUnavailable, Refiner
from search.tree import TreeError

IN_VAIN = 1
"""After so many programs in a row that were no faster, an option is not improved any further."""


class Aftermath:
    """Knows what is still to be done about the latest result; that is in no event, so a resumed run lets it be."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._tree = bench.tree
        self._to_improve = self._to_refine = ""

    def of(self, option: str) -> None:
        """Take note of an attempt at ``option`` that is over."""
        node = self._tree[option]
        if node.parent and node.settled:
            self._to_refine = option
            self._to_improve = option if node.status == PASSED else ""

    def next(self) -> tuple[str, Coroutine[Any, Any, None]] | None:
        """Return what is to be done next and at which option, None when nothing is left of it."""
        option, self._to_improve = self._to_improve, ""
        if option and self._falls_short(option) and isinstance(self._bench.proposer, Improver):
            return option, self._improve(option)
        option, self._to_refine = self._to_refine, ""
        if option and isinstance(self._bench.proposer, Refiner) and not self._tree.is_pruned(option):
            return option, self._refine(option, self._bench.proposer)
        return None

    def _falls_short(self, option: str) -> bool:
        """Whether a faster program is worth looking for: less was found than predicted, and not tried in vain yet."""
        node = self._tree[option]
        short = self._tree.speedup_over_parent(option) < node.predicted
        return short and node.foretold and node.vain < IN_VAIN and not self._tree.is_pruned(option)

    async def _improve(self, option: str) -> None:
        try:
            if await attempt.improve(self._bench, option):
                self._to_improve = option
        except (ProposerUnavailable, BudgetSpent):
            self._to_improve = option
            raise

    async def _refine(self, option: str, proposer: Refiner) -> None:
        self._bench.tell(option, "thinking the tree over")
        try:
            refinement = await proposer.refine(self._bench.situation, option)
            refining.refine(self._tree, self._bench.emit, refinement, self._bench.proposer.name)
        except (ProposerUnavailable, BudgetSpent):
            self._to_refine = option
            raise
        except BrokenOff:
            raise
        except (ProposerError, TreeError) as error:
            text = f"a change of the tree was refused whole: {error}"
            self._bench.emit("note", text=text, level="warning", option=option)
