"""A run's questions to a model: within its budget, on record whatever becomes of them, broken off at any moment."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from search.audience import Audience, Question
from search.proposers.base import BrokenOff, BudgetSpent
from search.spending import Budget, too_dear
from search.tree import Tree

USED, MALFORMED, CANCELLED = "used", "malformed", "cancelled"

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Usage:
    """What a question has used and how long it took; fields as in the ``replied`` event."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    counted: bool = False
    served_as: str = ""
    seconds: float = 0.0
    first_seconds: float = 0.0
    attempts: int = 1
    structured: str = ""


@dataclass
class _UnderWay:
    question: Question
    since: datetime
    heard: list[str] = field(default_factory=list)
    task: asyncio.Future[Any] | None = None
    taken_down: bool = False


Hear = Callable[[str], None]


class Calls:
    """The questions of one run. ``emit`` records an event; ``audience`` reads along."""

    def __init__(
        self,
        tree: Tree,
        budget: Budget,
        emit: Callable[..., Any],
        audience: Audience,
        now: Callable[[], datetime],
    ) -> None:
        self._tree, self._budget, self._emit, self._audience, self._now = tree, budget, emit, audience, now
        self._under_way: list[_UnderWay] = []

    @property
    def under_way(self) -> tuple[Question, ...]:
        """The questions that wait for their reply, the oldest first."""
        return tuple(call.question for call in self._under_way)

    async def ask(self, question: Question, asking: Callable[[Hear, Hear], Awaitable[_Answer]]) -> _Answer:
        """Return what ``asking`` returns; it is given what to call with each piece of the reply, and of thoughts.

        Raises `BudgetSpent` before anything is asked when the longest reply would pass the budget, `BrokenOff` after
        `break_off`, and what ``asking`` raises. A question that was broken off, in any way, is on record then.
        """
        self._afford(question)
        call = _UnderWay(question, self._now())

        def hear(piece: str, thought: bool) -> None:
            call.heard.append(piece)
            self._audience.read_out(question, piece, thought)

        call.task = asyncio.ensure_future(asking(partial(hear, thought=False), partial(hear, thought=True)))
        self._under_way.append(call)
        try:
            await asyncio.wait({call.task})
        except asyncio.CancelledError:
            call.task.cancel()
            await asyncio.gather(call.task, return_exceptions=True)
            self._take_down(call)
            raise
        finally:
            self._under_way.remove(call)
        if call.task.cancelled():
            self._take_down(call)
            raise BrokenOff("the question to the model was broken off")
        answer: _Answer = call.task.result()
        return answer

    def break_off(self) -> bool:
        """Break off every question that is under way, and take down what it has used; returns whether there was any."""
        for call in self._under_way:
            self._take_down(call)
            if call.task is not None:
                call.task.cancel()
        return bool(self._under_way)

    def record(self, question: Question, outcome: str, text: str, usage: Usage, note: str = "") -> None:
        """Put on record what became of ``question``; ``text`` is the reply, stored once."""
        digest = ""
        if text:
            digest = hashlib.sha256(text.encode()).hexdigest()
            if digest not in self._tree.texts:
                self._emit("text", sha256=digest, text=text)
        self._emit(
            "replied",
            option=question.option if question.option in self._tree.options else "",
            call=question.call,
            role=question.role,
            model=question.model,
            served_as=usage.served_as,
            endpoint=question.endpoint,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            counted=usage.counted,
            cost_usd=float(usage.cost_usd or 0.0),
            priced=usage.cost_usd is not None,
            seconds=round(usage.seconds, 3),
            first_seconds=round(usage.first_seconds, 3),
            attempts=usage.attempts,
            structured=usage.structured,
            prompt_sha256=hashlib.sha256(question.prompt.encode()).hexdigest(),
            text_sha256=digest,
            outcome=outcome,
            note=note,
        )

    def tell(self, option: str, stage: str) -> None:
        """Say, unrecorded, what is being done about ``option``."""
        self._audience.tell(option, stage)

    def note(self, text: str, option: str, level: str = "info", about: str = "") -> None:
        """Put something to read on record; fields as in the ``note`` event."""
        option = option if option in self._tree.options else ""
        self._emit("note", text=text, level=level, option=option, about=about)

    def _afford(self, question: Question) -> None:
        usd = question.usd(question.prompt_tokens, question.reply_tokens)
        if usd is None and self._budget.usd:
            raise BudgetSpent(
                f"no price is known for {question.model} at {question.endpoint}, so the budget of "
                f"${self._budget.usd:g} can't be kept: add its prices to the endpoint's profile, or set no limit"
            )
        if reason := too_dear(self._budget, self._tree, question.prompt_tokens + question.reply_tokens, usd or 0.0):
            raise BudgetSpent(reason)

    def _take_down(self, call: _UnderWay) -> None:
        """Record, once, what a question has used that was broken off: estimated, as nobody counted it."""
        if call.taken_down or self._tree.stopped:
            return
        call.taken_down = True
        text = "".join(call.heard)
        tokens = round(len(text) * call.question.prompt_tokens / max(1, len(call.question.prompt)))
        usage = Usage(
            call.question.prompt_tokens,
            tokens,
            call.question.usd(call.question.prompt_tokens, tokens),
            seconds=(self._now() - call.since).total_seconds(),
        )
        self.record(call.question, CANCELLED, "", usage, "broken off")
