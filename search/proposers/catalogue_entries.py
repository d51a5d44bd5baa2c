"""The catalogue's entries: what is known about each transformation, read from ``catalogue_<family>.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent

ROOT = "naive"
"""Key of the entry that the tree starts from; every other key names a transformation of the family."""


@dataclass(frozen=True)
class Entry:
    """One optimization as it is proposed; the head of ``catalogue_attention.toml`` explains the fields."""

    key: str
    title: str
    why: str
    rating: float
    confidence: float
    difficulty: int
    predicted: float
    evidence: tuple[str, ...] = ()
    relieves: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    on_request: bool = False

    def place_in(self, hints: Mapping[str, str]) -> str:
        """Return where a CUDA reference shows this optimization, "" if none does."""
        return next((hints[pattern] for pattern in self.evidence if pattern in hints), "")


@cache
def load_entries(family: str) -> Mapping[str, Entry]:
    """Return the entries for a family of kernels by key, in the order of the file."""
    text = (_FOLDER / f"catalogue_{family}.toml").read_text(encoding="utf-8")
    entries = [_entry(table) for table in tomllib.loads(text)["entries"]]
    return {entry.key: entry for entry in entries}


def _entry(table: Mapping[str, Any]) -> Entry:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    return Entry(**fields)
