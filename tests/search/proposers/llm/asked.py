"""A client on the model server, and one question for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from profiles.models import Endpoint
from search.proposers.llm.asking import Ask, ModelFault, Reply, Role
from search.proposers.llm.client import EndpointClient, Surroundings
from search.proposers.llm.streamed import Patience
from search.spending import Spent

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "rating": {"type": "number"}},
    "required": ["title", "rating"],
    "additionalProperties": False,
}
ANSWER = {"title": "K tile in threadgroup memory", "rating": 7.5}
SOON = Patience(connect=5, first=5, between=5)
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def ask(user: str = "Propose an option.", role: Role = Role.GENERATOR) -> Ask:
    return Ask(role, "propose", "o1", "You choose optimizations.", user, "options", SCHEMA)


class Reader:
    """Reads along, and allows every request with replies of at most ``most`` tokens."""

    def __init__(self, on_text: Callable[[str], None] = lambda _: None, most: int = 1_000_000) -> None:
        self.on_text, self.most = on_text, most
        self.thoughts: list[str] = []
        self.allowed: list[tuple[int, int]] = []
        self.counts: list[Spent] = []
        self.ends: list[Spent] = []

    async def room(self, prompt_tokens: int, reply_tokens: int) -> int:
        self.allowed.append((prompt_tokens, reply_tokens))
        return min(reply_tokens, self.most)

    def hear(self, text: str) -> None:
        self.on_text(text)

    def think(self, thought: str) -> None:
        self.thoughts.append(thought)

    def counted(self, spent: Spent) -> None:
        self.counts.append(spent)

    def over(self, spent: Spent) -> None:
        self.ends.append(spent)


@dataclass
class Client:
    """A client that doesn't wait between attempts, and keeps what it would have waited and told."""

    endpoint: Endpoint
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: Patience = field(default=SOON)
    memory: Path | None = None
    now: datetime = NOW
    told: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        around = Surroundings(self.told.append, self.memory, self.patience, self._sleep, lambda: self.now)
        self.client = EndpointClient(self.endpoint, {}, self.environ, around)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    async def ask(self, user: str = "Propose an option.", on_text: Callable[[str], None] | None = None) -> Reply:
        return await self.client.ask(ask(user), Reader(on_text or self.shown.append))

    async def fault(self, user: str = "Propose an option.") -> ModelFault:
        """Ask, and return the fault that must come."""
        with pytest.raises(ModelFault) as caught:
            await self.ask(user)
        assert caught.value.__context__ is None  # no exception with the request in it travels along
        return caught.value
