"""What a call or a name becomes where that can be said word by word: ``emits.toml``, by the rows of the table."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from translator.primitives import load_primitives

TABLE = Path(__file__).parent / "emits.toml"
_PLACE = re.compile(r"([@$])(float|ushort|short|int|uint|ulong|long)?(\d)")


@dataclass(frozen=True)
class Emit:
    """``result`` is the type of the value: a name, ``=N`` for that of argument N, ``*`` for what argument 0 points to.

    In ``text``, ``$0`` is an argument, ``@0`` one in parentheses unless it is a single word or call, ``$float0`` one
    that is made a float.
    """

    result: str
    text: str
    arguments: int

    def places(self) -> list[tuple[str, str, int, int, int]]:
        """Return sign, wanted type, argument, start and end of each place in ``text``."""
        return [(m[1], m[2] or "", int(m[3]), m.start(), m.end()) for m in _PLACE.finditer(self.text)]


@dataclass(frozen=True)
class Emits:
    """What calls and names become, by name."""

    calls: Mapping[str, Emit]
    names: Mapping[str, Emit]


@cache
def emits() -> Emits:
    """Return the table."""
    calls: dict[str, Emit] = {}
    names: dict[str, Emit] = {}
    matches = {primitive.id: primitive.match for primitive in load_primitives()}
    for row, words in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        for word, written in words.items():
            result, _, text = written.partition(": ")
            places = [int(m[3]) for m in _PLACE.finditer(text)]
            emit = Emit(result, text, max(places, default=-1) + 1)
            (names if matches.get(row) == "name" else calls)[word] = emit
    return Emits(calls, names)
