"""What endpoints turned out to take, kept in a small TOML file from run to run. It holds no prompt and no key."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

import tomli_w

from profiles.models import STRUCTURES, TOKEN_LIMITS
from search.proposers.llm.request import Shape

DAYS = 14
"""After so many days an endpoint is tried afresh: it may have learned more."""


def recall(path: Path, base_url: str, model: str, today: date) -> Shape | None:
    """Return what is remembered of ``model``; None when nothing is, it is too old, or the file doesn't read."""
    for entry in _entries(path):
        if entry.get("base_url") == base_url and entry.get("model") == model:
            return _shape(entry, today)
    return None


def remember(path: Path, base_url: str, model: str, shape: Shape, today: date) -> None:
    """Keep what ``model`` takes. A file that can't be written is let be: the endpoint is then tried again."""
    others = [entry for entry in _entries(path) if (entry.get("base_url"), entry.get("model")) != (base_url, model)]
    entry = {"base_url": base_url, "model": model, "seen": today, **asdict(shape)}
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(tomli_w.dumps({"models": [*others, entry]}), encoding="utf-8")
        new.replace(path)


def _entries(path: Path) -> list[Mapping[str, Any]]:
    try:
        models = tomllib.loads(path.read_text(encoding="utf-8")).get("models")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    return [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []


def _shape(entry: Mapping[str, Any], today: date) -> Shape | None:
    seen = entry.get("seen")
    if type(seen) is not date or not 0 <= (today - seen).days <= DAYS:
        return None
    kinds = {"str": str, "bool": bool, "int": int}
    values: dict[str, Any] = {each.name: entry.get(each.name) for each in fields(Shape)}
    if any(type(values[each.name]) is not kinds[str(each.type)] for each in fields(Shape)):
        return None
    shape = Shape(**values)
    possible = shape.structured in STRUCTURES and shape.token_limit in TOKEN_LIMITS and shape.reply_tokens > 0
    return shape if possible else None
