"""Limits of a run: what reaches them, what could pass them, and which time counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from search.events import Event
from search.spending import Budget, longest_reply, reached, seconds_left, too_dear
from search.tree import Tree

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def replied(prompt: int, completion: int, usd: float) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(("option", "served_as", "structured", "prompt_sha256", "note"), "")
    fields |= {"call": "write", "role": "generator", "model": "g", "endpoint": "mine", "text_sha256": ""}
    fields |= {"counted": True, "priced": True, "seconds": 1.0, "first_seconds": 0.5, "attempts": 1, "outcome": "used"}
    return fields | {"prompt_tokens": prompt, "completion_tokens": completion, "cost_usd": usd}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tree_of(*happenings: tuple[float, str, dict[str, Any]]) -> Tree:
    """The tree of what happened so many seconds after the start."""
    return Tree.fold(
        Event(seq, at(seconds).isoformat(), kind, data) for seq, (seconds, kind, data) in enumerate(happenings, start=1)
    )


USED = tree_of((0, "replied", replied(700, 300, 0.75)))
SPENT = USED.account.spent


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(), ""),
        (Budget(tokens=1001, usd=0.76), ""),
        (Budget(tokens=1000), "the budget of 1000 tokens is spent"),
        (Budget(usd=0.75), "the budget of $0.75 is spent"),
        (Budget(evaluations=1), ""),
    ],
)
def test_a_limit_is_reached_when_all_of_it_is_used(budget: Budget, reason: str) -> None:
    assert reached(budget, USED, at(0)) == reason


def test_a_question_may_use_all_that_is_left_and_no_more() -> None:
    assert too_dear(Budget(tokens=1500, usd=1.0), SPENT, 500, 0.25) == ""
    assert too_dear(Budget(tokens=1500), SPENT, 501, 0.0) == (
        "the budget of 1500 tokens is spent: 500 are left, and the next question could take 501"
    )
    assert too_dear(Budget(usd=1.0), SPENT, 1, 0.26) == (
        "the budget of $1 is spent: $0.2500 is left, and the next question could cost $0.2600"
    )
    assert too_dear(Budget(), SPENT, 10**9, 10**6) == ""


def test_a_reply_may_be_as_long_as_what_is_left_of_either_limit() -> None:
    def price(prompt: int, reply: int) -> float:
        return (prompt * 2 + reply * 10) / 1e6

    # 1000 tokens and $0.75 are used.
    assert longest_reply(Budget(), SPENT, 500, 8000, price) == 8000
    assert longest_reply(Budget(tokens=4000), SPENT, 500, 8000, price) == 2500
    assert longest_reply(Budget(tokens=1400), SPENT, 500, 8000, price) == 0
    # $0.05 is left, $0.001 goes for the prompt, and 4900 tokens at $10 a million for the rest.
    assert longest_reply(Budget(usd=0.8), SPENT, 500, 8000, price) == 4900
    assert longest_reply(Budget(tokens=4000, usd=0.8), SPENT, 500, 8000, price) == 2500
    assert longest_reply(Budget(usd=0.7), SPENT, 500, 8000, price) == 0
    assert longest_reply(Budget(usd=0.8), SPENT, 500, 8000, lambda prompt, reply: 0.0) == 8000


def test_pauses_and_the_time_between_two_runs_do_not_count() -> None:
    on: dict[str, Any] = {"on": True, "by": "person"}
    happenings: list[tuple[float, str, dict[str, Any]]] = [
        (0, "autopilot", on),
        (10, "paused", {"by": "person"}),
        (1000, "resumed", {"by": "person"}),
        (1005, "stopped", {"reason": "enough"}),
        (9000, "resumed", {"by": "engine"}),
        (9007, "autopilot", on),
    ]
    tree = tree_of(*happenings)
    assert tree.seconds(at(9010)) == 10 + 5 + 7 + 3
    assert seconds_left(Budget(minutes=1), tree, at(9010)) == 60 - 25
    assert seconds_left(Budget(), tree, at(9010)) is None
    assert reached(Budget(minutes=0.5), tree, at(9015)) == "the budget of 0.5 min is spent"
    assert tree_of(*happenings[:2]).seconds(at(500)) == 10
    assert tree_of(*happenings[:4]).seconds(at(5000)) == 15


def test_a_killed_run_counts_up_to_its_last_event() -> None:
    on: dict[str, Any] = {"on": True, "by": "person"}
    tree = tree_of((0, "autopilot", on), (4, "autopilot", on), (5000, "resumed", {"by": "engine"}))
    assert tree.seconds(at(5001)) == 5


@pytest.mark.parametrize("figure", ["prompt_tokens", "completion_tokens", "cost_usd", "seconds"])
@pytest.mark.parametrize("value", [-1, float("inf"), float("nan")])
def test_figures_that_would_give_something_back_are_refused(figure: str, value: float) -> None:
    if figure.endswith("tokens"):
        value = -1
    with pytest.raises(ValueError, match="figure below 0"):
        tree_of((0, "replied", replied(1, 1, 0.0) | {figure: value}))


def test_a_reply_must_be_there_before_it_is_spoken_of() -> None:
    with pytest.raises(ValueError, match="no text 123 in this run"):
        tree_of((0, "replied", replied(1, 1, 0.0) | {"text_sha256": "123"}))
    with pytest.raises(ValueError, match="does not match its hash"):
        tree_of((0, "text", {"sha256": "123", "text": "hello"}))
