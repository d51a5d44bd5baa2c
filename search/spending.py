"""What a run may use and what it has used: evaluations, minutes, tokens and money. Pure.

A limit is enforced before something is begun: a request to a model is sent only when its longest reply still fits, and
that is made shorter where less is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from search.config import RunConfig
from search.events import Event

if TYPE_CHECKING:
    from search.tree import Tree


LEAST_REPLY = 2048
"""Tokens of a reply. Where there is room for fewer, it would hardly be whole: a prompt is shortened, or not sent."""

Price = Callable[[int, int], float | None]
"""The USD that so many tokens of a prompt and of its reply cost, None where no price is known."""


@dataclass(frozen=True)
class Budget:
    """What a run may use, 0 for no limit; ``minutes`` leave out pauses and the time between two runs."""

    evaluations: int = 0
    minutes: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    @staticmethod
    def of(config: RunConfig) -> Budget:
        """Return the limits that ``config`` sets."""
        return Budget(config.budget, config.minutes, config.tokens, config.usd)


@dataclass(frozen=True)
class Spent:
    """What a question has cost, all its requests together.

    ``counted`` is False where the endpoint didn't say and the tokens are estimated from the text. ``cost_usd`` is None
    where no price is known.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    counted: bool = True

    def __add__(self, other: Spent) -> Spent:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Spent(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
            self.counted and other.counted,
        )

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Account:
    """What models have used in a run: tokens, USD, replies; how many of these were malformed, had no price, or were
    counted by nobody, so that their tokens are estimates."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    replies: int = 0
    malformed: int = 0
    unpriced: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def spent(self) -> Spent:
        """Tokens and USD; a reply without a known price counts as nothing."""
        return Spent(self.prompt_tokens, self.completion_tokens, self.usd)

    def after(self, replied: Event) -> Account:
        """Return the account with one ``replied`` event more."""
        return Account(
            self.prompt_tokens + replied["prompt_tokens"],
            self.completion_tokens + replied["completion_tokens"],
            self.usd + replied["cost_usd"],
            self.replies + 1,
            self.malformed + (replied["outcome"] == "malformed"),
            self.unpriced + (not replied["priced"]),
            self.estimated + (not replied["counted"]),
        )


def reached(budget: Budget, tree: Tree, now: datetime) -> str:
    """Return which limit is reached, as a run's reason to stop; "" if none."""
    used = tree.account
    if budget.evaluations and tree.evaluations >= budget.evaluations:
        return f"the budget of {budget.evaluations} evaluations is spent"
    if budget.minutes and tree.seconds(now) >= budget.minutes * 60:
        return f"the budget of {budget.minutes:g} min is spent"
    if budget.tokens and used.tokens >= budget.tokens:
        return f"the budget of {budget.tokens} tokens is spent"
    if budget.usd and used.usd >= budget.usd:
        return f"the budget of ${budget.usd:g} is spent"
    return ""


def longest_reply(budget: Budget, used: Spent, prompt: int, reply: int, price: Price) -> int:
    """Return how many tokens of ``reply`` the budget leaves for the reply to a prompt of ``prompt`` tokens."""
    if budget.tokens:
        reply = min(reply, budget.tokens - used.tokens - prompt)
    if budget.usd:
        left = budget.usd - (used.cost_usd or 0.0) - (price(prompt, 0) or 0.0)
        million = price(0, 1_000_000) or 0.0
        if million or left < 0:
            # The small addition makes up for rounding.
            reply = min(reply, int(left / million * 1e6 + 1e-6) if million else 0)
    return max(0, reply)


def too_dear(budget: Budget, used: Spent, tokens: int, usd: float) -> str:
    """Return which limit a question of ``tokens`` tokens for ``usd`` would pass, as a reason to stop; "" if none."""
    if budget.tokens and used.tokens + tokens > budget.tokens:
        return (
            f"the budget of {budget.tokens} tokens is spent: {max(0, budget.tokens - used.tokens)} are left, "
            f"and the next question could take {tokens}"
        )
    used_usd = used.cost_usd or 0.0
    if budget.usd and used_usd + usd > budget.usd:
        return (
            f"the budget of ${budget.usd:g} is spent: ${max(0.0, budget.usd - used_usd):.4f} is left, "
            f"and the next question could cost ${usd:.4f}"
        )
    return ""


def seconds_left(budget: Budget, tree: Tree, now: datetime) -> float | None:
    """Return how long the run may still go on, None where there is no limit."""
    return max(0.0, budget.minutes * 60 - tree.seconds(now)) if budget.minutes else None


@dataclass(frozen=True)
class Clock:
    """How long a run was going: the time between its events, but for pauses and for gaps between two runs."""

    seconds: float = 0.0
    last: str = ""

    def after(self, event: Event, *, counts: bool) -> Clock:
        """Return the clock at ``event``; the time since the one before is added if it ``counts``."""
        gap = _gap(self.last, event.at) if counts else 0.0
        return replace(self, seconds=self.seconds + gap, last=event.at)

    def until(self, now: datetime) -> float:
        """Return the seconds at ``now``, when the run has been going since the last event."""
        return self.seconds + _gap(self.last, now.isoformat())


def _gap(start: str, end: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):  # no event before this one, or one whose moment has no time zone
        return 0.0
