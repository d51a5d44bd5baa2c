"""What a reply has used: tokens, counted or estimated, and their price; and whether a prompt was cut. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiles.models import Endpoint
from search.spending import Spent

CHARACTERS_PER_TOKEN = 3.5
"""Of prompts that mix English and code; between 3 and 4.5 with the tokenizers of today."""

MOST_CHARACTERS_PER_TOKEN = 6.0
"""No tokenizer makes fewer tokens of such a text, so a count below that means that less was read."""

NOTICEABLE = 1.1
"""How much longer a prompt must be for the same count of tokens to show that both were cut."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens ``text`` is."""
    return as_tokens(len(text))


def as_tokens(characters: int) -> int:
    """Return about how many tokens so many characters are."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def surely_more_than(text: str, tokens: int) -> bool:
    """Return whether ``text`` is more than ``tokens`` tokens with any tokenizer."""
    return len(text) > tokens * MOST_CHARACTERS_PER_TOKEN


def spent_on(
    endpoint: Endpoint, model: str, usage: Mapping[str, Any] | None, prompt: str, completion: str, uncounted: int = 0
) -> Spent:
    """Return what one attempt has used; without a count by the endpoint, estimated from the two texts.

    ``uncounted``: characters that came after the count.
    """
    prompt_tokens, completion_tokens = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    counted = prompt_tokens + completion_tokens > 0
    if counted:
        # Some endpoints leave the tokens of reasoning out of completion_tokens, yet bill them.
        completion_tokens = max(completion_tokens, _count(usage, "total_tokens") - prompt_tokens)
        completion_tokens += as_tokens(uncounted)
    else:
        prompt_tokens, completion_tokens = estimated_tokens(prompt), estimated_tokens(completion)
    cost = _cost(endpoint, model, usage, prompt_tokens, completion_tokens)
    return Spent(prompt_tokens, completion_tokens, cost, counted and not uncounted)


def _cost(
    endpoint: Endpoint, model: str, usage: Mapping[str, Any] | None, prompt_tokens: int, completion_tokens: int
) -> float | None:
    if not endpoint.billed:
        return 0.0
    charged = (usage or {}).get("cost")
    if isinstance(charged, (int, float)) and not isinstance(charged, bool) and math.isfinite(charged) and charged >= 0:
        return float(charged)
    facts = endpoint.facts(model)
    if facts is None or facts.input_usd is None or facts.output_usd is None:
        return None
    details = (usage or {}).get("prompt_tokens_details")
    cached = min(_count(details if isinstance(details, dict) else None, "cached_tokens"), prompt_tokens)
    cached_usd = facts.input_usd if facts.cached_usd is None else facts.cached_usd
    fresh = (prompt_tokens - cached) * facts.input_usd
    return (fresh + cached * cached_usd + completion_tokens * facts.output_usd) / 1e6


def _count(usage: Mapping[str, Any] | None, name: str) -> int:
    value = (usage or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


@dataclass(frozen=True)
class Read:
    """A prompt of so many ``characters`` that the endpoint says it read as so many ``tokens``."""

    characters: int
    tokens: int


def was_cut(read: Read, before: Read | None, *, cuts_prompts: bool) -> bool:
    """Return whether the endpoint read only a part of the prompt, and said nothing.

    Its count is then too small for any tokenizer (looked at where the profile says that prompts are cut), or the same
    as for a prompt of another length ``before``, with both too long for that count.
    """
    if cuts_prompts and read.characters > read.tokens * MOST_CHARACTERS_PER_TOKEN:
        return True
    if before is None or before.tokens != read.tokens:
        return False
    shorter, longer = sorted((read.characters, before.characters))
    return longer > shorter * NOTICEABLE and shorter > read.tokens * CHARACTERS_PER_TOKEN
