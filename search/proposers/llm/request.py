"""What is sent to an endpoint: the shape of a request, and the next one to try when it refuses a part of it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from profiles.models import TOKEN_LIMITS, Endpoint
from search.proposers.llm.asking import Ask
from search.proposers.llm.structure import in_words, response_format
from search.proposers.llm.usage import estimated_tokens
from search.proposers.llm.wordings import Complaint
from search.spending import LEAST_REPLY

TEMPLATE = 16
"""Tokens that the chat template of a model adds to a prompt, about."""


@dataclass(frozen=True)
class Shape:
    """What a request to one model of one endpoint may have in it.

    ``structured``: how JSON is asked for. ``usage``: whether to ask for counts of tokens. ``token_limit``: the field
    that limits the reply, and ``reply_tokens`` its value. ``system_role``: whether messages may have that role.
    """

    structured: str
    usage: bool
    token_limit: str
    reply_tokens: int
    system_role: bool = True


def first_shape(endpoint: Endpoint, model: str) -> Shape:
    """Return what the profile says ``model`` takes."""
    facts = endpoint.facts(model)
    reply_tokens = min(endpoint.reply_tokens, facts.reply_tokens) if facts else endpoint.reply_tokens
    usage = endpoint.usage != "always" and "stream_options" not in endpoint.refuses
    return Shape(endpoint.structured[0], usage, endpoint.token_limit, reply_tokens)


def adapted(endpoint: Endpoint, model: str, shape: Shape, complaint: Complaint) -> Shape | None:
    """Return ``shape`` without what ``complaint`` is about; None when nothing of it is left to change.

    Each change is made once and no other takes it back, so there are few of them whatever an endpoint says.
    """
    first = first_shape(endpoint, model)
    if complaint.about == "structured":
        later = endpoint.structured[endpoint.structured.index(shape.structured) + 1 :]
        return replace(shape, structured=later[0]) if later else None
    if complaint.about == "usage" and shape.usage:
        return replace(shape, usage=False)
    if complaint.about == "token_limit" and shape.token_limit == first.token_limit:
        other = next(name for name in TOKEN_LIMITS if name != shape.token_limit)
        return replace(shape, token_limit=other)
    if complaint.about == "reply_limit" and 0 < complaint.reply < shape.reply_tokens == first.reply_tokens:
        return replace(shape, reply_tokens=complaint.reply)
    if complaint.about == "system_role" and shape.system_role:
        return replace(shape, system_role=False)
    return None


def room_for_reply(complaint: Complaint, prompt: str, shape: Shape) -> int:
    """Return the tokens left for a reply when only prompt and limit together are too long; 0 when they aren't."""
    if complaint.about != "too_long" or not complaint.context:
        return 0
    room = complaint.context - (complaint.prompt or estimated_tokens(prompt)) - TEMPLATE
    return room if LEAST_REPLY <= room < shape.reply_tokens else 0


def prompt_text(ask: Ask, shape: Shape) -> str:
    """Return all that the model is to read, as one text."""
    return "\n".join(message["content"] for message in _messages(ask, shape))


def sent_characters(endpoint: Endpoint, ask: Ask, shape: Shape) -> int:
    """Return how many characters a model may have to read: the prompt, and the schema where one is sent beside it."""
    schema = response_format(endpoint, shape.structured, ask)
    return len(prompt_text(ask, shape)) + (len(json.dumps(schema)) if schema else 0)


def body(endpoint: Endpoint, model: str, ask: Ask, shape: Shape) -> dict[str, Any]:
    """Return the fields of a request. Fields of the profile that the client doesn't know are in ``extra_body``.

    What the endpoint refuses, and what has no value, is left out.
    """
    fields: dict[str, Any] = {
        "model": model,
        "messages": _messages(ask, shape),
        "stream": True,
        "stream_options": {"include_usage": True} if shape.usage else None,
        "response_format": response_format(endpoint, shape.structured, ask),
        shape.token_limit: shape.reply_tokens,
        "extra_body": dict(endpoint.request) or None,
    }
    return {name: value for name, value in fields.items() if value is not None and name not in endpoint.refuses}


def _messages(ask: Ask, shape: Shape) -> list[dict[str, str]]:
    plain = shape.structured == "fenced" and ask.plain_form
    words = ask.plain_form if plain else in_words(shape.structured, ask.schema)
    system = f"{ask.system}\n\n{words}" if words else ask.system
    if not shape.system_role:
        return [{"role": "user", "content": f"{system}\n\n{ask.user}"}]
    return [{"role": "system", "content": system}, {"role": "user", "content": ask.user}]
