"""What is written into a session is what is read from it, and any TOML reader reads the same."""

from __future__ import annotations

import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.config import RunConfig
from search.events import Event
from search.tree import Tree
from sessions import schema
from sessions.schema import read_contents, write_event, write_header
from sessions.store import SessionError, SessionStore, read_session

CONFIG = RunConfig(
    "softmax", "simulator", "apple-m2", "llm", 12, "ollama", "small", "big", "mapping", 30.0, 200_000, 1.5
)
START = datetime(2025, 1, 1, tzinfo=UTC)
FIXTURES = Path(__file__).parent

any_text = st.text(st.characters(exclude_categories=["Cs"]))
mark_like_text = st.lists(
    st.sampled_from(["[[events]]", "end = true", "'''", '"""', "\\", "'", '"', "\r", "\r\n", "\x00", "\x7f", "# x", ""])
).map("\n".join)
values = st.one_of(
    any_text,
    mark_like_text,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.lists(st.one_of(any_text, mark_like_text, st.integers(-5, 5), st.floats(), st.booleans())),
)
extra_fields = st.dictionaries(
    st.one_of(any_text, st.from_regex(r"[a-z_]+", fullmatch=True)).filter(
        lambda name: name not in {"seq", "at", "kind", "end"}
    ),
    values,
    max_size=5,
)


def test_a_run_reads_back_as_it_was_recorded(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        for event in run:
            store.append(event)
    session = read_session(path)
    assert (session.config, session.events, session.repair) == (CONFIG, run, "")
    assert session.created["program"].startswith("ksearch-tui ")
    assert Tree.fold(session.events).options["o2"].passing


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        for event in run[:5]:
            store.append(event)
    for event in run[5:]:
        with SessionStore.open(path) as store:
            assert (store.config, len(store.events), store.repair) == (CONFIG, event.seq - 1, "")
            store.append(event)
    assert read_session(path).events == run


def test_any_toml_reader_reads_the_same_file(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        for event in run:
            store.append(event)
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert document["schema_version"] == 2
    assert document["problem"]["name"] == "softmax"
    assert document["device"] == {"name": "simulator", "profile": "apple-m2"}
    assert document["proposer"] == {
        "name": "llm",
        "endpoint": "ollama",
        "selector": "small",
        "generator": "big",
        "context": "mapping",
    }
    assert document["budget"] == {"evaluations": 12, "minutes": 30.0, "tokens": 200_000, "usd": 1.5}
    assert document["events"] == [
        {"seq": event.seq, "at": event.at, "kind": event.kind, **event.data, "end": True} for event in run
    ]


def test_a_kernel_stands_in_the_file_as_a_person_wrote_it(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        for event in run[:5]:
            store.append(event)
    source = next(event["text"] for event in run if event.kind == "kernel" and event["text"])
    assert source in path.read_text(encoding="utf-8")


@given(any_text, extra_fields)
def test_any_text_number_and_list_survives(text: str, extra: dict[str, object]) -> None:
    event = Event(1, "2025-01-01T00:00:00Z", "note", {**extra, "text": text, "level": "info", "option": ""})
    data = (write_header(CONFIG, START) + write_event(event)).encode()
    contents = read_contents(data)
    assert contents.whole == len(data)
    # repr finds NaN equal to itself, and 1.0 different from 1.
    assert repr(contents.events) == repr([event])
    assert repr(tomllib.loads(data.decode())["events"][0]["text"]) == repr(text)


@given(mark_like_text)
def test_text_that_looks_like_the_file_s_own_marks_is_only_text(text: str) -> None:
    first = Event(1, "2025-01-01T00:00:00Z", "note", {"text": text, "level": "info", "option": ""})
    second = Event(2, "2025-01-01T00:00:01Z", "paused", {"by": "person"})
    data = (write_header(CONFIG, START) + write_event(first) + write_event(second)).encode()
    assert read_contents(data).events == [first, second]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"more": None}, "'more' is None"),
        ({"more": {"a": 1}}, "a session holds text"),
        ({"more": [[1]]}, "a session holds text"),
        ({"more": 2**63}, "64-bit"),
        ({"text": "\ud800"}, "lone surrogate (U+D800)"),
        ({"\udfff": 1}, "lone surrogate (U+DFFF)"),
        ({"seq": 4}, "a field named 'seq'"),
        ({"end": True}, "a field named 'end'"),
        ({"level": 3}, "'level' is a int"),
    ],
)
def test_what_toml_can_not_hold_is_refused_and_nothing_is_written(
    tmp_path: Path, fields: dict[str, object], complaint: str
) -> None:
    path = tmp_path / "a.ksearch.toml"
    event = Event(1, "2025-01-01T00:00:00Z", "note", {"text": "hello", "level": "info", "option": "", **fields})
    with SessionStore.create(path, CONFIG) as store:
        before = path.read_bytes()
        with pytest.raises(SessionError) as refusal:
            store.append(event)
        assert complaint in str(refusal.value)
        assert path.read_bytes() == before
        store.append(Event(1, "2025-01-01T00:00:00Z", "paused", {"by": "person"}))
    assert [event.kind for event in read_session(path).events] == ["paused"]


@pytest.mark.parametrize("at", ["", "yesterday", "2025-01-01T00:00:00"])
def test_an_event_without_a_clear_moment_is_refused(at: str) -> None:
    with pytest.raises(SessionError, match=r"event 1 .* which has no time zone"):
        write_event(Event(1, at, "paused", {"by": "person"}))


def test_not_a_number_and_infinity_are_numbers() -> None:
    event = Event(
        1, "2025-01-01T00:00:00Z", "note", {"text": "", "level": "", "option": "", "x": [math.nan, -math.inf]}
    )
    data = (write_header(CONFIG, START) + write_event(event)).encode()
    found = read_contents(data).events[0]["x"]
    assert math.isnan(found[0]) and found[1] == -math.inf


def test_a_file_of_version_1_reads_for_ever() -> None:
    session = read_session(FIXTURES / "v1.ksearch.toml")
    assert session.config == RunConfig("softmax", "simulator", "apple-m3-max", "catalogue", 8)
    assert [event.kind for event in session.events] == ["option_added", "decided", "note"]
    assert session.events[0]["title"] == "naive"
    assert session.events[2]["text"] == "two\nlines, it's a 'note'\n"


def test_a_file_of_version_2_reads_for_ever() -> None:
    session = read_session(FIXTURES / "v2.ksearch.toml")
    assert (session.config.endpoint, session.config.selector, session.config.generator) == ("ollama", "small", "big")
    assert (session.config.context, session.config.minutes, session.config.tokens) == ("none", 30.0, 200_000)
    tree = Tree.fold(session.events)
    assert tree.texts[session.events[3]["text_sha256"]] == '{"options": []}'
    assert (tree.account.tokens, tree.account.usd, tree.account.replies) == (1250, 0.0025, 1)


def test_an_older_file_is_read_through_its_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(document: dict[str, object]) -> dict[str, object]:
        return {**document, "problem": {"name": "renamed"}}

    monkeypatch.setattr(schema, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(schema.MIGRATIONS, 2, renamed)
    assert read_session(FIXTURES / "v1.ksearch.toml").config.problem == "renamed"


def test_an_older_file_is_never_appended_to_as_if_it_were_new(tmp_path: Path) -> None:
    path = tmp_path / "old.ksearch.toml"
    path.write_bytes((FIXTURES / "v1.ksearch.toml").read_bytes())
    with pytest.raises(SessionError, match=r"schema version 1.*replay"):
        SessionStore.open(path)
    assert path.read_bytes() == (FIXTURES / "v1.ksearch.toml").read_bytes()
