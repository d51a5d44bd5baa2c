"""Walking through a recorded run: every place shows what folding the events so far makes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.events import Event
from search.tree import Tree
from sessions import replay as replay_module
from sessions.replay import Replay
from sessions.store import SessionError


def same(one: Tree, other: Tree) -> bool:
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(Tree))


def test_every_step_shows_the_fold_of_the_events_so_far(run: list[Event]) -> None:
    replay = Replay(run)
    for position, event in enumerate(run):
        assert replay.position == position
        assert same(replay.tree, Tree.fold(run[:position]))
        assert replay.step() is event
    assert replay.step() is None
    assert same(replay.tree, Tree.fold(run))


@pytest.mark.parametrize("every", [1, 3, 250])
def test_going_back_shows_it_too_even_across_an_undo(
    run: list[Event], every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "_CHECKPOINT_EVERY", every)
    replay = Replay(run)
    replay.seek(len(run))
    for position in range(len(run) - 1, -1, -1):
        replay.back()
        assert replay.position == position
        assert same(replay.tree, Tree.fold(run[:position]))
    replay.back()
    assert replay.position == 0


def test_any_walk_ends_where_the_fold_does(run: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "_CHECKPOINT_EVERY", 4)
    replay = Replay(run)

    @given(st.lists(st.integers(-3, len(run) + 3), max_size=6))
    @settings(max_examples=50)
    def walk(places: list[int]) -> None:
        for place in places:
            replay.seek(place)
            assert replay.position == min(max(place, 0), len(run))
            assert same(replay.tree, Tree.fold(run[: replay.position]))
            replay.step()

    walk()


def test_what_a_step_does_to_a_tree_does_not_reach_a_checkpoint(run: list[Event]) -> None:
    replay = Replay(run)
    replay.seek(3)
    seen = replay.tree
    events = list(seen.events)
    replay.seek(0)
    replay.seek(len(run))
    replay.seek(2)
    assert seen.events == events
    assert same(replay.tree, Tree.fold(run[:2]))


def test_the_pace_is_the_run_s_own_with_long_waits_cut_short(make_events: Any) -> None:
    times = ["00:00:00.000Z", "00:00:01.500Z", "02:00:00.000Z", "01:59:00.000Z"]
    events = [
        Event(event.seq, f"2025-01-01T{time}", event.kind, event.data)
        for event, time in zip(
            make_events([("paused", {"by": "engine"}), ("resumed", {"by": "engine"})] * 2), times, strict=True
        )
    ]
    replay = Replay(events)
    assert replay.delay(1.0) == 0.0
    replay.step()
    assert replay.delay(1.0) == pytest.approx(1.5)
    assert replay.delay(3.0) == pytest.approx(0.5)
    replay.step()
    assert replay.delay(1.0) == pytest.approx(3.0)
    assert replay.delay(2.0) == pytest.approx(1.5)
    replay.step()
    # The clock was set back.
    assert replay.delay(1.0) == 0.0
    replay.step()
    assert replay.delay(1.0) == 0.0
    with pytest.raises(ValueError, match="above 0"):
        replay.delay(0)


def test_a_run_that_does_not_fit_together_is_refused_before_the_first_step(make_events: Any) -> None:
    with pytest.raises(SessionError, match=r"does not fit together.*o7"):
        Replay(make_events([("paused", {"by": "engine"}), ("failed", {"option": "o7", "reason": "x"})]))
