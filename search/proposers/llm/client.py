"""The client of one endpoint: asks, takes the reply as it streams in, tries again where that helps, and says so."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openai

from profiles.models import Endpoint
from search.proposers.base import BudgetSpent
from search.proposers.llm.asking import Ask, Listener, ModelFault, Reply, Role, unheard
from search.proposers.llm.connection import connect
from search.proposers.llm.faults import MOST_WAIT, Sentences, Trouble
from search.proposers.llm.masking import KeyMask, key_of
from search.proposers.llm.remembered import recall, remember
from search.proposers.llm.request import (
    Shape,
    adapted,
    body,
    first_shape,
    prompt_text,
    room_for_reply,
    sent_characters,
)
from search.proposers.llm.streamed import Heard, NotTheProtocol, Patience, listen
from search.proposers.llm.structure import Kept, kept
from search.proposers.llm.usage import Read, as_tokens, estimated_tokens, spent_on, surely_more_than, was_cut
from search.proposers.llm.wordings import NOTHING, Complaint, read_error
from search.spending import Spent

RETRIES: Mapping[str, int] = {"rate_limit": 4, "server": 3, "dropped": 2, "timeout": 1, "unreachable": 1}
"""How often a question is asked again after each kind of trouble; after any other it isn't."""

FIRST_WAIT = 1.0
"""Seconds before the first retry of a kind; each next one waits twice as long, unless the endpoint names a time."""

CONNECT_SECONDS, BETWEEN_SECONDS = 10.0, 120.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Surroundings:
    """What a client takes from outside: whom it tells, its clock, how it waits, and where it keeps what it learns.

    ``memory`` None keeps nothing from run to run; ``patience`` None takes the profile's.
    """

    on_status: Callable[[str], None] = unheard
    memory: Path | None = None
    patience: Patience | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], datetime] = _utc_now


class EndpointClient:
    """Asks the models of ``endpoint``; see `search.proposers.llm.asking.ModelClient`.

    ``models`` names the model of each role, "" or left out for the endpoint's default. The key is read from ``environ``
    here, once; raises `ModelFault` when it is missing.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        models: Mapping[Role, str],
        environ: Mapping[str, str],
        surroundings: Surroundings | None = None,
    ) -> None:
        self.endpoint = endpoint
        defaults = {Role.SELECTOR: endpoint.selector, Role.GENERATOR: endpoint.generator}
        self._models = {role: models.get(role) or default for role, default in defaults.items()}
        self._around = surroundings or Surroundings()
        patience = self._around.patience
        self._patience = patience or Patience(CONNECT_SECONDS, endpoint.first_token_seconds, BETWEEN_SECONDS)
        key = key_of(endpoint, environ)
        self._mask = KeyMask(key)
        self._shapes: dict[str, Shape] = {}
        self._read: dict[str, Read] = {}
        self._openai = connect(endpoint, key, self._patience.connect)

    def __repr__(self) -> str:
        return f"EndpointClient({self.endpoint.name!r})"

    async def close(self) -> None:
        """Let go of the connections."""
        await self._openai.close()

    async def names(self) -> tuple[str, ...]:
        """Return the models that the endpoint lists, in its order; raises `ModelFault` when it isn't there.

        An answer that is no such list is an empty one: mlx_lm.server sends nothing when it has downloaded nothing.
        """
        names: list[str] = []

        async def listed() -> None:
            async with asyncio.timeout(self._patience.connect):
                # Plain JSON: the library's own page of models raises AttributeError on an answer of another form.
                with suppress(ValueError):
                    names.extend(_listed(await self._openai.get("/models", cast_to=object)))

        if trouble := await self._trouble_in(listed(), Sentences(self.endpoint, "", self._mask)):
            raise trouble.fault(Spent())
        return tuple(names)

    async def model_of(self, role: Role) -> str:
        """Return the model that answers for ``role``; raises `ModelFault` when the endpoint must name it and can't."""
        if not self._models[role]:
            names = await self.names()
            if not names:
                raise ModelFault(
                    "unknown_model",
                    f"{self.endpoint.title} has no model to ask. Load one there ({self.endpoint.setup[1]}).",
                )
            self._models[role] = names[0]
        return self._models[role]

    async def ask(self, ask: Ask, listener: Listener) -> Reply:
        """Return the reply to ``ask``; see `search.proposers.llm.asking.ModelClient`."""
        model = await self.model_of(ask.role)
        sentences = Sentences(self.endpoint, model, self._mask)
        shape = self._shape_of(model)
        if trouble := self._surely_too_long(model, ask, shape, sentences):
            raise trouble.fault(Spent())
        clock = asyncio.get_running_loop().time
        started, spent, tries, attempts, room = clock(), Spent(), Counter[str](), 0, 0
        while True:
            wanted = replace(shape, reply_tokens=room) if room else shape
            most, too_dear = await self._room(listener, model, ask, wanted)
            if trouble and too_dear:
                raise trouble.fault(spent, attempts, too_dear)
            if too_dear:
                raise BudgetSpent(too_dear)
            sent = replace(wanted, reply_tokens=most)
            attempts, begun, heard = attempts + 1, clock(), self._heard(listener, model, spent)
            trouble = await self._attempt(model, ask, sent, heard, sentences)
            if trouble is None or heard.characters or heard.usage or trouble.kind in ("dropped", "timeout"):
                written = f"{heard.reasoning}{heard.text}{heard.refusal}"
                after = 0 if heard.finish else heard.uncounted
                spent += spent_on(self.endpoint, model, heard.usage, prompt_text(ask, sent), written, after)
            listener.over(spent)
            if trouble is None:
                break
            if trouble.kind == "length" and most < wanted.reply_tokens:
                trouble = replace(trouble, remedy="The budget of the run leaves no more for it.")
            if other := self._adapted(model, shape, trouble):
                shape = other
            elif not room and (room := room_for_reply(trouble.complaint, prompt_text(ask, sent), shape)):
                self._around.on_status(f"{self.endpoint.title}: asking for a reply of at most {room} tokens.")
            elif not await self._waited(trouble, tries):
                raise trouble.fault(spent, attempts)
        structured = shape.structured
        if kept(heard.text, ask.schema, structured) is not Kept.AS_ASKED:
            structured = "fenced"
            self._keep(model, replace(shape, structured=structured))
        return Reply(
            text=heard.text,
            reasoning=heard.reasoning,
            model=self._mask.shown(heard.model) or model,
            finish=self._mask.shown(heard.finish),
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            counted=spent.counted,
            seconds=clock() - started,
            first_seconds=(heard.first_at or clock()) - begun,
            structured=structured,
            cost_usd=spent.cost_usd,
            attempts=attempts,
        )

    # -- one attempt --------------------------------------------------------------------------------------------------

    async def _room(self, listener: Listener, model: str, ask: Ask, shape: Shape) -> tuple[int, str]:
        """Return how long the reply may be, and which limit of the run keeps the request from being sent, "" if none.

        Prompts are estimated by what the model counted last, where that was more than usual.
        """
        characters, read = sent_characters(self.endpoint, ask, shape), self._read.get(model)
        known = math.ceil(characters * read.tokens / max(1, read.characters)) if read else 0
        try:
            return await listener.room(max(known, as_tokens(characters)), shape.reply_tokens), ""
        except BudgetSpent as spent:
            return 0, str(spent)

    def _heard(self, listener: Listener, model: str, before: Spent) -> Heard:
        """Return what takes in a reply; ``before`` is what the question has used up to now."""

        def count(usage: Mapping[str, Any]) -> None:
            now = spent_on(self.endpoint, model, usage, "", "")
            if now.counted:
                listener.counted(before + now)

        return Heard(self._mask, listener.hear, listener.think, count)

    async def _attempt(self, model: str, ask: Ask, shape: Shape, heard: Heard, sentences: Sentences) -> Trouble | None:
        """Ask once, into ``heard``; return why there is no usable reply, None if there is one."""
        fields = body(self.endpoint, model, ask, shape)
        trouble = await self._trouble_in(listen(self._openai, fields, self._patience, heard), sentences)
        whole = heard.finish and not heard.error  # then only its count of tokens didn't come
        if trouble is not None and not (whole and trouble.kind in ("dropped", "timeout")):
            return trouble
        return self._trouble_with(heard, model, ask, shape, sentences)

    async def _trouble_in(self, work: Coroutine[Any, Any, None], sentences: Sentences) -> Trouble | None:
        """Do ``work``; return what went wrong with the endpoint, None if nothing.

        Nothing is raised from inside the handlers, so that no fault drags along an exception that holds the request.
        """
        try:
            await work
        except TimeoutError:
            return sentences.trouble("timeout")
        except openai.APITimeoutError:  # only connecting is timed there
            return sentences.trouble("unreachable", f"no connection within {self._patience.connect:g} s")
        except openai.APIConnectionError as error:
            cause = error.__cause__
            unreachable = type(cause).__name__ in ("ConnectError", "ProxyError")
            return sentences.trouble("unreachable" if unreachable else "dropped", str(cause or ""))
        except openai.APIStatusError as error:
            said = read_error(_json_or_text(error.response.text), error.status_code)
            return sentences.of_error(said, error.response.headers, self._around.now())
        except openai.APIError as error:  # inside a stream
            return sentences.of_error(read_error({"error": error.body}), {}, self._around.now())
        except NotTheProtocol as error:
            return sentences.trouble(error.kind, str(error))
        except (ValueError, RecursionError):
            return sentences.trouble("dropped", "it sent something that is not JSON")
        return None

    def _trouble_with(self, heard: Heard, model: str, ask: Ask, shape: Shape, sentences: Sentences) -> Trouble | None:
        """Return why a stream that came to its end holds no usable reply, None if it does."""
        if heard.error:
            return sentences.of_error(read_error({"error": heard.error}), {}, self._around.now())
        if not heard.finish:
            return sentences.trouble("dropped", "its stream ended without a reason")
        if heard.finish == "error":
            return sentences.trouble("server")
        if heard.refusal or heard.finish.startswith("content_filter"):
            return sentences.trouble("refusal", heard.refusal or "its content filter stopped the reply")
        used = spent_on(self.endpoint, model, heard.usage, "", "")
        if used.counted and self._cut(model, Read(len(prompt_text(ask, shape)), used.prompt_tokens)):
            said = f"it read {used.prompt_tokens} tokens of about {estimated_tokens(prompt_text(ask, shape))}"
            found = Complaint("too_long", context=used.prompt_tokens)
            return sentences.trouble("too_long", f"{said}, and said nothing. {self._more_context()}", found)
        if heard.finish == "length":
            return _at_its_end(used, shape, sentences)
        if not heard.text.strip():
            about = Complaint("structured") if heard.reasoning.strip() else NOTHING
            return sentences.trouble("empty", "only reasoning, no reply" if about.about else "", about)
        if kept(heard.text, ask.schema, shape.structured) is Kept.NOT:
            return sentences.trouble("empty", "the reply is not the JSON that was asked for", Complaint("structured"))
        return None

    def _cut(self, model: str, read: Read) -> bool:
        before, self._read[model] = self._read.get(model), read
        return was_cut(read, before, cuts_prompts=self.endpoint.cuts_prompts)

    def _more_context(self) -> str:
        return f"Set a longer context ({self.endpoint.setup[1]})" if self.endpoint.cuts_prompts else ""

    def _surely_too_long(self, model: str, ask: Ask, shape: Shape, sentences: Sentences) -> Trouble | None:
        facts = self.endpoint.facts(model)
        if facts is None or not surely_more_than(prompt_text(ask, shape), facts.context):
            return None
        found = Complaint("too_long", context=facts.context)
        return sentences.trouble("too_long", f"it can read {facts.context} tokens", found)

    # -- another attempt ----------------------------------------------------------------------------------------------

    def _shape_of(self, model: str) -> Shape:
        if model not in self._shapes:
            first, memory = first_shape(self.endpoint, model), self._around.memory
            known = recall(memory, self.endpoint.base_url, model, self._around.now().date()) if memory else None
            usable = known is not None and known.structured in self.endpoint.structured
            self._shapes[model] = known if known is not None and usable else first
        return self._shapes[model]

    def _keep(self, model: str, shape: Shape) -> None:
        self._shapes[model] = shape
        if self._around.memory is not None:
            remember(self._around.memory, self.endpoint.base_url, model, shape, self._around.now().date())

    def _adapted(self, model: str, shape: Shape, trouble: Trouble) -> Shape | None:
        """Return, and keep, another shape for what the endpoint complained about; None when that is something else."""
        if trouble.kind not in ("bad_request", "server", "empty"):
            return None
        other = adapted(self.endpoint, model, shape, trouble.complaint)
        if other is not None:
            self._around.on_status(f"{trouble.what} Asking in another way.")
            self._keep(model, other)
        return other

    async def _waited(self, trouble: Trouble, tries: Counter[str]) -> bool:
        """Wait and return True when the question should be asked again after ``trouble``."""
        most = RETRIES.get(trouble.kind, 0)
        wait = FIRST_WAIT * 2 ** tries[trouble.kind] if trouble.retry_after is None else trouble.retry_after
        if tries[trouble.kind] >= most or wait > MOST_WAIT:
            return False
        tries[trouble.kind] += 1
        until = f"Asking again in {wait:.0f} s" if trouble.retry_after is None else f"Waiting {wait:.0f} s, as it asks"
        self._around.on_status(f"{trouble.what} {until} ({tries[trouble.kind]} of {most}).")
        await self._around.sleep(wait)
        return True


def _at_its_end(used: Spent, shape: Shape, sentences: Sentences) -> Trouble:
    """Return why a reply was cut: at its own limit, or because the context was full."""
    if used.counted and 0 < used.completion_tokens < shape.reply_tokens * 0.9:
        context = used.prompt_tokens + used.completion_tokens
        found = Complaint("context_full", context=context)  # a lower limit of the reply would not help
        return sentences.trouble("too_long", f"its context of {context} tokens was full before the reply ended", found)
    return sentences.trouble("length", f"{shape.reply_tokens} tokens")


def _listed(body: object) -> list[str]:
    models = body.get("data") if isinstance(body, dict) else None
    named = [each.get("id") for each in models if isinstance(each, dict)] if isinstance(models, list) else []
    return [name for name in named if isinstance(name, str) and name and name.isprintable()]


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
