"""Patterns of fast kernels as ``patterns.toml`` describes them, in CUDA and in Metal."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from translator.primitives import TableError

TABLE = Path(__file__).parent / "patterns.toml"


@dataclass(frozen=True)
class Pattern:
    """A pattern: what it is, when it pays, the CUDA that shows it, Metal that runs as it stands, what goes wrong."""

    name: str
    says: str
    when: str
    cuda: str
    metal: str
    trap: str


@cache
def load_patterns() -> tuple[Pattern, ...]:
    """Return the patterns of the package's own table."""
    return read_patterns(TABLE)


def read_patterns(path: Path) -> tuple[Pattern, ...]:
    """Read a table; raise `TableError` at the first pattern that isn't right."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path}: {error}") from error
    rows = data.get("pattern")
    if not isinstance(rows, list) or not rows:
        raise TableError(f"{path}: there is no [[pattern]]")
    keys = [field.name for field in fields(Pattern)]
    patterns: dict[str, Pattern] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}: pattern {row.get('name', number)!r}"
        for key in (*keys, *row):
            if key not in keys:
                raise TableError(f"{where}: unknown key '{key}'")
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise TableError(f"{where}: {key} must be a text")
        if row["name"] in patterns:
            raise TableError(f"{where}: there is another pattern of this name")
        patterns[row["name"]] = Pattern(**{key: row[key].strip("\n") for key in keys})
    return tuple(patterns.values())
