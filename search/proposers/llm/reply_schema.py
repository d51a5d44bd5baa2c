"""The JSON schema of a reply as strict endpoints take it: closed objects, every key required, no references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_KEPT = ("type", "description", "enum", "properties", "items", "anyOf")
"""Bounds are not among them: some endpoints refuse them. They stand in the descriptions, and are checked."""


def schema_of(reply: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of ``reply``: what is optional for us is required here, as strict endpoints want it."""
    schema = reply.model_json_schema()
    return _closed(schema, schema.get("$defs", {}))


def _closed(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        schema = {**named[schema["$ref"].rpartition("/")[2]], **schema}
    kept: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if "properties" in kept:
        kept.pop("description", None)  # the docstring of its class
        kept["properties"] = {name: _closed(inner, named) for name, inner in kept["properties"].items()}
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    if "items" in kept:
        kept["items"] = _closed(kept["items"], named)
    if "anyOf" in kept:
        kept["anyOf"] = [_closed(inner, named) for inner in kept["anyOf"]]
    return kept
