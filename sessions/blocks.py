"""A session file as text: blocks of TOML that can be appended, and told apart from torn ones.

The file is ordinary TOML. The header and every event end in the line ``end = true``. That line is what makes a block
whole: a crash leaves a prefix of what was being written, and a prefix of a TOML table often parses as a shorter table,
so parsing proves nothing. A checksum would prove more, but kernels and programs are stored under their SHA-256 anyway
and a file that a person may correct by hand is worth more than one that refuses it.

Text of several lines (a kernel) stands as it is between ``'''``, which a person can read and ``tomllib`` reads fastest.
Where it can't, since it holds what such a string may not, or a line that reads like one of the marks ``[[events]]`` and
``end = true``, it stands on one line with escapes: so these lines always are marks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w

_END = re.compile(rb"^end = true\r?\n", re.MULTILINE)
_HEAD = re.compile(rb"^\[\[events\]\]\r?$", re.MULTILINE)
_NOT_LITERAL = re.compile(r"'''|[\x00-\x08\x0b-\x1f\x7f]|^(?:\[\[events\]\]|end = true)$", re.MULTILINE)


class SessionError(Exception):
    """A session file that can't be read or written as asked; the message says what, where and what to do."""


@dataclass(frozen=True)
class Blocks:
    """The whole blocks of a file: its header, its events as (line, fields), and how many bytes they take.

    What stands after these bytes is a torn tail.
    """

    header: dict[str, Any]
    events: tuple[tuple[int, dict[str, Any]], ...]
    whole: int


def event_block(fields: Mapping[str, Any]) -> str:
    """Return one event as the text that is appended; raise `SessionError` when it would not read back equal."""
    block = f"\n[[events]]\n{_values(fields)}end = true\n"
    _prove(block, {"events": [{**fields, "end": True}]})
    return block


def header_block(tables: Mapping[str, Any]) -> str:
    """Return the header as the text that a file begins with; its last table carries the end mark."""
    block = tomli_w.dumps(tables) + "end = true\n"
    last = list(tables)[-1]
    _prove(block, {**tables, last: {**tables[last], "end": True}})
    return block


def _values(fields: Mapping[str, Any]) -> str:
    return "".join(
        f"{_key(name)} = {literal}\n" if (literal := _literal(value)) else tomli_w.dumps({name: value})
        for name, value in fields.items()
    )


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")


def _literal(value: Any) -> str:
    """Return text that would need escapes as a TOML literal string, "" where it can't be one (or need not)."""
    if not isinstance(value, str) or _NOT_LITERAL.search(value):
        return ""
    if "\n" in value:
        return f"'''\n{value}'''" if not value.endswith("'") else ""
    return f"'{value}'" if ('"' in value or "\\" in value) and "'" not in value else ""


def _prove(block: str, meant: Mapping[str, Any]) -> None:
    """Refuse ``block`` unless a TOML reader makes of its bytes exactly what was meant."""
    try:
        read = tomllib.loads(block.encode().decode())
    except UnicodeEncodeError as error:
        raise SessionError(
            f"text with a lone surrogate (U+{ord(error.object[error.start]):04X}) can't be kept in a file"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SessionError(f"fields that don't survive being written as TOML: {error}") from error
    # repr, since it tells 1 from 1.0 and finds NaN equal to itself.
    if repr(read) != repr(dict(meant)):
        raise SessionError("fields that don't read back from TOML as they were written")


def read_blocks(data: bytes) -> Blocks:
    """Return the whole blocks of ``data``; raise `SessionError` with the line when something before the tail is broken.

    The last event may be torn: cut short, or (after a power failure) of full length and unreadable. Each event was on
    the disk before the next was begun, so more than one unreadable event is damage of another kind, and is refused.
    """
    ends = [mark.end() for mark in _END.finditer(data)]
    if not ends:
        raise SessionError("it was cut short within its header and holds no event yet: delete it and start again")
    header = _parse(data[: ends[0]], 1)
    if "events" in header:
        raise SessionError("its header lacks the last line 'end = true'; restore the file from a copy")
    _unmark(list(header.values())[-1], 1)
    events: list[tuple[int, dict[str, Any]]] = []
    line = 1 + data.count(b"\n", 0, ends[0])
    whole = ends[0]
    for end in ends[1:]:
        piece = data[whole:end]
        try:
            events.append(_event(piece, line))
        except SessionError:
            if data[end:].strip() or not _begins_one_event(piece):
                raise
            return Blocks(header, tuple(events), whole)
        line += piece.count(b"\n")
        whole = end
    tail = data[whole:]
    if not tail.strip():
        return Blocks(header, tuple(events), len(data))
    if not _begins_one_event(tail):
        raise SessionError(f"line {line}: from here on events lack the line 'end = true'; restore the file from a copy")
    return Blocks(header, tuple(events), whole)


def _begins_one_event(piece: bytes) -> bool:
    return len(_HEAD.findall(piece)) <= 1


def _event(piece: bytes, line: int) -> tuple[int, dict[str, Any]]:
    block = piece.lstrip(b"\r\n")
    line += piece.count(b"\n") - block.count(b"\n")
    document = _parse(block, line)
    match document:
        case {"events": [dict(fields)]} if len(document) == 1:
            _unmark(fields, line)
            return line, fields
    raise SessionError(f"line {line}: something that is not one [[events]] table")


def _unmark(table: object, line: int) -> None:
    if not isinstance(table, dict) or table.pop("end", None) is not True:
        raise SessionError(f"line {line}: a block whose last line 'end = true' is not its own")


def _parse(block: bytes, line: int) -> dict[str, Any]:
    """Parse one block that begins at ``line``; an error names the line of the file."""
    try:
        return tomllib.loads(block.decode())
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        raise SessionError(f"line {line}: bytes that are not UTF-8 text") from error
    except (ValueError, RecursionError):
        try:
            tomllib.loads("\n" * (line - 1) + block.decode())
        except (ValueError, RecursionError) as error:
            raise SessionError(f"the block at line {line} is not TOML: {error}") from error
        raise
