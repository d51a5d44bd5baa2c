"""Ways to get JSON from a model, from the strictest to the most modest, and whether an endpoint keeps to one. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from profiles.models import Endpoint
from search.proposers.llm.asking import Ask
from search.proposers.llm.reply_text import MalformedReply, answer_in, object_in

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}

_IN_WORDS = {
    "object": "Reply with one JSON object and nothing else. It must follow this JSON schema:",
    "fenced": (
        "Unless another form is asked for above, reply with one JSON object in one fenced block: a line ```json, the "
        "object, a line ```. Write no other block, and nothing after it. The object must follow this JSON schema:"
    ),
}


class Kept(Enum):
    """How a reply keeps to the structure that was asked for: as asked, in another form, or not at all."""

    AS_ASKED = auto()
    OTHERWISE = auto()
    NOT = auto()


def in_words(structured: str, schema: Mapping[str, Any]) -> str:
    """Return what a prompt must say of the reply's form, "" where the request says it."""
    words = _IN_WORDS.get(structured)
    return f"{words}\n{json.dumps(schema, ensure_ascii=False)}" if words else ""


def response_format(endpoint: Endpoint, structured: str, ask: Ask) -> dict[str, Any] | None:
    """Return the field of a request that asks for the reply's form, None where words do."""
    if structured == "fenced":
        return None
    if structured == "object" and endpoint.object_as == "json_object":
        return {"type": "json_object"}
    if structured == "object":
        return {"type": "json_schema", "json_schema": {"name": "object", "schema": dict(ANY_OBJECT)}}
    named: dict[str, Any] = {"name": ask.schema_name, "schema": dict(ask.schema)}
    if endpoint.strict:
        named["strict"] = True
    return {"type": "json_schema", "json_schema": named}


def kept(text: str, schema: Mapping[str, Any], structured: str) -> Kept:
    """Return whether a reply shows that the endpoint held the model to what was asked for.

    An object that begins as one and then doesn't read is a mistake of the model, which is told of it elsewhere.
    """
    if structured == "fenced":
        return Kept.AS_ASKED
    try:
        answer = answer_in(text)
    except MalformedReply:
        return Kept.AS_ASKED
    if not answer.startswith("{"):
        return Kept.OTHERWISE if "{" in answer else Kept.NOT
    try:
        found = object_in(answer)
    except MalformedReply:
        return Kept.AS_ASKED
    unlike = structured == "schema" and not set(schema.get("required", ())) <= set(found)
    return Kept.NOT if unlike else Kept.AS_ASKED
