"""Recognizes what an endpoint complains about, by how it says so; the patterns are in ``wordings.toml``. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MOST_READ = 2000
"""Characters of a message that are searched: a longer one quotes the request, which may say anything."""


@dataclass(frozen=True)
class Complaint:
    """What an error is about (an ``about`` of wordings.toml, "" if unknown), and the tokens it names, 0 if none."""

    about: str
    context: int = 0
    prompt: int = 0
    reply: int = 0


NOTHING = Complaint("")


def complaint(text: str) -> Complaint:
    """Return what ``text`` complains about."""
    for about, patterns in _wordings():
        for pattern in patterns:
            if found := pattern.search(text[:MOST_READ]):
                numbers = {name: int(digits[:12]) for name, digits in found.groupdict().items() if digits}
                return Complaint(about, **numbers)
    return NOTHING


@cache
def _wordings() -> tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]:
    tables = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text(encoding="utf-8"))["wordings"]
    return tuple(
        (table["about"], tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in table["patterns"]))
        for table in tables
    )


@dataclass(frozen=True)
class Said:
    """What an endpoint said in an error: ``message`` for a person, ``all`` with its codes to search, the HTTP status.

    ``is_json`` is False where the body is something else, as from a server that isn't a model endpoint. ``delay``: the
    wait in seconds that the body asks for, if any.
    """

    message: str
    all: str
    status: int | None
    is_json: bool
    delay: float | None = None


def read_error(body: object, status: int | None = None) -> Said:
    """Read the body of an error in any of its forms.

    They are ``{"error": {"message", "code", "type"}}`` (OpenAI), the same in a list (Gemini), ``{"error": "..."}``
    (LM Studio, mlx_lm), ``{"detail": ...}`` (FastAPI), and one inside another (OpenRouter). A text is a body that is no
    JSON.
    """
    is_json = not isinstance(body, str)
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping) and body.get("error"):
        body = body["error"]
    if not isinstance(body, Mapping):
        text = body if isinstance(body, str) else ""
        return Said(text, text, status, is_json)
    code = str(body.get("code"))
    if status is None and re.fullmatch("[45][0-9][0-9]", code):
        status = int(code)
    message = _message(body)
    codes = [str(body[key]) for key in ("code", "type", "status", "param") if isinstance(body.get(key), (str, int))]
    return Said(message, " ".join([*codes, message])[:MOST_READ], status, is_json, _delay(body))


def _message(error: Mapping[str, Any]) -> str:
    message = next((error[key] for key in ("message", "msg", "detail") if isinstance(error.get(key), str)), "")
    if isinstance(detail := error.get("detail"), list):
        # Only where and what: the items quote the request besides.
        message = "; ".join(f"{item.get('loc')} {item.get('msg')}" for item in detail if isinstance(item, Mapping))
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{message}: {raw}" if isinstance(raw, str) and raw else message


def _delay(error: Mapping[str, Any]) -> float | None:
    """Return the seconds of a Google RetryInfo, such as ``{"retryDelay": "34s"}``."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, Mapping) else None
        if isinstance(delay, str) and (number := re.fullmatch(r"(\d{1,6}(?:\.\d{1,9})?)s", delay)):
            return float(number[1])
    return None
