"""What follows a result: what is learned from it, a faster program of the option, a change of the tree."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from search import attempt, owed, refining
from search.attempt import Bench
from search.events import IMPROVE, REFINE
from search.learning import Lesson
from search.proposers.base import Improver, NothingForNow, ProposerError, Refiner
from search.tree import TreeError


class Aftermath:
    """Does what is owed by the events, as `search.owed` reads them."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._tree = bench.tree

    def next(self) -> tuple[str, Coroutine[Any, Any, None]] | None:
        """Return what is to be done next and at which option, None when nothing is left of it."""
        option, kind = owed.follow_up(self._tree) or ("", "")
        proposer = self._bench.proposer
        if kind == IMPROVE and isinstance(proposer, Improver):
            return option, self._improve(option)
        if kind and isinstance(proposer, Refiner):
            return option, self.refine(option)
        return None

    async def learn(self, lessons: list[Lesson]) -> None:
        """Put on record what an earlier run did not come to."""
        for lesson in lessons:
            attempt.rate(self._bench, lesson)

    async def _improve(self, option: str) -> None:
        await attempt.improve(self._bench, option)

    async def refine(self, option: str) -> None:
        """Ask what the result of ``option`` changes in the tree, and do it."""
        proposer = self._bench.proposer
        if not isinstance(proposer, Refiner):
            return
        self._bench.tell(option, "thinking the tree over")
        try:
            refinement = await proposer.refine(self._bench.situation, option)
            refining.refine(self._tree, self._bench.emit, refinement, proposer.name)
        except NothingForNow:
            raise
        except (ProposerError, TreeError) as error:
            text = f"a change of the tree was refused whole: {error}"
            self._bench.emit("note", text=text, level="warning", option=option, about=REFINE)
