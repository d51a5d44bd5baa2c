"""Sessions side by side: whose best kernel was how fast, after how much."""

from __future__ import annotations

from typing import Any

import pytest

from search.config import RunConfig
from search.kernels.program import Pass, Program
from search.tree import Tree
from sessions.comparison import compare, course
from sessions.store import SessionError

CATALOGUE = RunConfig("softmax", "simulator", "apple-m3-max", "catalogue", 8)


def model(context: str) -> RunConfig:
    return RunConfig("softmax", "simulator", "apple-m3-max", "llm", 8, "/home/me/mine.toml", "s", "g", context, usd=1.0)


def program(name: str) -> Program:
    return Program((Pass("rows", ("x",), ("y",), name, ("rows", "1", "1"), ("32", "1", "1")),))


def replied(tokens: int, usd: float, outcome: str = "used", priced: bool = True) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = dict.fromkeys(("option", "served_as", "structured", "prompt_sha256", "note"), "")
    fields |= {"call": "write", "role": "generator", "model": "g", "endpoint": "mine", "text_sha256": ""}
    fields |= {"prompt_tokens": tokens, "completion_tokens": 0, "counted": True, "cost_usd": usd, "priced": priced}
    return "replied", fields | {"seconds": 1.0, "first_seconds": 0.5, "attempts": 1, "outcome": outcome}


@pytest.fixture
def run(building_blocks: Any) -> Any:
    """Make a session of a root of ``root`` seconds and options of these, each after a reply of 100 tokens for $0.01."""

    def make(name: str, config: RunConfig, root: float, *seconds: float, more: Any = ()) -> Any:
        b = building_blocks
        happenings = [b["option"]("o1", "", "root"), *b["passed"]("o1", program(f"{name} root"), {"w": root})]
        for number, time in enumerate(seconds, start=2):
            happenings += [] if config.proposer == "catalogue" else [replied(100, 0.01)]
            happenings += [b["option"](f"o{number}", "o1", f"option {number}")]
            happenings += b["passed"](f"o{number}", program(f"{name} {number}"), {"w": time})
        return course(name, config, Tree.fold(b["numbered"]([*happenings, *more])))

    return make


def test_the_best_after_so_many_evaluations_tokens_and_dollars(run: Any) -> None:
    found = compare([run("a", CATALOGUE, 8.0, 4.0, 2.0), run("b", model("full"), 8.0, 8.0, 1.0)])
    first, second = found.rows
    assert [row.setting.label for row in found.rows] == ["catalogue", "s + g at mine, context full"]
    assert first.after["evaluations"] == {1: 1.0, 2: 2.0, 5: 4.0}
    assert second.after["evaluations"] == pytest.approx({1: 1.0, 2: 1.0, 5: 8.0})
    # 100 tokens and $0.01 had brought nothing, 200 and $0.02 the last option.
    assert second.after["tokens"] == pytest.approx({10: 1.0, 20: 1.0, 50: 1.0, 100: 1.0, 200: 8.0})
    assert second.after["usd"] == pytest.approx({0.001: 1.0, 0.002: 1.0, 0.005: 1.0, 0.01: 1.0, 0.02: 8.0})
    assert (second.tokens, second.evaluations) == (200, 3)
    assert (second.best, second.usd) == pytest.approx((8.0, 0.02))


def test_tokens_that_nobody_counted_are_marked(run: Any) -> None:
    kind, fields = replied(50, 0.0, "cancelled")
    courses = [run("a", model("full"), 8.0, 4.0, more=[(kind, {**fields, "counted": False})])]
    found = compare([*courses, run("b", model("none"), 8.0, 4.0)])
    assert [(row.tokens, row.estimated) for row in found.rows] == [(100, False), (150, True)]
    assert [setting["estimated"] for setting in found.to_json()["settings"]] == [False, True]


def test_context_levels_stand_in_their_order_and_several_sessions_are_told_by_medians(run: Any) -> None:
    courses = [run("a", model("full"), 8.0, 1.0), run("b", model("none"), 8.0, 8.0)]
    courses += [
        run("c", model("full"), 8.0, 2.0),
        run("d", model("full"), 8.0, 4.0),
        run("e", model("mapping"), 8.0, 4.0),
    ]
    rows = compare(courses).rows
    assert [(row.setting.context, row.best, row.sessions) for row in rows] == [
        ("none", 1.0, ("b",)),
        ("mapping", 2.0, ("e",)),
        ("full", 4.0, ("a", "c", "d")),
    ]


def test_roots_that_models_wrote_differently_are_measured_by_the_first(run: Any) -> None:
    rows = compare([run("a", model("full"), 8.0, 4.0), run("b", model("none"), 2.0, 2.0)]).rows
    assert {row.setting.context: row.best for row in rows} == {"none": 4.0, "full": 2.0}


def test_a_reply_without_a_price_leaves_the_money_open(run: Any) -> None:
    unpriced = [replied(50, 0.0, "malformed", priced=False)]
    (row,) = compare([run("a", model("full"), 8.0, 4.0, more=unpriced)]).rows
    assert (row.usd, row.malformed, row.tokens) == (None, 1, 150)


def test_what_can_not_be_compared_is_said(run: Any) -> None:
    other = RunConfig("attention_prefill")
    with pytest.raises(SessionError, match="'b' is of the problem attention_prefill, 'a' of softmax"):
        compare([run("a", CATALOGUE, 8.0), run("b", other, 8.0)])
    with pytest.raises(SessionError, match="no session has a program that passed"):
        compare([course("a", CATALOGUE, Tree())])
