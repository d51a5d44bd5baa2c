"""A run's questions to a model: within its budget, on record whatever becomes of them, broken off at any moment."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from search.audience import Audience, Question
from search.events import Event
from search.proposers.base import BrokenOff, BudgetSpent
from search.spending import LEAST_REPLY, Budget, Spent, longest_reply, reached, too_dear
from search.tree import Tree

USED, MALFORMED, CANCELLED, LOST = "used", "malformed", "cancelled", "lost"

_ASKED = ("option", "call", "role", "model", "endpoint", "prompt_sha256")
_KILLED = "the program was killed while it was asked; its prompt counts, what came of a reply is not known"

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


class Call:
    """A question that waits for its reply; the client tells it what happens, see `search.proposers.llm.asking`."""

    def __init__(self, question: Question, calls: Calls, since: datetime) -> None:
        self.question, self.since = question, since
        self.task: asyncio.Future[Any] | None = None
        self.taken_down = False
        self.attempts = 0
        self._calls = calls
        self._counted = Spent()
        self._prompt_tokens = self._characters = 0
        self._at_most: Spent | None = None

    async def room(self, prompt_tokens: int, reply_tokens: int) -> int:
        """Return how many tokens the reply to a request may have; raise `BudgetSpent` when it can't be sent."""
        room = await self._calls.room(self, prompt_tokens, reply_tokens)
        self._calls.begin(self.question, prompt_tokens)
        self._at_most, self._prompt_tokens = self._counted + room, prompt_tokens
        self.attempts += 1
        return room.completion_tokens

    def hear(self, text: str) -> None:
        """Take in a piece of the reply."""
        self._take(text, thought=False)

    def think(self, thought: str) -> None:
        """Take in a piece of what the model thinks on the way to it."""
        self._take(thought, thought=True)

    def counted(self, spent: Spent) -> None:
        """Take note of what the question has used up to now by the endpoint's count; what comes then is estimated."""
        self._counted, self._prompt_tokens, self._characters = spent, 0, 0

    def over(self, spent: Spent) -> None:
        """Take note that a request is over, and what the question has used up to now."""
        self.counted(spent)
        self._at_most = None
        self._calls.has_changed()

    @property
    def spent(self) -> Spent:
        """What it has used: as it was counted last, and an estimate of what came since."""
        asked = self.question
        written = round(self._characters * asked.prompt_tokens / max(1, len(asked.prompt)))
        if not self._prompt_tokens + written:
            return self._counted
        usd = asked.usd(self._prompt_tokens, written)
        return self._counted + Spent(self._prompt_tokens, written, usd, counted=False)

    @property
    def at_most(self) -> Spent:
        """What it will have used when the request under way, if any, is over."""
        return self._at_most or self.spent

    def _take(self, piece: str, *, thought: bool) -> None:
        self._characters += len(piece)
        self._calls.read_out(self.question, piece, thought)


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
        self._under_way: list[Call] = []
        self._changed = asyncio.Event()
        self._half_done: Event | None = None
        self._noted: set[str] = set()
        self._sent: dict[Question, int] = {}

    @property
    def under_way(self) -> tuple[Question, ...]:
        """The questions that wait for their reply, the oldest first."""
        return tuple(call.question for call in self._under_way)

    async def ask(self, question: Question, asking: Callable[[Call], Awaitable[_Answer]]) -> _Answer:
        """Return what ``asking`` returns; it is given the call, which allows each request and hears what comes.

        Raises `BrokenOff` after `break_off`, and what ``asking`` raises. A question that was broken off, in any way, is
        on record then.
        """
        call = Call(question, self, self._now())
        call.task = asyncio.ensure_future(asking(call))
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
            self.has_changed()
        if call.task.cancelled():
            self._take_down(call)
            raise BrokenOff("the question to the model was broken off")
        answer: _Answer = call.task.result()
        return answer

    def break_off(self, by: str = "") -> bool:
        """Break off every question that is under way, and take down what it has used; returns whether there was any.

        ``by`` is a person where a person doesn't want the answer; otherwise it is asked again when the run goes on.
        """
        waiting = [call for call in self._under_way if call.task is not None and not call.task.done()]
        for call in waiting:
            self._take_down(call, by)
            if call.task is not None:
                call.task.cancel()
        return bool(waiting)

    def go_on_from(self, reply: Event | None) -> None:
        """Keep the reply that the run was broken off over, if there is one; see `search.owed.half_done`."""
        self._half_done = reply

    def take_recorded(self, call: str, option: str) -> str:
        """Return that reply, once, if it is to this question; "" if not. It is used in place of asking again."""
        event = self._half_done
        if event is None or (event["call"], event["option"]) != (call, option):
            return ""
        self._half_done = None
        self._noted = {later["text"] for later in self._tree.events[event.seq :] if later.kind == "note"}
        return self._tree.texts[event["text_sha256"]]

    async def room(self, call: Call, prompt_tokens: int, reply_tokens: int) -> Spent:
        """Return what a request of ``call`` may use: tokens of its prompt, and at most ``reply_tokens`` of a reply.

        What other questions may still use is taken; where that leaves too little, one of them is waited for. Raises
        `BudgetSpent` when the request can't be sent within what is left.
        """
        question, budget, least = call.question, self._budget, min(LEAST_REPLY, reply_tokens)
        usd = question.usd(prompt_tokens, least)
        if usd is None and budget.usd:
            raise BudgetSpent(
                f"no price is known for {question.model} at {question.endpoint}, so the budget of "
                f"${budget.usd:g} can't be kept: add its prices to the endpoint's profile, or set no limit"
            )
        while True:
            others = [other for other in self._under_way if other is not call]
            used = sum((other.spent for other in others), self._tree.account.spent + call.spent)
            dear = reached(budget, self._tree, self._now()) or too_dear(budget, used, prompt_tokens + least, usd or 0.0)
            if dear:
                raise BudgetSpent(dear)
            taken = sum((other.at_most for other in others), self._tree.account.spent + call.spent)
            most = longest_reply(budget, taken, prompt_tokens, reply_tokens, question.usd)
            if most >= least:
                return Spent(prompt_tokens, most, question.usd(prompt_tokens, most), counted=False)
            self.tell(question.option, "waiting until another question is answered: the budget has no room for both")
            await self._changed.wait()

    def has_changed(self) -> None:
        """Look again at what there is room for."""
        self._changed.set()
        self._changed = asyncio.Event()

    def begin(self, question: Question, prompt_tokens: int) -> None:
        """Put on record, once, that ``question`` is sent: should the program be killed, its prompt is known."""
        if question in self._sent:
            return
        usd = question.usd(prompt_tokens, 0)
        event = self._emit(
            "sent",
            **self._asked(question),
            prompt_tokens=prompt_tokens,
            cost_usd=float(usd or 0.0),
            priced=usd is not None,
        )
        self._sent[question] = event.seq

    def give_up_lost(self) -> None:
        """Put on record what the questions used that were under way when an earlier run was killed: their prompts."""
        for sent in list(self._tree.questions.values()):
            asked = {name: sent[name] for name in _ASKED if name != "option"}
            option = sent["option"] if sent["option"] in self._tree.options else ""
            usage = Usage(sent["prompt_tokens"], cost_usd=sent["cost_usd"] if sent["priced"] else None)
            self._replied({"option": option, **asked}, LOST, "", usage, _KILLED, question=sent.seq)

    def record(self, question: Question, outcome: str, text: str, usage: Usage, note: str = "", by: str = "") -> None:
        """Put on record what became of ``question``; ``text`` is the reply, stored once."""
        self._half_done, self._noted = None, set()
        digest = ""
        if text:
            digest = hashlib.sha256(text.encode()).hexdigest()
            if digest not in self._tree.texts:
                self._emit("text", sha256=digest, text=text)
        sent = self._sent.pop(question, 0)
        more = ({"question": sent} if sent else {}) | ({"by": by} if by else {})
        self._replied(self._asked(question), outcome, digest, usage, note, **more)

    def _asked(self, question: Question) -> dict[str, str]:
        """Return who is asked what, as events say it."""
        return {
            "option": question.option if question.option in self._tree.options else "",
            "call": question.call,
            "role": question.role,
            "model": question.model,
            "endpoint": question.endpoint,
            "prompt_sha256": hashlib.sha256(question.prompt.encode()).hexdigest(),
        }

    def _replied(
        self, asked: Mapping[str, str], outcome: str, digest: str, usage: Usage, note: str, **more: Any
    ) -> None:
        self._emit(
            "replied",
            **asked,
            served_as=usage.served_as,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            counted=usage.counted,
            cost_usd=float(usage.cost_usd or 0.0),
            priced=usage.cost_usd is not None,
            seconds=round(usage.seconds, 3),
            first_seconds=round(usage.first_seconds, 3),
            attempts=usage.attempts,
            structured=usage.structured,
            text_sha256=digest,
            outcome=outcome,
            note=note,
            **more,
        )

    def read_out(self, question: Question, piece: str, thought: bool) -> None:
        """Pass on, unrecorded, a piece of the reply to ``question``."""
        self._audience.read_out(question, piece, thought)

    def tell(self, option: str, stage: str) -> None:
        """Say, unrecorded, what is being done about ``option``."""
        self._audience.tell(option, stage)

    def note(self, text: str, option: str, level: str = "info", about: str = "") -> None:
        """Put something to read on record, unless it has been since a reply that is used from there.

        Fields as in the ``note`` event.
        """
        if text in self._noted:
            return
        option = option if option in self._tree.options else ""
        self._emit("note", text=text, level=level, option=option, about=about)

    def _take_down(self, call: Call, by: str = "") -> None:
        """Record, once, what a question has used that was broken off ``by`` a person, or as the run ended."""
        if call.taken_down or self._tree.stopped:
            return
        call.taken_down = True
        used = call.spent
        usage = Usage(
            used.prompt_tokens,
            used.completion_tokens,
            used.cost_usd,
            used.counted,
            seconds=(self._now() - call.since).total_seconds(),
            attempts=call.attempts,
        )
        self.record(call.question, CANCELLED, "", usage, "broken off", by)
