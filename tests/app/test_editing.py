"""Editing a program in a person's own editor: whatever happens there, the run and the text survive."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
from textual.drivers.headless_driver import HeadlessDriver

from search.option import PASSED, PROPOSED


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Return a way to set $EDITOR to a shell script; the test's terminal lends itself to it."""
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("VISUAL", raising=False)

    def install(body: str) -> None:
        script = tmp_path / "my editor"
        script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("EDITOR", f"'{script}' --wait")

    return install


def drafts(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("ksearch-edit-*/*.metal"))


def said(pilot) -> str:
    return "\n".join(note.message for note in pilot.app._notifications)


async def edit(pilot, settle, until) -> None:
    """Edit the first option under the root and wait for what is said about it."""
    await settle(pilot)
    await pilot.press("j", "e")
    await until(pilot, lambda: pilot.app._notifications)
    await settle(pilot)


async def test_the_edited_program_runs_and_its_draft_is_gone(run, settle, until, editor, tmp_path):
    editor('echo "// mine" >> "$2"')
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        option = run.tree[run.id_of("one simdgroup a row")]
        assert option.status == PASSED
        assert run.tree.program(option.program).passes[0].source.endswith("// mine")
    assert drafts(tmp_path) == []


async def test_the_draft_starts_from_what_the_proposer_would_write(run, settle, until, editor, tmp_path):
    editor(f'cp "$2" "{tmp_path}/seen.metal"')
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        assert said(pilot) == "Nothing was changed."
        assert run.tree[run.id_of("one simdgroup a row")].status == PROPOSED
    text = (tmp_path / "seen.metal").read_text(encoding="utf-8")
    assert "//@ grid rows; 1; 1" in text
    assert text.endswith("// one simdgroup a row\n\n")


async def test_without_an_editor_it_says_which_variable_to_set(run, settle, until, editor, monkeypatch, tmp_path):
    monkeypatch.delenv("EDITOR", raising=False)
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        assert "set $VISUAL or $EDITOR" in said(pilot)
    assert drafts(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo "//@ nonsense" >> "$2"', "unknown directive"),
        ('echo "// lost?" >> "$2"; exit 3', "ended with code 3"),
        ('printf "\\377" >> "$2"', "can't be read"),
    ],
)
async def test_a_text_that_cannot_be_taken_over_is_kept_and_named(run, settle, until, editor, tmp_path, script, reason):
    editor(script)
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        [kept] = drafts(tmp_path)
        assert reason in said(pilot)
        assert str(kept) in said(pilot)
        assert run.tree[run.id_of("one simdgroup a row")].status == PROPOSED


async def test_the_run_goes_on_while_the_editor_is_open(run, settle, until, editor, tmp_path):
    done = tmp_path / "done"
    editor(f'while [ ! -e "{done}" ]; do sleep 0.02; done')
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        run.evaluator.gate.clear()
        await pilot.press("j", "a")
        await settle(pilot)
        await pilot.press("j", "e")
        await until(pilot, lambda: drafts(tmp_path))
        run.evaluator.gate.set()
        await until(pilot, lambda: run.tree[run.id_of("one simdgroup a row")].status == PASSED)
        done.touch()
        await until(pilot, lambda: "Nothing was changed." in said(pilot))


async def test_an_interrupt_in_the_editor_does_not_end_the_app(run, settle, until, editor):
    editor(f"kill -INT {os.getpid()}; exit 0")
    before = signal.getsignal(signal.SIGINT)
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        assert said(pilot) == "Nothing was changed."
        assert pilot.app.is_running
    assert signal.getsignal(signal.SIGINT) is before


async def test_a_terminal_that_cannot_be_lent_keeps_the_text_and_says_so(
    run, settle, until, editor, monkeypatch, tmp_path
):
    editor("exit 0")
    monkeypatch.setattr(HeadlessDriver, "can_suspend", False)
    async with run.app().run_test(size=(80, 24)) as pilot:
        await edit(pilot, settle, until)
        [kept] = drafts(tmp_path)
        assert "can't be lent" in said(pilot)
        assert str(kept) in said(pilot)
