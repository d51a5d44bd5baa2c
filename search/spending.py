"""What a run may use and what it has used: evaluations, minutes, tokens and money. Pure.

A limit is enforced before something is begun: a model is asked only when the longest reply still fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from search.config import RunConfig
from search.events import Event

if TYPE_CHECKING:
    from search.tree import Tree


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
class Account:
    """What models have used in a run: tokens, USD, replies, and how many of these were malformed or had no price."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    replies: int = 0
    malformed: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def after(self, replied: Event) -> Account:
        """Return the account with one ``replied`` event more."""
        return Account(
            self.prompt_tokens + replied["prompt_tokens"],
            self.completion_tokens + replied["completion_tokens"],
            self.usd + replied["cost_usd"],
            self.replies + 1,
            self.malformed + (replied["outcome"] == "malformed"),
            self.unpriced + (not replied["priced"]),
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


def too_dear(budget: Budget, tree: Tree, tokens: int, usd: float) -> str:
    """Return which limit a question of at most ``tokens`` tokens for ``usd`` could pass, as a reason to stop."""
    used = tree.account
    if budget.tokens and used.tokens + tokens > budget.tokens:
        return (
            f"the budget of {budget.tokens} tokens is spent: {max(0, budget.tokens - used.tokens)} are left, "
            f"and the next question could take {tokens}"
        )
    if budget.usd and used.usd + usd > budget.usd:
        return (
            f"the budget of ${budget.usd:g} is spent: ${max(0.0, budget.usd - used.usd):.4f} is left, "
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
