"""Keys that are pressed while a run is still being opened are carried out once it is, or answered with a word."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.redirect import RedirectDialog
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtExplorer
from search.option import PASSED, PROPOSED, PRUNED
from search.problems.definition import ProblemError
from sessions.resume import resume_state


class Opening:
    """Opens the engine of a scripted run once ``go`` is set, or fails then."""

    def __init__(self, run) -> None:
        self.run, self.go, self.fails = run, asyncio.Event(), False

    async def __call__(self, config, *, tree=None):
        await self.go.wait()
        if self.fails:
            raise ProblemError("there is no problem 'gone'")
        return await self.run.open_engine(config, tree=tree)

    def app(self, **start) -> KsearchApp:
        return KsearchApp(AtExplorer(self.run.config, self.run.session, **start), open_engine=self)


@pytest.fixture
def opening(run) -> Opening:
    return Opening(run)


@pytest.fixture
async def resumed(run, settle, until):
    """An app that is opening a session whose root passed, with two options proposed under it."""
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("q")
    store, tree = resume_state(run.session)
    run.engine, opening = None, Opening(run)
    async with opening.app(store=store, tree=tree).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.screen.option is not None)
        yield pilot, opening


def said(pilot) -> str:
    return "\n".join(note.message for note in pilot.app._notifications)


async def opened(pilot, opening, settle) -> None:
    opening.go.set()
    await settle(pilot)


async def test_autopilot_pressed_while_a_new_run_opens_is_switched_on_then(opening, run, settle):
    async with opening.app().run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("A")
        assert "The run is being opened; this is done as soon as it is." in said(pilot)
        await opened(pilot, opening, settle)
        assert run.tree.autopilot
        assert run.tree.stopped == "nothing is left to try"


async def test_pause_pressed_while_a_new_run_opens_pauses_it(opening, run, settle):
    async with opening.app().run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("space")
        await opened(pilot, opening, settle)
        assert run.tree.paused
        await pilot.press("space")
        assert not run.tree.paused


async def test_an_approval_without_any_option_yet_is_answered_and_approves_nothing_later(opening, run, settle):
    async with opening.app().run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("a")
        assert "There is no option yet" in said(pilot)
        await opened(pilot, opening, settle)
        assert [run.tree[child].status for child in run.tree[run.tree.root].children] == [PROPOSED, PROPOSED]


async def test_decisions_while_a_session_is_resumed_are_about_the_options_that_the_cursor_was_on(resumed, run, settle):
    pilot, opening = resumed
    await pilot.press("j", "a", "j", "x", "k", "k")
    await opened(pilot, opening, settle)
    assert run.tree[run.id_of("one simdgroup a row")].status == PASSED
    assert run.tree[run.id_of("unroll ×8")].status == PRUNED


async def test_two_decisions_that_exclude_each_other_are_refused_in_words_once_the_run_is_open(resumed, run, settle):
    pilot, opening = resumed
    await pilot.press("j", "a", "a")
    await opened(pilot, opening, settle)
    assert "is approved already" in said(pilot)
    assert run.tree[run.id_of("one simdgroup a row")].status == PASSED


async def test_a_sentence_that_is_typed_while_a_session_is_resumed_is_followed_then(resumed, run, settle, until):
    pilot, opening = resumed
    await pilot.press("r")
    await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
    await pilot.press(*"two rows", "enter")
    await pilot.pause()
    assert isinstance(pilot.app.screen, RedirectDialog)
    opening.go.set()
    await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
    await settle(pilot)
    assert run.tree[run.id_of("follow: two rows")].parent == run.tree.root


@pytest.mark.parametrize("key", ["question_mark", "f2"])
async def test_a_run_that_cannot_open_goes_back_to_the_start_screen_from_under_what_lies_over_it(opening, until, key):
    opening.run.config = replace(opening.run.config, problem="gone")
    async with opening.app().run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(pilot.app.screen, ExplorerScreen))
        opening.fails = True
        opening.go.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        assert not any(isinstance(screen, ExplorerScreen) for screen in pilot.app.screen_stack)
