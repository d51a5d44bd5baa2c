"""The table from CUDA to Metal: rows of ``primitives.toml``, read and checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "primitives.toml"

CATEGORIES = (
    "index", "launch", "memory", "sync", "warp", "atomic", "math", "half", "matrix", "library", "language", "host",
)  # fmt: skip
KINDS = ("direct", "idiom", "rewrite", "drop", "unsupported")

WORD_MATCHES = ("call", "name", "object", "field", "type", "token", "scope", "cast", "pragma", "node")
EXPRESSION_MATCHES = ("asm", "expression")
FORM_MATCHES: Mapping[str, tuple[str, ...]] = {
    "declaration": ("shared", "extern shared", "constant", "filled constant", "device", "managed"),
    "launch": ("host", "device", "shared", "stream"),
    "atomic": ("shared", "shared float", "half", "double", "wide"),
    "structure": (
        "beyond ascii", "bounds check", "divergent shuffle", "early return", "function pointer", "in-place array",
        "index in function", "kernel template", "last block", "local array", "member function", "pointer parameter",
        "pointer to pointer", "program constant", "ragged block", "recursion", "reference parameter",
        "scalar parameter", "several launches", "spin lock", "struct parameter",
    ),
}  # fmt: skip


class TableError(ValueError):
    """A row that doesn't read; the message says which file and row, and what is wrong with it."""


@dataclass(frozen=True)
class Primitive:
    """One row: how people write it in CUDA, what becomes of it in Metal, and what goes wrong on the way.

    ``match`` is the key of the row's match table (see ``primitives.toml``), ``words`` its values; ``arguments`` is the
    least and most number of arguments of a call. ``pattern`` is a name of `translator.patterns.PATTERNS`, or "".
    ``example`` is ``metal`` as statements that compile, over the names that ``primitives.toml`` lists; "" where
    ``metal`` is nothing, or is about the host, or is ``prose``.
    """

    id: str
    category: str
    cuda: str
    match: str
    words: tuple[str, ...]
    metal: str
    kind: str
    trap: str
    pattern: str = ""
    example: str = ""
    prose: bool = False
    arguments: tuple[int, int] = (0, 1000)


@cache
def load_primitives() -> tuple[Primitive, ...]:
    """Return the rows of the package's own table."""
    return read_primitives(TABLE)


def read_primitives(path: Path) -> tuple[Primitive, ...]:
    """Read a table; raise `TableError` at the first row that isn't right."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path}: {error}") from error
    rows = data.get("primitive")
    if not isinstance(rows, list) or not rows:
        raise TableError(f"{path}: there is no [[primitive]]")
    primitives: dict[str, Primitive] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}: primitive {row.get('id', number)!r}"
        primitive = _primitive(where, row)
        if primitive.id in primitives:
            raise TableError(f"{where}: there is another row with this id")
        primitives[primitive.id] = primitive
    return tuple(primitives.values())


def _primitive(where: str, row: Mapping[str, Any]) -> Primitive:
    texts = ("id", "category", "cuda", "metal", "kind", "trap")
    for key in (*texts, "match"):
        if key not in row:
            raise TableError(f"{where}: {key} is missing")
    for key in row:
        if key not in (*texts, "match", "pattern", "example", "prose"):
            raise TableError(f"{where}: unknown key '{key}'")
    for key in (*texts, "pattern", "example"):
        if not isinstance(row.get(key, ""), str):
            raise TableError(f"{where}: {key} must be a text")
    for key, known in (("category", CATEGORIES), ("kind", KINDS)):
        if row[key] not in known:
            raise TableError(f"{where}: {key} '{row[key]}' is none of {', '.join(known)}")
    if row["kind"] != "direct" and not row["trap"]:
        raise TableError(f"{where}: a row of kind {row['kind']} must say what to watch for in trap")
    if not isinstance(row.get("prose", False), bool):
        raise TableError(f"{where}: prose must be true or false")
    if "example" not in row and not row.get("prose", False) and _is_code(row):
        raise TableError(f"{where}: a row of kind {row['kind']} has an example, or says prose = true")
    match, words, arguments = _match(where, row["match"])
    return Primitive(
        id=row["id"],
        category=row["category"],
        cuda=row["cuda"],
        match=match,
        words=words,
        metal=row["metal"],
        kind=row["kind"],
        trap=row["trap"],
        pattern=row.get("pattern", ""),
        example=row.get("example", "").strip("\n"),
        prose=row.get("prose", False),
        arguments=arguments,
    )


def _is_code(row: Mapping[str, Any]) -> bool:
    """Whether the row's Metal text is part of a kernel, one word or form for another."""
    return row["kind"] in ("direct", "idiom") and row["category"] not in ("launch", "host")


def _match(where: str, table: object) -> tuple[str, tuple[str, ...], tuple[int, int]]:
    if not isinstance(table, dict):
        raise TableError(f"{where}: match must be a table")
    keys = [key for key in table if key != "arguments"]
    known = (*WORD_MATCHES, *EXPRESSION_MATCHES, *FORM_MATCHES)
    if len(keys) != 1 or keys[0] not in known:
        raise TableError(f"{where}: match must have one key of {', '.join(known)}")
    key = keys[0]
    words = [table[key]] if key in FORM_MATCHES else table[key]
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise TableError(f"{where}: match.{key} must be " + ("a text" if key in FORM_MATCHES else "a list of texts"))
    if key in FORM_MATCHES and words[0] not in FORM_MATCHES[key]:
        raise TableError(f"{where}: match.{key} '{words[0]}' is none of {', '.join(FORM_MATCHES[key])}")
    if key in EXPRESSION_MATCHES:
        for expression in words:
            try:
                re.compile(expression)
            except re.error as error:
                raise TableError(f"{where}: match.{key} '{expression}': {error}") from error
    arguments = table.get("arguments", [0, 1000])
    if (
        not isinstance(arguments, list)
        or len(arguments) != 2
        or not all(isinstance(number, int) for number in arguments)
        or ("arguments" in table and key != "call")
    ):
        raise TableError(f"{where}: match.arguments must be [least, most] and stand beside call")
    return key, tuple(words), (arguments[0], arguments[1])
