"""The run: propose, decide, write, evaluate, learn, until the budget is spent or nothing is left.

The state is the tree alone. Every turn of the loop looks at it and does the next thing: one attempt at one option, or
one call for more options. So a run that was broken off anywhere goes on from its events, and a person can decide at
any time: in between, or during an attempt, which is then broken off if it stands in a pruned branch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from profiles.hardware import HardwareProfile
from search import growth, policy, spending
from search.attempt import Bench, store
from search.audience import Audience, OnProgress, OnText, Question
from search.calibration import Calibration
from search.calls import Calls
from search.config import RunConfig
from search.drafting import draft
from search.evaluation.client import Evaluator
from search.events import ENGINE, PERSON, Event
from search.kernels.program import Program
from search.option import Option
from search.owed import half_done
from search.problems.definition import Problem
from search.proposers.base import (
    BrokenOff,
    BudgetSpent,
    Connected,
    NothingForNow,
    Proposal,
    Proposer,
    ProposerError,
    Redirection,
    Situation,
)
from search.recorder import Recorder, RecordError
from search.rules import may_edit, may_grow, may_redirect
from search.tree import Tree, TreeError
from search.turns import Turns
from search.work import Work, told

REPAIRS = 2

_DONE = {
    "approve": "the approval of",
    "prune": "the pruning of",
    "pin": "the pin on",
    "unpin": "the unpinning of",
    "redirected": "the redirection of",
    "edited": "the edit of",
    "option_added": "the option",
}


class EngineError(RuntimeError):
    """What a person asked for can't be done, in a sentence for them; nothing changed."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """One run. Start it with `run`; steer it with the other methods, at any time, from the same event loop.

    Every method that decides raises `EngineError` when the tree's rules refuse it or the run has stopped. On a tree
    that has events the run goes on: what was running waits again, and what was evaluated is not evaluated again.
    """

    def __init__(
        self,
        config: RunConfig,
        problem: Problem,
        profile: HardwareProfile,
        proposer: Proposer,
        evaluator: Evaluator,
        *,
        hints: Mapping[str, str] | None = None,
        tree: Tree | None = None,
        clock: Callable[[], datetime] = _utc_now,
        repairs: int = REPAIRS,
    ) -> None:
        self.config, self.problem, self.profile = config, problem, profile
        self.tree = Tree() if tree is None else tree
        self.failure: Exception | None = None
        self._proposer, self._evaluator = proposer, evaluator
        self._recorder = Recorder(self.tree, clock)
        self._clock, self._budget = clock, spending.Budget.of(config)
        self._audience = Audience()
        self._calls = Calls(self.tree, self._budget, self._emit, self._audience, clock)
        self._situation = Situation(problem, profile, self.tree, dict(hints or {}), self._calls)
        self._growth = growth.Growth(self._situation, proposer, self._emit, self._emit_from_work)
        bench = Bench(self._situation, proposer, evaluator, repairs, self._emit_from_work, self._audience.tell)
        self._turns = Turns(bench, self._growth)
        self._to_reopen = bool(self.tree.events)
        self._going = False
        self._changed = asyncio.Event()
        self._work = Work()
        self._busy_at = ""
        self._nothing_left_of = 0
        self._calibration: tuple[int, Calibration] = (-1, Calibration())

    # -- listening --------------------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with every event, in order, after the tree applied it; returns how to end that.

        A listener that raises ends the run: what can't be recorded must not go on.
        """
        return self._recorder.subscribe(listener)

    def on_progress(self, listener: OnProgress) -> Callable[[], None]:
        """Call ``listener`` with an option and what is being done with it, unrecorded; returns how to end that."""
        return self._audience.on_progress(listener)

    def on_text(self, listener: OnText) -> Callable[[], None]:
        """Call ``listener`` with each piece of a model's reply as it comes, unrecorded; returns how to end that."""
        return self._audience.on_text(listener)

    @property
    def asking(self) -> tuple[Question, ...]:
        """The questions to a model that wait for their reply, the oldest first."""
        return self._calls.under_way

    @property
    def calibration(self) -> Calibration:
        """Predicted speedups against those found so far."""
        if self._calibration[0] != self.tree.evaluations:
            self._calibration = (self.tree.evaluations, Calibration.of(self.tree))
        return self._calibration[1]

    def would_take(self) -> str:
        """Return the option that the policy would approve next by itself, "" if none."""
        choice = policy.own_choice(self.tree, self.calibration)
        return choice.option if choice else ""

    # -- what a person can do ---------------------------------------------------------------------------------------

    def approve(self, option: str) -> None:
        """Let ``option`` run; a pruned one comes back, one that failed tries afresh."""
        self._decide(option, "approve")

    def prune(self, option: str) -> None:
        """Leave ``option`` and what is under it alone from now on; what runs there is broken off."""
        self._decide(option, "prune")

    def pin(self, option: str) -> None:
        """Put ``option`` before all others."""
        self._decide(option, "pin")

    def unpin(self, option: str) -> None:
        """Take `pin` back."""
        self._decide(option, "unpin")

    async def redirect(self, option: str, guidance: str) -> Redirection:
        """Give ``option`` and its subtree ``guidance``; new options follow, or a question when it isn't clear.

        The guidance is on record, and holds, before the proposer is asked; it stays where that has no answer. Open
        options that are asked for move up, those that the guidance rules out are pruned; `undo` takes all of it back at
        once. Where a question comes back it is recorded with the guidance, which no longer holds. Nor does it when the
        call is cancelled in a run that goes on: whoever asked doesn't want it any more.
        """
        guidance = guidance.strip()
        with self._acting():
            may_redirect(self.tree, self._node(option), guidance)
            redirect = self._growth.redirect(option, guidance, self.would_take())
        self._audience.tell(option, "asking for options that follow the guidance")
        try:
            answer = await self._proposer.redirect(self._situation, option, guidance)
        except asyncio.CancelledError:
            if not self.tree.stopped:
                self._withdraw(redirect, PERSON)
            raise
        except ProposerError as error:
            with self._acting():
                raise EngineError(self._growth.keep(redirect, str(error))) from error
        with self._acting():
            may_redirect(self.tree, self._node(option), guidance)
            if redirect.seq in self.tree.undone:
                raise EngineError("what you said was taken back meanwhile")
            if answer.question:
                self._withdraw(redirect, ENGINE)
            self._growth.follow(redirect, answer)
        return answer

    def _withdraw(self, redirect: Event, by: str) -> None:
        if redirect.seq in self.tree.undoable():
            self._emit("undone", target=redirect.seq, by=by)

    async def propose(self, option: str) -> int:
        """Ask for more options under ``option``, which must have passed; returns how many are new."""
        with self._acting():
            may_grow(self.tree, self._node(option))
        self._audience.tell(option, "asking for options")
        try:
            proposals = await self._proposer.propose(self._situation, option)
        except ProposerError as error:
            raise EngineError(str(error)) from error
        with self._acting():
            may_grow(self.tree, self._node(option))
            return self._growth.add(option, proposals)

    async def draft(self, option: str) -> Program:
        """Return the program of ``option`` to edit: as written, else as the proposer would, else its parent's."""
        with self._acting():
            self._node(option)
        try:
            return await draft(self._situation, self._proposer, option)
        except TreeError as error:
            raise EngineError(str(error)) from error

    def edit(self, option: str, program: Program) -> None:
        """Let ``option`` run with a program of the person's own, also after it failed."""
        with self._acting():
            node = self._node(option)
            may_edit(self.tree, node)
            if node.failed and node.program == program.sha256:
                raise EngineError(f"the program of '{node.title}' is unchanged, and it has failed")
            choice = self.would_take()
            store(self.tree, self._emit, program)
            self._emit("edited", option=option, program=program.sha256, by=PERSON, policy_choice=choice)

    def add(self, parent: str, title: str, why: str = "") -> str:
        """Add an option of the person's own under ``parent``; returns its id. It runs once approved or edited."""
        with self._acting():
            self._node(parent)
            option = self.tree.free_id()
            proposal = Proposal(title, why, "", rating=5, confidence=0.5, difficulty=3, predicted=0)
            self._emit("option_added", **growth.fields(option, parent, proposal, PERSON))
            return option

    def undo(self) -> str:
        """Take back the person's last decision that can be taken back; returns which, in words."""
        with self._acting():
            event = self.tree.last_undoable()
            if event is None:
                raise EngineError("there is nothing to take back: what was decided has run already")
            title = self.tree[event["option"]].title
            self._emit("undone", target=event.seq, by=PERSON)
            return f"{_DONE[event.data.get('decision', event.kind)]} '{title}'"

    def pause(self) -> None:
        """Begin no new evaluation; the one that runs goes on to its end."""
        with self._acting():
            if self.tree.paused:
                raise EngineError("the run is paused already")
            self._emit("paused", by=PERSON)

    def resume(self) -> None:
        """End a pause."""
        with self._acting():
            if not self.tree.paused:
                raise EngineError("the run is not paused")
            self._emit("resumed", by=PERSON)

    def set_autopilot(self, on: bool) -> None:
        """Let the policy decide, or the person again."""
        with self._acting():
            if on != self.tree.autopilot:
                self._emit("autopilot", on=on, by=PERSON)

    def cancel_call(self) -> bool:
        """Break off what is being asked of a model, at the cost of what has come; returns whether there was any.

        What the run itself asked would be asked again at once, so the run pauses.
        """
        return self._calls.break_off(PERSON)

    def stop(self, reason: str) -> None:
        """End the run now: what runs is broken off and waits for a resume. Stopping twice is no error."""
        if not self.tree.stopped and not self._recorder.broken:
            with self._acting():
                self._calls.break_off()
                self._cancel(reason)
                self._emit("stopped", reason=reason or "stopped")

    # -- the loop ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until the budget is spent, nothing is left under autopilot, or `stop`; then close the evaluator.

        What stops a run is recorded; a fault of the program itself is also kept in ``failure``. Raises `EngineError`
        when an event could not be recorded. Cancelling it stops the run.
        """
        if self._going:
            raise EngineError("the run is going on already")
        self._going = True
        self._to_reopen = self._to_reopen or bool(self.tree.stopped)
        try:
            self._open()
            while not self.tree.stopped:
                self._changed.clear()
                if not await self._turn():
                    await self._wait()
                self._recorder.check()
        except RecordError as error:
            raise EngineError(str(error)) from error
        except asyncio.CancelledError:
            self.stop("interrupted")
            raise
        finally:
            self._going = False
            await self._evaluator.close()
            if isinstance(self._proposer, Connected):
                await self._proposer.close()

    async def _wait(self) -> None:
        """Wait until something changes, or the minutes are spent."""
        left = None if self.tree.paused else spending.seconds_left(self._budget, self.tree, self._clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._changed.wait()

    async def _turn(self) -> bool:
        """Do the next thing; return False when there is nothing to do until something changes."""
        if not self._growth.planted:
            return await self._do("", self._plant())
        if reason := spending.reached(self._budget, self.tree, self._clock()):
            self.stop(reason)
            return True
        if self.tree.paused:
            return False
        if step := self._turns.next(self.calibration):
            return await self._do(*step)
        return self._nothing_left()

    def _nothing_left(self) -> bool:
        """Say that nothing is left to try, again only when options have come since; end the run under autopilot."""
        if self.tree.frontier():
            return False
        words = self._growth.nothing_left()
        if self.tree.autopilot:
            self.stop(words)
            return True
        if self._nothing_left_of != len(self.tree.options):
            self._nothing_left_of = len(self.tree.options)
            self._emit("note", text=words, level="info", option="")
        return False

    async def _do(self, option: str, work: Coroutine[Any, Any, None]) -> bool:
        """Do ``work`` as a task of its own; stop the run on what no proposer or kernel is meant to cause."""
        self._busy_at = option
        try:
            error = await self._work.do(work)
        finally:
            self._busy_at = ""
        if isinstance(error, NothingForNow):
            self._wait_for_better(error)
        elif isinstance(error, Exception) and not isinstance(error, RecordError):
            self._stop_on(error, option)
        elif error is not None:
            raise error
        return True

    def _wait_for_better(self, error: NothingForNow) -> None:
        """Let what was begun wait, as nothing can be asked now: the run pauses, or stops when its budget is spent."""
        if self.tree.stopped:
            return
        self._cancel(str(error))
        if isinstance(error, BudgetSpent):
            self.stop(str(error))
            return
        if not self.tree.paused:
            by = PERSON if isinstance(error, BrokenOff) else ENGINE
            self._emit("paused", by=by, reason=str(error))

    def _stop_on(self, error: Exception, option: str) -> None:
        if self.tree.stopped:
            return
        self.failure = error
        words = told(error)
        self._emit("note", text=words, level="error", option=option if option in self.tree.options else "")
        self.stop(words)

    async def _plant(self) -> None:
        try:
            await self._growth.plant()
        except ProposerError as error:
            self.stop(f"there is no kernel to start from: {error}")

    # -- recording --------------------------------------------------------------------------------------------------

    def _decide(self, option: str, decision: str) -> None:
        with self._acting():
            self._emit("decided", option=option, decision=decision, by=PERSON, policy_choice=self.would_take())

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """Do what a person asked for: in an open run, refusals in words, and the loop takes notice afterwards."""
        try:
            self._open()
            yield
            self._cancel_what_was_pruned()
        except (TreeError, RecordError) as error:
            raise EngineError(str(error)) from error
        finally:
            if self._recorder.broken or self.tree.stopped:
                self._work.break_off()
            self._changed.set()

    def _open(self) -> None:
        if self._to_reopen:
            self._to_reopen = False
            self._calls.go_on_from(half_done(self.tree))
            self._emit("resumed", by=ENGINE)
            self._calls.give_up_lost()
        if self.tree.stopped:
            raise EngineError(f"the run has stopped ({self.tree.stopped}): resume it to go on")

    def _cancel_what_was_pruned(self) -> None:
        """Break off what the run is doing when that is in a branch that is pruned now."""
        if self._busy_at in self.tree.options and self.tree.is_pruned(self._busy_at):
            self._cancel("pruned")
            self._work.break_off()

    def _cancel(self, reason: str) -> None:
        if option := self._running():
            self._emit("cancelled", option=option, reason=reason)

    def _running(self) -> str:
        return next((option.id for option in self.tree.options.values() if option.running), "")

    def _node(self, option: str) -> Option:
        if option not in self.tree.options:
            raise EngineError(f"there is no option '{option}'")
        return self.tree[option]

    def _emit(self, kind: str, **data: Any) -> Event:
        return self._recorder.emit(kind, **data)

    def _emit_from_work(self, kind: str, **data: Any) -> Event:
        """Record what an attempt found; one that was broken off records nothing any more."""
        self._work.go_on()
        return self._emit(kind, **data)
