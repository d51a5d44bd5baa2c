"""What a session file says: a run's settings in the tables of its header, then its events; and the file's version.

Version 2 added questions to models: the kinds ``sent``, ``replied`` and ``text``, ``improves`` of ``started``, and the
fields of the header that say who is asked and what may be spent. A change of the schema adds a pure function to
`MIGRATIONS` that takes the whole document of a version and returns that of the next, and a fixture of the old version
under ``tests/sessions``. A migration keeps the events one to one: a session never loses history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from search.config import RunConfig
from search.events import Event, fault
from sessions.blocks import SessionError, event_block, header_block, read_blocks

SCHEMA_VERSION = 2

_COMMENTS = rb"(?:[ \t]*(?:#[^\n]*)?\n)*"
_VERSION = re.compile(rb"\A" + _COMMENTS + rb"schema_version = (\d{1,9})\r?\n")
_SCALARS = (bool, int, float, str)
_MOST = 1e15
_INT64 = range(-(2**63), 2**63)
_OWN_FIELDS = frozenset({"seq", "at", "kind", "end"})


@dataclass(frozen=True)
class Contents:
    """A session file's bytes, understood: ``version`` is the file's own, and a torn tail follows ``whole`` bytes."""

    version: int
    config: RunConfig
    created: Mapping[str, Any]
    events: list[Event]
    whole: int

    @property
    def current(self) -> bool:
        """Whether events of this program's version can be appended to the file."""
        return self.version == SCHEMA_VERSION


def write_header(config: RunConfig, at: datetime) -> str:
    """Return the text that a new file begins with."""
    return header_block(
        {
            "schema_version": SCHEMA_VERSION,
            "problem": {"name": config.problem},
            "device": {"name": config.device, "profile": config.profile},
            "proposer": {
                "name": config.proposer,
                "endpoint": config.endpoint,
                "selector": config.selector,
                "generator": config.generator,
                "context": config.context,
            },
            "budget": {
                "evaluations": config.budget,
                "minutes": float(config.minutes),
                "tokens": config.tokens,
                "usd": float(config.usd),
            },
            "created": {"at": at.isoformat(timespec="seconds"), "program": f"ksearch-tui {version('ksearch-tui')}"},
        }
    )


def write_event(event: Event) -> str:
    """Return the text that is appended for ``event``; raise `SessionError` when TOML or the schema can't hold it."""
    if wrong := fault(event):
        raise SessionError(f"{wrong}; it was not recorded")
    if not _is_moment(event.at):
        raise SessionError(f"event {event.seq} ({event.kind}) happened at {event.at!r}, which has no time zone")
    if taken := _OWN_FIELDS & set(event.data):
        raise SessionError(f"event {event.seq} ({event.kind}) has a field named '{min(taken)}', which every event has")
    fields = {name: _storable(event, name, value) for name, value in event.data.items()}
    try:
        return event_block({"seq": event.seq, "at": event.at, "kind": event.kind, **fields})
    except SessionError as error:
        raise SessionError(f"event {event.seq} ({event.kind}) has {error}") from error


def _storable(event: Event, name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_scalar(event, name, entry) for entry in value]
    return _scalar(event, name, value)


def _scalar(event: Event, name: str, value: Any) -> Any:
    if type(value) not in _SCALARS or (type(value) is int and value not in _INT64):
        raise SessionError(
            f"event {event.seq} ({event.kind}): '{name}' is {value!r} ({type(value).__name__}); "
            "a session holds text, 64-bit integers, floats, booleans and lists of these"
        )
    return value


def read_contents(data: bytes) -> Contents:
    """Understand the bytes of a session file; raise `SessionError` naming the line that is wrong."""
    if not data.strip():
        raise SessionError("it is empty: the program stopped before it wrote anything; delete it and start again")
    found = _VERSION.match(data)
    if found is None:
        raise SessionError("it is not a session: its first line is not 'schema_version = ...'")
    written_as = int(found[1])
    if written_as < 1:
        raise SessionError("its schema version is 0, and there is none below 1")
    if written_as > SCHEMA_VERSION:
        raise SessionError(
            f"it was written by a newer ksearch-tui (schema version {written_as}, this program knows "
            f"{SCHEMA_VERSION}): upgrade ksearch-tui"
        )
    blocks = read_blocks(data)
    document = {**blocks.header, "events": [fields for _, fields in blocks.events]}
    for step in range(written_as, SCHEMA_VERSION):
        document = MIGRATIONS[step](document)
    lines = [line for line, _ in blocks.events]
    events = [
        _event(seq, line, fields)
        for seq, (line, fields) in enumerate(zip(lines, document["events"], strict=True), start=1)
    ]
    return Contents(written_as, _config(document), document["created"], events, blocks.whole)


def _config(document: Mapping[str, Any]) -> RunConfig:
    def look_up(table: str, name: str, kind: type) -> Any:
        holder = document.get(table)
        value = holder.get(name) if isinstance(holder, dict) else None
        if type(value) is not kind:
            raise SessionError(f"its header lacks '{name}' in [{table}], or it is not {kind.__name__}")
        return value

    created = look_up("created", "at", str)
    config = RunConfig(
        problem=look_up("problem", "name", str),
        device=look_up("device", "name", str),
        profile=look_up("device", "profile", str),
        proposer=look_up("proposer", "name", str),
        budget=look_up("budget", "evaluations", int),
        endpoint=look_up("proposer", "endpoint", str),
        selector=look_up("proposer", "selector", str),
        generator=look_up("proposer", "generator", str),
        context=look_up("proposer", "context", str),
        minutes=look_up("budget", "minutes", float),
        tokens=look_up("budget", "tokens", int),
        usd=look_up("budget", "usd", float),
    )
    limits = {"evaluations": config.budget, "minutes": config.minutes, "tokens": config.tokens, "usd": config.usd}
    for name, limit in limits.items():
        if not 0 <= limit <= _MOST:
            raise SessionError(f"its header limits {name} to {limit}; a limit is 0 (none) to {_MOST:g}")
    if not _is_moment(created):
        raise SessionError("its header has no 'at' with a date, a time and a time zone in [created]")
    return config


def _v1_to_v2(document: dict[str, Any]) -> dict[str, Any]:
    """Say what a run of version 1 could not do: it asked no model, and only evaluations were limited."""
    added = {
        "proposer": {"endpoint": "", "selector": "", "generator": "", "context": "full"},
        "budget": {"minutes": 0.0, "tokens": 0, "usd": 0.0},
    }
    tables = {name: document[name] | fields for name, fields in added.items() if isinstance(document.get(name), dict)}
    return {**document, **tables}


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _v1_to_v2}


def _event(seq: int, line: int, fields: dict[str, Any]) -> Event:
    where = f"line {line}"
    if fields.pop("seq", None) != seq:
        raise SessionError(f"{where}: this event should have seq = {seq}; one is missing, doubled or out of order")
    at, kind = fields.pop("at", None), fields.pop("kind", None)
    if not _is_moment(at):
        raise SessionError(f"{where}: event {seq} has no 'at' with a date, a time and a time zone")
    event = Event(seq, at, str(kind), fields)
    if wrong := fault(event):
        raise SessionError(f"{where}: {wrong}")
    try:
        for name, value in fields.items():
            _storable(event, name, value)
    except SessionError as error:
        raise SessionError(f"{where}: {error}") from error
    return event


def _is_moment(at: object) -> bool:
    """Whether ``at`` is ISO 8601 with a time zone and can be told in UTC, so that moments can be subtracted."""
    if not isinstance(at, str):
        return False
    try:
        moment = datetime.fromisoformat(at)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return moment.tzinfo is not None
