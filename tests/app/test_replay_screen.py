"""Replaying a recorded run by keyboard and by mouse."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from ksearch_tui.app import KsearchApp
from ksearch_tui.start_at import AtReplay
from ksearch_tui.widgets.kernel_tab import KernelTab
from ksearch_tui.widgets.position_bar import PositionBar
from search.option import PASSED, PROPOSED
from sessions.store import Session, read_session

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])


@pytest.fixture
async def session(run, settle) -> Session:
    """A run in which one option was approved and one pruned."""
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for key in ("j", "a", "G", "x", "q"):
            await pilot.press(key)
            await settle(pilot)
    return read_session(run.session)


def replaying(session: Session, **start) -> KsearchApp:
    return KsearchApp(AtReplay(session.events, session.config, "row sums", **start))


def position(pilot) -> int:
    return len(pilot.app.screen.run_state.events)


@SIZES
async def test_a_replay_plays_to_its_end_by_itself(session, until, size):
    async with replaying(session, speed=1e6).run_test(size=size) as pilot:
        await until(pilot, lambda: position(pilot) == len(session.events))
        titles = {option.title: option.status for option in pilot.app.screen.run_state.options.values()}
        assert titles["one simdgroup a row"] == PASSED
        assert titles["unroll ×8"] == "pruned"


@SIZES
async def test_steps_go_forth_and_back_one_event_at_a_time(session, until, size):
    async with replaying(session, paused=True).run_test(size=size) as pilot:
        await pilot.pause()
        assert position(pilot) == 1
        await pilot.press("right", "right", "full_stop")
        assert position(pilot) == 4
        await pilot.press("left", "comma")
        assert position(pilot) == 2
        assert list(pilot.app.screen.run_state.options) == [pilot.app.screen.options.chosen]


async def test_home_and_end_seek_and_the_tree_follows_both_ways(session, until):
    async with replaying(session, paused=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        assert pilot.app.screen.options.last_line == 5
        await pilot.press("home")
        await pilot.pause()
        assert position(pilot) == 1
        assert pilot.app.screen.options.last_line == 0


async def test_space_stops_and_goes_on_and_at_the_end_starts_again(session, until):
    async with replaying(session, paused=True).run_test(size=(80, 24)) as pilot:
        bar = pilot.app.screen.query_one(PositionBar)
        await pilot.press("space")
        assert str(bar.content).startswith("▶")
        await pilot.press("space")
        assert str(bar.content).startswith("‖")
        await pilot.press("end", "space")
        await pilot.pause()
        assert position(pilot) < len(session.events)
        assert str(bar.content).startswith("▶")


async def test_speed_doubles_and_halves_within_bounds(session):
    async with replaying(session, paused=True).run_test(size=(120, 24)) as pilot:
        bar = pilot.app.screen.query_one(PositionBar)
        await pilot.press("plus", "plus")
        assert str(bar.content).endswith("· 4×")
        await pilot.press("minus")
        assert str(bar.content).endswith("· 2×")
        await pilot.press(*["minus"] * 12)
        assert str(bar.content).endswith("· 0.0625×")


async def test_a_click_on_the_bar_goes_there_and_a_click_on_the_footer_steps(session, until):
    async with replaying(session, paused=True).run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        start, width = pilot.app.screen.query_one(PositionBar)._bar
        await pilot.click("#position", offset=(start + width // 2, 0))
        await pilot.pause()
        middle = position(pilot)
        assert abs(middle - len(session.events) / 2) <= len(session.events) / width + 1
        await pilot.click(pilot.app.screen.query("FooterKey")[1])
        await until(pilot, lambda: position(pilot) == middle + 1)


async def test_a_replay_decides_nothing_and_shows_kernels(session, until):
    async with replaying(session, paused=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        before = position(pilot)
        await pilot.press("j", "a", "x", "u", "2")
        await pilot.pause()
        assert position(pilot) == before
        lines = [line.text.plain for line in pilot.app.screen.query_one(KernelTab).lines]
        assert "// one simdgroup a row" in lines
        await pilot.press("d")
        await pilot.pause()
        changed = [
            line.gutter.plain + line.text.plain for line in pilot.app.screen.query_one(KernelTab).lines if line.ground
        ]
        assert changed == ["+ // one simdgroup a row"]


async def test_typing_in_the_find_line_does_not_move_the_replay(session):
    async with replaying(session, paused=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("end", "slash", *"a row", "left", "home", "space", "+")
        await pilot.pause()
        assert position(pilot) == len(session.events)
        assert pilot.app.screen.query_one("#find", Input).value == " +a row"


async def test_going_back_before_an_option_shows_it_as_it_was(session):
    async with replaying(session, paused=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        option = next(o for o in pilot.app.screen.run_state.options.values() if o.title == "one simdgroup a row")
        while pilot.app.screen.run_state[option.id].status == PASSED:
            await pilot.press("left")
        statuses = set()
        while pilot.app.screen.run_state[option.id].status != PROPOSED:
            statuses.add(pilot.app.screen.run_state[option.id].status)
            await pilot.press("left")
        assert statuses == {"running", "approved"}
