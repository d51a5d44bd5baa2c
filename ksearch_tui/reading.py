"""A model's reply made readable: a kernel inside JSON with its lines as lines. What stands there stays inert."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ksearch_tui.inert import inert

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": ""}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_INDENT = "  "


def as_it_comes(text: str) -> tuple[str, str]:
    """Return what can be shown of a reply that is still growing, and what waits for the next piece.

    The escapes of JSON for lines, tabs and quotes become what they stand for.
    """
    held = "\\" if (len(text) - len(text.rstrip("\\"))) % 2 else ""
    whole = text[: len(text) - len(held)]
    return inert(_ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), whole)), held


def as_it_is(text: str) -> tuple[str, str]:
    """Return the text with nothing read into it, and nothing that waits."""
    return inert(text), ""


def laid_out(text: str) -> str:
    """Return a whole reply to read: JSON as indented lines with texts of several lines below their name.

    What is no JSON, or is nested too deep, stays as it is. Inert.
    """
    try:
        value = json.loads(text)
        return inert("\n".join(_lines(value, "", "")))
    except (ValueError, RecursionError):
        return inert(text)


def _lines(value: Any, name: str, indent: str) -> Iterator[str]:
    head = f"{indent}{name}: " if name else indent
    deeper = indent + _INDENT
    if isinstance(value, dict) and value:
        yield head.rstrip()
        for key, inner in value.items():
            yield from _lines(inner, key, deeper)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        yield head.rstrip()
        for number, inner in enumerate(value, 1):
            yield from _lines(inner, str(number), deeper)
    elif isinstance(value, str) and "\n" in value:
        yield head.rstrip()
        yield from (f"{deeper}{line}" for line in value.split("\n"))
    else:
        yield head + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
