"""Places in CUDA references that an option points at: ``flash.cu:41`` in its text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from search.option import Option
from translator.mistakes import decode_cuda

_AROUND = (1, 2)
"""How many lines of an excerpt stand before and after the one that is cited."""


@dataclass(frozen=True)
class Place:
    """A line of a file, counted from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"


def cited_places(option: Option | None, files: Sequence[Path]) -> tuple[Place, ...]:
    """Return the places in ``files`` that the reasons for ``option`` name, in their order, each once."""
    if option is None or not files:
        return ()
    by_name = {path.name: path for path in reversed(files)}
    names = "|".join(re.escape(name) for name in sorted(by_name, key=len, reverse=True))
    found = re.finditer(rf"(?<![\w./-])({names}):(\d{{1,7}})\b", option.why)
    return tuple(dict.fromkeys(Place(by_name[match[1]], int(match[2])) for match in found))


def read_texts(files: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """Return the lines of each file; for one that can't be read, none."""
    texts: dict[Path, tuple[str, ...]] = {}
    for path in files:
        try:
            texts[path] = tuple(decode_cuda(path.read_bytes(), path.name).split("\n"))
        except (OSError, ValueError):
            texts[path] = ()
    return texts


def excerpt(place: Place, lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the cited line with those around it, each with its number, outdented together.

    There is nothing when the file doesn't reach so far.
    """
    if not 1 <= place.line <= len(lines):
        return []
    first, last = max(1, place.line - _AROUND[0]), min(len(lines), place.line + _AROUND[1])
    shown = textwrap.dedent("\n".join(lines[first - 1 : last])).split("\n")
    return list(enumerate(shown, start=first))
