"""What a run does next: follow up a result, make an attempt, or ask for options. Each is done as work of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from search import owed, policy
from search.aftermath import Aftermath
from search.attempt import Bench, attempt
from search.calibration import Calibration
from search.events import AUTOPILOT, REFINE, Event
from search.growth import Growth

Step = tuple[str, Coroutine[Any, Any, None]]
"""An option, and what is to be done about it."""


class Turns:
    """Looks at the tree and says what comes next."""

    def __init__(self, bench: Bench, growth: Growth) -> None:
        self._bench, self._growth = bench, growth
        self._aftermath = Aftermath(bench)
        self._left_over = list(self._from_before())

    def next(self, calibration: Calibration) -> Step | None:
        """Return the next step, None when there is nothing to do until something changes.

        First comes what an earlier run was killed over. Under autopilot what is missing is asked for before an attempt;
        where a person decides, afterwards.
        """
        if self._left_over:
            option, begin = self._left_over.pop(0)
            return option, begin()
        if following := self._aftermath.next():
            return following
        if self._bench.tree.autopilot:
            return self._growing() or self._attempt(calibration)
        return self._attempt(calibration) or self._growing()

    def _from_before(self) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, None]]]]:
        """Yield what the events of the tree lack: of what was learned last, and of what the last reply brought."""
        tree = self._bench.tree
        if lessons := owed.lessons_owed(tree):
            yield lessons[0].option, partial(self._aftermath.learn, lessons)
        redirect = owed.redirect_owed(tree)
        if redirect is not None:
            yield redirect["option"], partial(self._redirect, redirect)
        reply = owed.half_done(tree)
        if reply is not None and owed.changes_the_tree(reply):
            goes_on = self._aftermath.refine if reply["call"] == REFINE else self._growth.catch_up
            yield reply["option"], partial(goes_on, reply["option"])

    async def _redirect(self, redirect: Event) -> None:
        if owed.holds(self._bench.tree, redirect):
            self._bench.tell(redirect["option"], "asking for options that follow the guidance")
            await self._growth.catch_up_redirect(redirect)

    def _attempt(self, calibration: Calibration) -> Step | None:
        choice = policy.choose(self._bench.tree, calibration, approved_only=not self._bench.tree.autopilot)
        return (choice.option, self._try(choice)) if choice else None

    async def _try(self, choice: policy.Choice) -> None:
        """Make one attempt at what the policy puts first, after letting it approve that by itself."""
        option, bench = choice.option, self._bench
        if not bench.tree[option].approved_by:
            bench.emit("decided", option=option, decision="approve", by=AUTOPILOT, policy_choice=option, why=choice.why)
        await attempt(bench, option)

    def _growing(self) -> Step | None:
        option = self._growth.place()
        return (option, self._grow(option)) if option else None

    async def _grow(self, option: str) -> None:
        self._bench.tell(option, "asking for options")
        await self._growth.grow(option)
