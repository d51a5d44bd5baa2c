"""One question to a model until there is an answer to use: shortened when too long, sent back once when malformed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn, TypeVar

from profiles.models import Endpoint
from search.audience import Question
from search.calls import MALFORMED, USED, Calls, Usage
from search.proposers.base import BudgetSpent, ProposerError, ProposerUnavailable
from search.proposers.llm.asking import Ask, ModelClient, ModelFault, Reply, Role
from search.proposers.llm.prompting import ask_again, prompt_tokens, shorter
from search.proposers.llm.reply_text import MalformedReply, without_thoughts
from search.spending import LEAST_REPLY

IN_A_ROW = 3
"""After so many questions in a row without an answer the model is taken to be of no use, and the run pauses."""

_AGAIN: Mapping[str, str] = {
    "empty": "The reply was empty: there is no answer in it.",
    "length": "The reply was cut off at its limit of tokens before it was whole. Be briefer.",
}
"""Faults after which a question is asked once more, as after a malformed reply, and what is said of them."""

OpenClient = Callable[[Callable[[str], None]], ModelClient]
"""Makes a client that tells what it waits for; raises `ModelFault` when the key is missing."""

_Answer = TypeVar("_Answer")


class Conversation:
    """Asks the two models of one endpoint, on record. ``models`` are their names, "" for those of the endpoint."""

    def __init__(self, endpoint: Endpoint, models: Mapping[Role, str], open_client: OpenClient) -> None:
        self._endpoint, self._open_client = endpoint, open_client
        self._models = dict(models)
        self._client: ModelClient | None = None
        self._fits: dict[str, int] = {}
        self._told: dict[str, str] = {}
        self._unanswered = 0
        self._latest: tuple[Calls, str] | None = None

    def model(self, role: Role) -> str:
        """Return the name of the model of ``role``, as far as it is known."""
        defaults = {Role.SELECTOR: self._endpoint.selector, Role.GENERATOR: self._endpoint.generator}
        return self._models.get(role) or defaults[role]

    async def ready(self) -> None:
        """Raise `ProposerUnavailable` unless the endpoint is there, takes the key and has models to ask."""
        try:
            client = self._connected()
            await client.names()
        except ModelFault as fault:
            # An endpoint that lists no models may answer all the same.
            if fault.kind in ("unreachable", "wrong_key", "no_credit"):
                raise ProposerUnavailable(_with_way_out(fault)) from None
        for role in Role:
            await self._model_of(role)

    async def close(self) -> None:
        """Let go of the connections; the next question makes new ones."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def ask(self, calls: Calls, ask: Ask, read: Callable[[str], _Answer], recorded: str = "") -> _Answer:
        """Return what ``read`` makes of the reply to ``ask``; of ``recorded``, without asking, where that reads.

        A reply that ``read`` finds malformed is sent back once with what it said. Raises `ProposerError` when this
        question got no answer, `NothingForNow` when no other one would either.
        """
        model = await self._model_of(ask.role)
        if recorded:
            with suppress(MalformedReply):
                return read(recorded)
        ask = self._fitting(calls, ask, model)
        sent_back, undone = False, ""
        while True:
            question = self._question(ask, model)
            self._latest = (calls, ask.option)
            try:
                reply = await self._reply(calls, question, ask)
            except BudgetSpent as spent:
                raise BudgetSpent(f"{spent}{undone}") from None
            except ModelFault as fault:
                if fault.too_dear:
                    raise BudgetSpent(f"{fault.too_dear}; it was not asked again") from None
                if fault.pointless:
                    raise ProposerUnavailable(_with_way_out(fault)) from None
                if fault.kind == "too_long" and (less := self._shortened(calls, ask, model, fault.limit)):
                    ask, undone = less, "; the shorter prompt was not sent"
                    continue
                complaint, text = _AGAIN.get(fault.kind, ""), ""
                if not complaint or sent_back:
                    self._give_up(str(fault))
            else:
                text = reply.text
                try:
                    answer = read(text)
                except MalformedReply as malformed:
                    complaint = str(malformed)
                    calls.record(question, MALFORMED, text, _usage(reply), complaint)
                    if sent_back:
                        self._give_up(f"{model} gave a reply that can't be used, twice: {complaint}")
                else:
                    calls.record(question, USED, text, _usage(reply))
                    self._unanswered = 0
                    return answer
            ask = ask_again(ask, without_thoughts(text), complaint)
            sent_back, undone = True, "; the reply was not sent back"

    async def _reply(self, calls: Calls, question: Question, ask: Ask) -> Reply:
        """Return the reply to one question; a fault is put on record with what it has cost."""
        client, clock = self._connected(), asyncio.get_running_loop().time
        started = clock()
        try:
            return await calls.ask(question, lambda call: client.ask(ask, call))
        except ModelFault as fault:
            calls.record(question, fault.kind, "", _spent(fault, clock() - started), str(fault))
            raise

    def _give_up(self, why: str) -> NoReturn:
        self._unanswered += 1
        if self._unanswered >= IN_A_ROW:
            count, self._unanswered = self._unanswered, 0
            raise ProposerUnavailable(
                f"{count} questions in a row to {self._endpoint.title} got no usable answer; the last one: {why}"
            )
        raise ProposerError(why)

    # -- prompts that are too long ------------------------------------------------------------------------------------

    def _fitting(self, calls: Calls, ask: Ask, model: str) -> Ask:
        """Return ``ask``, shortened to what the model turned out to read."""
        fits = self._fits.get(model, 0)
        if not fits or prompt_tokens(ask) <= fits:
            return ask
        return self._less(calls, ask, fits) or ask

    def _shortened(self, calls: Calls, ask: Ask, model: str, limit: int | None) -> Ask | None:
        """Return ``ask`` shorter by a step at least, None when nothing can go any more."""
        if limit:
            self._fits[model] = max(limit - LEAST_REPLY, limit // 2)
        return self._less(calls, ask, min(self._fits.get(model, 0), prompt_tokens(ask) - 1))

    def _less(self, calls: Calls, ask: Ask, most_tokens: int) -> Ask | None:
        less = shorter(ask, most_tokens)
        if less is None:
            return None
        if self._told.get(ask.call) != less.told:
            self._told[ask.call] = less.told
            calls.note(f"the prompt was too long for the model, so it was cut: {less.told}", ask.option, "warning")
        return less.ask

    # -- the client ---------------------------------------------------------------------------------------------------

    def _connected(self) -> ModelClient:
        if self._client is None:
            self._client = self._open_client(self._on_status)
        return self._client

    def _on_status(self, text: str) -> None:
        if self._latest is not None:
            calls, option = self._latest
            calls.tell(option, text)

    async def _model_of(self, role: Role) -> str:
        try:
            self._models[role] = await self._connected().model_of(role)
        except ModelFault as fault:
            raise ProposerUnavailable(_with_way_out(fault)) from None
        return self._models[role]

    def _question(self, ask: Ask, model: str) -> Question:
        return Question(
            ask.option,
            ask.call,
            ask.role.value,
            model,
            self._endpoint.name,
            f"{ask.system}\n{ask.user}",
            prompt_tokens(ask),
            lambda prompt, completion: price(self._endpoint, model, prompt, completion),
        )


def price(endpoint: Endpoint, model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return the USD that so many tokens cost by the endpoint's profile, None where no price is known."""
    if not endpoint.billed:
        return 0.0
    facts = endpoint.facts(model)
    if facts is None or facts.input_usd is None or facts.output_usd is None:
        return None
    return (prompt_tokens * facts.input_usd + completion_tokens * facts.output_usd) / 1e6


def _with_way_out(fault: ModelFault) -> str:
    words = str(fault)
    return words if "catalogue" in words else f"{words} --proposer catalogue needs no model."


def _usage(reply: Reply) -> Usage:
    return Usage(
        reply.prompt_tokens,
        reply.completion_tokens,
        reply.cost_usd,
        reply.counted,
        reply.model,
        reply.seconds,
        reply.first_seconds,
        reply.attempts,
        reply.structured,
    )


def _spent(fault: ModelFault, seconds: float) -> Usage:
    used = fault.spent
    return Usage(
        used.prompt_tokens,
        used.completion_tokens,
        used.cost_usd,
        used.counted,
        seconds=seconds,
        attempts=fault.attempts,
    )
