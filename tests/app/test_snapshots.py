"""What the screens look like, at both ends of the sizes that must work; the clock and the run are scripted.

After a change that is meant: ``pytest tests/app/test_snapshots.py --snapshot-update``, and look at the pictures.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.widgets import Input

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.new_option import NewOptionDialog
from ksearch_tui.screens.new_problem import NewProblemDialog
from ksearch_tui.screens.redirect import RedirectDialog
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtReplay, AtStart
from ksearch_tui.widgets.line_view import LineView
from search.problems.definition import load_problem
from sessions.store import read_session

# Another Textual may draw its own widgets differently; that is no fault of ours.
DRAWN_WITH = "8.2.8"
pytestmark = [
    pytest.mark.skipif(version("textual") != DRAWN_WITH, reason=f"the pictures were drawn with Textual {DRAWN_WITH}"),
    pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"]),
]


@pytest.fixture
def steered(settle):
    """Return what brings a run to a state worth a picture: passed, failed, pruned, pinned and proposed options."""

    async def steer(pilot, *more: str) -> None:
        await settle(pilot)
        for key in ("j", "a", "j", "a", "j", "a", "j", "a", "j", "x", "k", "k", "p", *more):
            await pilot.press(key)
            if key in "axp":
                await settle(pilot)
        pilot.app.clear_notifications()
        await settle(pilot)

    return steer


@pytest.mark.parametrize("tab", ["1", "2", "4", "5"], ids=["option", "kernel", "timing", "activity"])
def test_explorer(picture, run, steered, size, tab):
    assert picture(run.app(), size, lambda pilot: steered(pilot, tab))


def test_mapping(picture, run, steered, until, size):
    async def show(pilot) -> None:
        await steered(pilot, "3", "enter")
        screen = pilot.app.screen
        await until(pilot, lambda: len(screen.query_one("#mapping-metal", LineView).lines) > 1, seconds=20)
        await pilot.press(*["right_square_bracket"] * 3)
        await pilot.pause()

    assert picture(run.app(), size, show)


def test_explorer_with_a_diff(picture, run, steered, size):
    assert picture(run.app(), size, lambda pilot: steered(pilot, "d"))


def test_explorer_while_an_evaluation_runs(picture, run, settle, size):
    async def hold(pilot) -> None:
        await settle(pilot)
        run.evaluator.gate.clear()
        for key in ("j", "a", "A"):
            await pilot.press(key)
            await settle(pilot)

    assert picture(run.app(), size, hold)


def test_redirect_with_a_question(picture, run, settle, until, size):
    async def ask(pilot) -> None:
        await settle(pilot)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        pilot.app.screen.query_one(Input).cursor_blink = False
        await pilot.press(*"go faster", "enter")
        await until(pilot, lambda: pilot.app.screen.query_one("#choices").has_focus)

    assert picture(run.app(), size, ask)


def test_new_option(picture, run, settle, until, size):
    async def open_dialog(pilot) -> None:
        await settle(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewOptionDialog))
        for field in pilot.app.screen.query(Input):
            field.cursor_blink = False
        await pilot.press(*"two rows a simdgroup")

    assert picture(run.app(), size, open_dialog)


def test_help(picture, run, settle, size):
    async def open_help(pilot) -> None:
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()

    assert picture(run.app(), size, open_help)


def test_start(picture, run, until, monkeypatch, size):
    recent = [Path("/home/you/softmax-20251103-1402.ksearch.toml"), Path("/home/you/mine [b].ksearch.toml")]
    monkeypatch.setattr("ksearch_tui.screens.start.recent_sessions", lambda: recent)
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: ["attention", "softmax"])
    monkeypatch.setattr("ksearch_tui.screens.start.example_path", Path)
    row_sums = load_problem(run.config.problem)
    monkeypatch.setattr("ksearch_tui.screens.start.load_problem", lambda name: row_sums)
    monkeypatch.setattr("ksearch_tui.screens.start.built_in_names", lambda: ["attention_prefill", "softmax"])
    monkeypatch.setattr(
        "ksearch_tui.screens.start.new_session_path", lambda problem: Path("/home/you/sessions/run.ksearch.toml")
    )
    monkeypatch.setattr("ksearch_tui.screens.start.default_device", lambda: "simulator")
    app = KsearchApp(AtStart(said="'/home/you/a.ksearch.toml' can't be created: Permission denied [/b]"))

    async def show(pilot) -> None:
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        await pilot.pause()

    assert picture(app, size, show)


def test_replay(picture, run, steered, size):
    async def record() -> None:
        async with run.app().run_test(size=(80, 24)) as pilot:
            await steered(pilot, "q")

    asyncio.run(record())
    session = read_session(run.session)
    app = KsearchApp(AtReplay(session.events, session.config, "row sums", paused=True))
    assert picture(app, size, lambda pilot: pilot.press("end", "left", "j"))


def test_new_problem_with_a_question(picture, run, until, monkeypatch, tmp_path, size):
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: [])
    monkeypatch.setattr(
        "ksearch_tui.screens.start.new_session_path", lambda problem: Path("/home/you/run.ksearch.toml")
    )
    monkeypatch.setattr("ksearch_tui.screens.start.default_device", lambda: "simulator")
    monkeypatch.chdir(tmp_path)
    Path("twice.cu").write_text(
        "__global__ void twice(float* y, int n) {\n  if (threadIdx.x < n) y[threadIdx.x] *= 2;\n}\n"
    )

    async def ask(pilot) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewProblemDialog))
        await pilot.press(*"twice.cu", "enter")
        await until(pilot, lambda: pilot.app.screen.query("#questions Input:focus"), seconds=60)
        for field in pilot.app.screen.query(Input):
            field.cursor_blink = False
        await pilot.press(*"ceildiv(n, 32)")

    app = KsearchApp(AtStart(), open_engine=run.open_engine)
    assert picture(app, size, ask)
