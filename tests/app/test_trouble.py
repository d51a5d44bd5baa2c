"""Hostile text, failing engines, full disks and small terminals: one clear message, and the app stays whole."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest
from textual.widgets import Input

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtExplorer, AtReplay
from ksearch_tui.widgets.kernel_tab import KernelTab
from ksearch_tui.widgets.option_tree import OptionTree
from search.config import RunConfig
from search.evaluation.record import Evaluation, Failure
from search.events import Event
from search.option import FAILED, PASSED
from search.tree import Tree
from sessions.store import read_session

HOSTILE = [
    "[/b]",
    "tile[red]x",
    "\x1b[2J\x1b]0;owned\x07",
    "a\tb\r\nc",
    "\u202ertl",
    "x" * 5_000,
    "{}[@click=app.quit]",
    "日本語" * 40,
]


def said(pilot) -> str:
    return "\n".join(note.message for note in pilot.app._notifications)


def screen_text(pilot) -> str:
    """Return what is on the screen as plain text."""
    app = pilot.app
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def test_hostile_text_is_shown_on_every_tab_and_stays_text(run, settle):
    run.proposer.proposals = {"one thread a row": [(text, text, 5.0, 0.5, 2, 1.5) for text in HOSTILE]}
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        shown = screen_text(pilot)
        assert "[/b]" in shown
        assert "tile[red]x" in shown
        assert "␛[2J␛]0;owned␇" in shown
        for _ in HOSTILE:
            await pilot.press("j", "a")
            await settle(pilot)
            for tab in "251":
                await pilot.press(tab)
                shown = screen_text(pilot)
                assert not {character for character in shown if character < " "} - {"\n"}
                assert "\u202e" not in shown
        assert {run.tree[child].status for child in run.tree[run.tree.root].children} == {PASSED, FAILED}


async def test_a_hostile_kernel_and_failure_are_shown_as_they_are(run, settle):
    async def evaluate(program, progress):
        failure = Failure("compile", "expected '[/b]' \x1b[31m", "row_sums", 2)
        return Evaluation(program.sha256, "failed", "simulator", "modelled", "m3", failure)

    write = run.proposer.write

    async def hostile(situation, option):
        program = await write(situation, option)
        source = "x[/b];\n\x1b[2J // [red]\n" + "y" * 20_000 + "\n"
        return replace(program, passes=(replace(program.passes[0], source=source, header="#define [/b]\n"),))

    run.evaluator.evaluate, run.proposer.write = evaluate, hostile
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("2")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "#define [/b]" in shown
        assert "2✗␛[2J // [red]" in shown
        await pilot.press("1")
        await settle(pilot)
        assert "compile (pass 'row_sums', line 2): expected '[/b]' ␛[31m" in screen_text(pilot)


async def test_a_broken_evaluator_stops_the_run_with_its_reason_and_the_session_is_whole(run, settle):
    async with run.app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        run.evaluator.breaks = RuntimeError("the sky [/b] fell")
        await pilot.press("j", "a")
        await settle(pilot)
        assert "the sky [/b] fell" in said(pilot)
        assert run.tree.stopped
        assert isinstance(pilot.app.screen, ExplorerScreen)
        run.evaluator.breaks = None
        await pilot.press("space")
        await settle(pilot)
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED
        await pilot.press("q")
    assert len(Tree.fold(read_session(run.session).events).events) == len(run.tree.events)


async def test_a_full_disk_ends_the_run_with_a_message_and_keeps_what_was_written(run, settle, until, monkeypatch):
    async with run.app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        written = len(run.tree.events)

        def full(descriptor: int, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("sessions.store._write_whole", full)
        await pilot.press("j", "a")
        await until(pilot, lambda: "No space left on device" in said(pilot))
        await settle(pilot)
        assert isinstance(pilot.app.screen, ExplorerScreen)
        await pilot.press("q")
    assert len(read_session(run.session).events) == written


@pytest.mark.parametrize(
    ("config", "session", "reason"),
    [
        ({"problem": "attention_prefil"}, "a.ksearch.toml", "did you mean 'attention_prefill'?"),
        ({}, "missing/a.ksearch.toml", "there is no"),
        ({}, "taken.ksearch.toml", "already there"),
        ({"profile": "apple-m3-mix"}, "a.ksearch.toml", "did you mean 'apple-m3-max'?"),
    ],
)
async def test_a_run_that_cannot_open_is_explained_on_the_start_screen(run, until, tmp_path, config, session, reason):
    (tmp_path / "taken.ksearch.toml").touch()
    start = AtExplorer(replace(run.config, **config), tmp_path / session)
    app = KsearchApp(start, open_engine=run.open_engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        await pilot.pause()
        assert reason in str(app.screen.query_one("#said").content)


async def test_quitting_while_an_evaluation_runs_breaks_it_off_and_saves(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        run.evaluator.gate.clear()
        await pilot.press("j", "a")
        await settle(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert pilot.app.return_value.session == run.session
    kinds = [event.kind for event in read_session(run.session).events]
    assert kinds[-2:] == ["cancelled", "stopped"]


@pytest.mark.parametrize("size", [(59, 24), (80, 15), (20, 5)])
async def test_a_terminal_that_is_too_small_shows_one_sentence(run, settle, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        shown = " ".join(screen_text(pilot).split())
        assert shown.startswith(f"This terminal is {size[0]}×{size[1]}; ksearch-tui needs 60×16.")
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "one thread a row" in screen_text(pilot)


def big_run(options: int) -> list[Event]:
    """Return the events of a run with ``options`` proposed options, a hundred under each."""
    events = []
    for number in range(options):
        data = {
            "option": f"o{number}",
            "parent": "" if number == 0 else f"o{(number - 1) // 100}",
            "title": f"option {number}",
            "why": "",
            "action": "",
            "rating": float(number % 10),
            "confidence": 0.5,
            "difficulty": 1,
            "predicted": 1.0,
            "by": "script",
            "origin": 0,
        }
        events.append(Event(number + 1, "2025-11-03T14:02:00.000Z", "option_added", data))
    return events


async def test_two_thousand_options_are_all_reachable(run, until):
    start = AtReplay(big_run(2_000), run.config, "big", paused=True)
    async with KsearchApp(start).run_test(size=(80, 24)) as pilot:
        await pilot.press("end")
        tree = pilot.app.screen.query_one(OptionTree)
        await until(pilot, lambda: tree.last_line == 1_999)
        await pilot.press("G")
        await pilot.pause()
        assert pilot.app.screen.option.title.startswith("option ")
        await pilot.press("slash", *"1234")
        await pilot.pause()
        assert pilot.app.screen.option.title == "option 1234"
        assert pilot.app.screen.query_one("#find", Input).value == "1234"
        await pilot.press("escape", "home")
        await until(pilot, lambda: tree.last_line == 0)


async def test_a_damaged_program_is_said_in_the_kernel_tab(run, settle, monkeypatch):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        root = run.tree[run.tree.root]
        run.tree.kernels.clear()
        await pilot.press("2")
        await settle(pilot)
        assert "is damaged" in pilot.app.screen.query_one(KernelTab).lines[0].text.plain
        assert root.program[:12] in pilot.app.screen.query_one(KernelTab).lines[0].text.plain


async def test_an_unknown_device_in_a_replayed_session_does_not_matter(run):
    config = RunConfig("gone/problem", "cuda", "some-gpu", "llm", 3)
    async with KsearchApp(AtReplay(big_run(3), config, "foreign", paused=True)).run_test(size=(80, 24)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "Mapping tab stays empty" in said(pilot)
        assert len(pilot.app.screen.run_state.options) == 3
