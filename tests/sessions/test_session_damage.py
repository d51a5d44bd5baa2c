"""A crash loses at most the event being written; any other damage is refused with the line, and nothing is changed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from search.config import RunConfig
from search.events import Event
from sessions.store import SessionError, SessionStore, read_session

CONFIG = RunConfig("softmax")


def record(path: Path, events: list[Event]) -> list[int]:
    """Record ``events`` and return the size of the file after the header and after each event."""
    with SessionStore.create(path, CONFIG) as store:
        sizes = [path.stat().st_size]
        for event in events:
            store.append(event)
            sizes.append(path.stat().st_size)
    return sizes


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


def test_a_tail_torn_at_any_byte_is_cut_back_to_the_last_whole_event(tmp_path: Path, run: list[Event]) -> None:
    events = [*run[:5], run[-2], *(event for event in run if event.kind == "evaluated"), run[-1]]
    events = [Event(seq, event.at, event.kind, event.data) for seq, event in enumerate(events, start=1)]
    path = tmp_path / "a.ksearch.toml"
    sizes = record(path, events)
    data = path.read_bytes()
    kept = path.with_name("a.ksearch.toml.damaged-1")
    for cut in range(sizes[2], len(data)):
        path.write_bytes(data[:cut])
        whole = max(count for count, size in enumerate(sizes) if size <= cut)
        torn = data[sizes[whole] : cut]
        with SessionStore.open(path) as store:
            assert store.events == events[:whole], f"torn at byte {cut}"
            assert bool(store.repair) == bool(torn.strip())
        if torn.strip():
            assert kept.read_bytes() == torn
            assert path.read_bytes() == data[: sizes[whole]]
            kept.unlink()


def test_a_repaired_file_goes_on_and_says_where_the_rest_is(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    sizes = record(path, run)
    for number in (1, 2):
        path.write_bytes(path.read_bytes()[: sizes[-1] - 10])
        with SessionStore.open(path) as store:
            assert store.repair == (
                f"the last event was cut short when the program stopped: {sizes[-1] - 10 - sizes[-2]} bytes were moved "
                f"to '{path}.damaged-{number}'"
            )
            store.append(run[-1])
    assert read_session(path).events == run


def test_reading_a_torn_file_leaves_it_alone(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    sizes = record(path, run)
    path.write_bytes(path.read_bytes()[:-10])
    before = path.read_bytes()
    session = read_session(path)
    assert session.events == run[:-1]
    assert f"{sizes[-1] - 10 - sizes[-2]} bytes" in session.repair
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ksearch.toml"]


def test_a_last_event_that_a_power_failure_left_as_zeros_is_cut(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    sizes = record(path, run)
    data = path.read_bytes()
    path.write_bytes(data[: sizes[-2]] + bytes(sizes[-1] - sizes[-2]))
    with SessionStore.open(path) as store:
        assert store.events == run[:-1]
    # The end reached the disk, the middle did not.
    path.write_bytes(data[: sizes[-2] + 20] + bytes(30) + data[sizes[-2] + 50 :])
    with SessionStore.open(path) as store:
        assert store.events == run[:-1]
    assert path.read_bytes() == data[: sizes[-2]]


@pytest.mark.parametrize(
    ("old", "new", "where", "complaint"),
    [
        ('kind = "started"', 'kind = "started', 'kind = "started', "not TOML"),
        ('kind = "started"', 'kind = "begun"', 'kind = "begun"', "unknown event kind 'begun'"),
        ("attempt = 1", "attempt = true", 'kind = "started"', "'attempt' is a bool"),
        ("seq = 3\n", "seq = 4\n", 'kind = "started"', "should have seq = 3"),
        ('at = "2025-01-01T00:00:03.000Z"', 'at = "2025-01-01T00:00:03"', 'kind = "started"', "time zone"),
        ('at = "2025-01-01T00:00:03.000Z"', "at = 3", 'kind = "started"', "time zone"),
        ("attempt = 1\nend = true\n", "attempt = 1\n", 'kind = "started"', "one [[events]] table"),
        ("attempt = 1\nend = true\n", "attempt = 1\n[problem]\nend = true\n", 'kind = "started"', "[[events]] table"),
        (
            'option = "o1"\nattempt = 1',
            "option = { end = true }\nattempt = 1",
            'kind = "started"',
            "'option' is a dict",
        ),
    ],
)
def test_damage_in_the_middle_names_the_line_and_changes_nothing(
    tmp_path: Path, run: list[Event], old: str, new: str, where: str, complaint: str
) -> None:
    path = tmp_path / "a.ksearch.toml"
    record(path, run)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    before = path.read_bytes()
    for reading in (read_session, SessionStore.open):
        with pytest.raises(SessionError) as refusal:
            reading(path)
        assert complaint in str(refusal.value) and str(path) in str(refusal.value)
        named = re.search(r"\bline (\d+)", str(refusal.value))
        # The event begins three lines above its kind.
        assert named and int(named[1]) == line_of(path, where) - 3
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ksearch.toml"]


def test_bytes_that_are_not_text_are_named_by_line(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    record(path, run)
    path.write_bytes(path.read_bytes().replace(b"naive", b"na\xffve", 1))
    with pytest.raises(SessionError) as refusal:
        read_session(path)
    line = path.read_bytes()[: path.read_bytes().index(b"\xff")].count(b"\n") + 1
    assert f"line {line}: bytes that are not UTF-8 text" in str(refusal.value)


def test_two_unfinished_events_are_not_a_torn_tail(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    record(path, run)
    text = path.read_text()
    head, _, tail = text.rpartition("end = true\n\n[[events]]")
    path.write_text(f"{head}\n[[events]]{tail[:-12]}")
    with pytest.raises(SessionError, match="lack the line 'end = true'"):
        SessionStore.open(path)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"\x89PNG\r\n\x1a\n", "not a session"),
        (b"[tool]\nname = 'x'\n", "not a session"),
        (b"schema_version = 3\n[problem]\n", "newer ksearch-tui (schema version 3, this program knows 2): upgrade"),
        (b"schema_version = 1", "not a session"),
        (b'schema_version = 1\n\n[problem]\nname = "soft', "cut short within its header"),
        (b"schema_version = 1\nend = true\n", "is not its own"),
        (b"schema_version = 1\n[created]\nend = true\n", "lacks 'at' in [created]"),
        (b'schema_version = 1\n[created]\nat = "x"\nend = true\n', "lacks 'name' in [problem]"),
        (b'schema_version = 1\n[[events]]\nkind = "paused"\nend = true\n', "its header lacks"),
    ],
)
def test_what_is_no_whole_session_is_refused_in_words(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "a.ksearch.toml"
    path.write_bytes(data)
    for reading in (read_session, SessionStore.open):
        with pytest.raises(SessionError) as refusal:
            reading(path)
        assert complaint in str(refusal.value)
    assert path.read_bytes() == data


def test_a_header_torn_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ksearch.toml"
    record(path, [])
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        with pytest.raises(SessionError):
            SessionStore.open(path)
        assert path.read_bytes() == data[:cut]


def test_line_ends_of_another_system_are_read(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    record(path, run)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_session(path).events == run
