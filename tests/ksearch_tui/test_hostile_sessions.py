"""A session file in which somebody changed one value is refused in words, or shown as it is: never a traceback."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch_tui.headless import compare as compare_command
from ksearch_tui.headless.errors import explain
from ksearch_tui.headless.summary import run_summary, summary_lines
from ksearch_tui.narration import narrate
from ksearch_tui.report.page import render
from search import owed, policy
from search.calibration import Calibration
from search.events import Event
from search.problems.definition import load_problem
from search.tree import Tree
from sessions.blocks import header_block
from sessions.comparison import compare, course
from sessions.export import export_module
from sessions.replay import Replay
from sessions.report import gather
from sessions.schema import read_contents
from sessions.store import Session, SessionError
from tests.sessions.all_kinds import CONFIG, all_kinds, in_session

NAME = "hostile.ksearch.toml"
PROBLEM = load_problem("softmax")
WHOLE = in_session(all_kinds())
EVENTS = [{"seq": event.seq, "at": event.at, "kind": event.kind, **event.data} for event in WHOLE.events]
HEADER = {
    "schema_version": 2,
    "problem": {"name": CONFIG.problem},
    "device": {"name": CONFIG.device, "profile": CONFIG.profile},
    "proposer": {
        "name": CONFIG.proposer,
        "endpoint": CONFIG.endpoint,
        "selector": CONFIG.selector,
        "generator": CONFIG.generator,
        "context": CONFIG.context,
    },
    "budget": {"evaluations": 20, "minutes": 30.0, "tokens": 10_000, "usd": 2.0},
    "created": {"at": "2025-01-01T00:00:00+00:00", "program": "ksearch-tui"},
}
HOSTILE: list[Any] = [
    *(1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 0.0, -1.0),
    *(2**63 - 1, -(2**63), 10**400, 0, -1, True, False),
    *("", " ", "\x00", "[/b]", "{}", "o1", "zz", "llm:", "x" * 3000, "memory=1e308", "a=b=c"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", datetime.datetime(2020, 1, 1)),
    *([], [""], [[1]], [math.nan], [1e308], [10**400], {"a": 1}),
]
PLACES = [(at, field) for at, fields in enumerate(EVENTS) for field in [*fields, "origin", "question", "about"]]
HEAD_PLACES = [(table, field) for table, fields in HEADER.items() if isinstance(fields, dict) for field in fields]


def block(fields: dict[str, Any]) -> str:
    return f"\n[[events]]\n{tomli_w.dumps(fields)}end = true\n"


BLOCKS = [block(fields) for fields in EVENTS]
HEAD = header_block(HEADER)


def read(text: str) -> Session:
    contents = read_contents(text.encode())
    return Session(contents.config, contents.events, "", contents.created)


def replayed(session: Session, tree: Tree) -> None:
    replay = Replay(session.events)
    while (event := replay.step()) is not None:
        narrate(event, replay.tree).encode()
        replay.delay(1.0)
    replay.seek(1)
    summary = run_summary(session.config, tree, Path(NAME))
    json.dumps(summary)
    "\n".join(summary_lines(summary)).encode()


def reported(session: Session, tree: Tree) -> None:
    render(gather(NAME, session, PROBLEM)).encode()


def compared(session: Session, tree: Tree) -> None:
    other = course("whole", WHOLE.config, Tree.fold(WHOLE.events))
    found = compare([course(NAME, session.config, tree), other])
    json.dumps(found.to_json())
    "\n".join(compare_command._lines(found)).encode()


def exported(session: Session, tree: Tree) -> None:
    export_module(tree, PROBLEM, None, NAME)


def gone_on_with(session: Session, tree: Tree) -> None:
    owed.follow_up(tree), owed.lessons_owed(tree), owed.half_done(tree), owed.redirect_owed(tree), owed.places(tree)
    calibration = Calibration.of(tree)
    policy.choose(tree, calibration), policy.own_choice(tree, calibration)
    for option in tree.options.values():
        policy.score(tree, calibration, option)


def looked_at(text: str) -> bool:
    """Do with a session what each command does; return whether it could be read. Raises what is no clear error."""
    try:
        session = read(text)
        tree = Tree.fold(session.events)
    except Exception as error:
        assert explain(error)[1]
        return False
    for look in (replayed, reported, compared, exported, gone_on_with):
        try:
            look(session, tree)
        except Exception as error:
            if not explain(error)[1]:
                raise
    return True


def with_value(at: int, field: str, value: Any) -> str:
    """Return the session with one value of one event replaced."""
    return HEAD + "".join([*BLOCKS[:at], block({**EVENTS[at], field: value}), *BLOCKS[at + 1 :]])


def test_the_session_itself_is_read():
    assert read(HEAD + "".join(BLOCKS)).events == WHOLE.events
    assert looked_at(HEAD + "".join(BLOCKS))


@settings(max_examples=250, derandomize=True, deadline=None)
@given(place=st.sampled_from(PLACES), value=st.sampled_from(HOSTILE))
def test_one_changed_value_of_an_event_is_refused_in_words_or_shown(place: tuple[int, str], value: Any):
    looked_at(with_value(*place, value))


@settings(max_examples=80, derandomize=True, deadline=None)
@given(place=st.sampled_from(HEAD_PLACES), value=st.sampled_from(HOSTILE), events=st.booleans())
def test_one_changed_value_of_the_header_is_refused_in_words_or_shown(place: tuple[str, str], value: Any, events: bool):
    table, field = place
    head = tomli_w.dumps({**HEADER, table: {**HEADER[table], field: value}}).rstrip("\n")
    looked_at(f"{head}\nend = true\n" + "".join(BLOCKS if events else []))


def last(kind: str, option: str = "") -> int:
    return [at for at, each in enumerate(EVENTS) if each["kind"] == kind and option in ("", each.get("option"))][-1]


@pytest.mark.parametrize(
    ("at", "field", "value", "complaint"),
    [
        (last("evaluated", "o2"), "seconds", [1e308], "not between 1e-15 and 1e+09 s"),
        (last("evaluated", "o2"), "seconds", [5e-324], "not between 1e-15 and 1e+09 s"),
        (last("evaluated", "o2"), "roofline_seconds", [10**400], "64-bit integers"),
        (last("option_added", "o3"), "predicted", 1e308, "predicted speedup is 1e+308"),
        (last("replied"), "prompt_tokens", 10**30, "64-bit integers"),
        (last("replied"), "prompt_tokens", 2**63 - 1, "beyond 1e+15"),
        (last("replied"), "cost_usd", 1e308, "beyond 1e+15"),
        (last("replied"), "question", [], "'question' is a list, not a int"),
        (last("decided"), "origin", [], "'origin' is a list, not a int"),
        (last("stopped"), "at", "0001-01-01T00:00:00+23:59", "no 'at' with a date"),
        (last("option_added"), "option", "o1", "there is or was an option 'o1' already"),
        (last("option_added"), "parent", "o4", "unknown parent 'o4'"),
    ],
)  # fmt: skip
def test_what_no_run_can_have_is_named(at: int, field: str, value: Any, complaint: str):
    with pytest.raises((SessionError, ValueError)) as refused:
        Tree.fold(read(with_value(at, field, value)).events)
    assert complaint in str(refused.value)


def test_a_lone_surrogate_is_refused_with_its_line():
    for surrogate in (rb"\ud800", b"\xed\xa0\x80"):
        data = (HEAD + "".join(BLOCKS)).encode().replace(b"root title", surrogate)
        with pytest.raises(SessionError, match=r"line [0-9]+"):
            read_contents(data)


def chain(depth: int, under: Callable[[int], int]) -> list[Event]:
    first = next(event for event in WHOLE.events if event.kind == "option_added")
    return [
        replace(
            first,
            seq=number + 1,
            data={**first.data, "option": f"n{number}", "parent": f"n{under(number)}" if number else ""},
        )
        for number in range(depth)
    ]


def test_a_tree_is_as_deep_and_as_wide_as_can_be_drawn_and_no_more():
    session = Session(CONFIG, chain(400, lambda number: number - 1), "", WHOLE.created)
    tree = Tree.fold(session.events)
    for look in (replayed, reported, gone_on_with):
        look(session, tree)
    with pytest.raises(ValueError, match="option 'n400' stands under 400 others"):
        Tree.fold(chain(401, lambda number: number - 1))
    Tree.fold(chain(2001, lambda number: 0))
    with pytest.raises(ValueError, match="has 2000 options under it: there is no place for 'n2001'"):
        Tree.fold(chain(2002, lambda number: 0))
