"""What the proposer asks of a model and gets back, whatever endpoint answers.

A key is in none of these: it is read from the environment when a client is made, and stays in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from search.spending import Spent


class Role(StrEnum):
    """Which of the two models is asked: the one that chooses optimizations, or the one that writes kernels."""

    SELECTOR = "selector"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Part:
    """A named piece of what a person would call the prompt. What has the lowest ``priority`` is shortened first.

    ``shorter`` are its shorter versions, one after the other; "" leaves it out, and without any it must stay.
    """

    name: str
    text: str
    priority: int
    shorter: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """One question to a model.

    ``call`` is initialize, propose, redirect, write, repair, improve or refine; ``option`` is what it is about.
    ``schema`` is the JSON schema of the reply, called ``schema_name`` where an endpoint wants a name. ``parts`` are
    what ``user`` was made of, so that it can be made again, shorter. ``plain_form`` says how to reply where nothing but
    words can ask for the form of a reply ("": one fenced JSON object that follows the schema).
    """

    role: Role
    call: str
    option: str
    system: str
    user: str
    schema_name: str
    schema: Mapping[str, Any]
    parts: tuple[Part, ...] = ()
    plain_form: str = ""


@dataclass(frozen=True)
class Reply:
    """A whole reply: never half of one, never an empty one.

    - ``text``: what the model answered; ``reasoning``: what it thought aloud before, where the endpoint tells.
    - ``model``: as the endpoint calls it. ``finish``: the endpoint's reason for stopping.
    - ``prompt_tokens``, ``completion_tokens``, ``cost_usd``, ``counted``: see `Spent`; attempts that failed are in it.
    - ``seconds``: from the first request to the end, waits included; ``first_seconds``: of the attempt that answered,
      until its first piece of text.
    - ``structured``: how the shape of the reply was asked for: ``schema``, ``object`` or ``fenced``.
    - ``attempts``: requests that were sent.
    """

    text: str
    reasoning: str
    model: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    counted: bool
    seconds: float
    first_seconds: float
    structured: str
    cost_usd: float | None
    attempts: int


POINTLESS = frozenset(
    {"rate_limit", "timeout", "dropped", "server", "wrong_key", "no_credit", "unknown_model", "unreachable"}
)
"""Faults that the next question would meet as well: the run should pause. Retries are spent when one is raised."""


class ModelFault(RuntimeError):
    """A question that got no usable reply; the message says what, from whom, and what a person can do.

    ``kind`` is one of `POINTLESS`, or of the question itself: ``too_long``, ``refusal``, ``empty``, ``length`` (cut at
    its token limit), ``bad_request``. ``retry_after``: seconds that the endpoint asked to wait. ``limit``: tokens of
    prompt and reply together that a ``too_long`` names. ``spent``: what the ``attempts`` have cost all the same.
    ``too_dear``: which limit of the run kept it from being asked again, "" if none did.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after: float | None = None,
        limit: int | None = None,
        spent: Spent | None = None,
        attempts: int = 0,
        too_dear: str = "",
    ) -> None:
        super().__init__(message)
        self.kind, self.retry_after, self.limit = kind, retry_after, limit
        self.spent = Spent() if spent is None else spent
        self.attempts, self.too_dear = attempts, too_dear

    @property
    def pointless(self) -> bool:
        """Whether asking anything more is pointless until a person or time has mended it."""
        return self.kind in POINTLESS


def unheard(text: str) -> None:
    """Take no notice."""


class Listener(Protocol):
    """Who asks: allows each request before it is sent, and reads along while the reply to it comes in."""

    async def room(self, prompt_tokens: int, reply_tokens: int) -> int:
        """Return how many of ``reply_tokens`` the reply to a request may have; the prompt has ``prompt_tokens``.

        Raises `search.proposers.base.BudgetSpent` when the request can't be sent within what is left.
        """

    def hear(self, text: str) -> None:
        """Take in a piece of the reply."""

    def think(self, thought: str) -> None:
        """Take in a piece of what the model thinks on the way to it."""

    def counted(self, spent: Spent) -> None:
        """Take note of all that the question has used up to now, as the endpoint counts it while the reply comes in."""

    def over(self, spent: Spent) -> None:
        """Take note that a request is over, and of all that the question has used up to now."""


class ModelClient(Protocol):
    """Asks the models of one endpoint."""

    async def ask(self, ask: Ask, listener: Listener) -> Reply:
        """Return the reply to ``ask``; ``listener`` is asked before each request, and hears what comes as it comes.

        Raises `ModelFault`, and `search.proposers.base.BudgetSpent` when not even one request may be sent. Can be
        cancelled at any moment. An attempt that breaks off and is made again starts from the beginning: only the
        `Reply` has the text that counts.
        """

    async def names(self) -> tuple[str, ...]:
        """Return the models that the endpoint lists; raises `ModelFault`. Shows whether it is there."""

    async def model_of(self, role: Role) -> str:
        """Return the model that answers for ``role``; raises `ModelFault` when none does."""

    async def close(self) -> None:
        """Let go of the connections."""
