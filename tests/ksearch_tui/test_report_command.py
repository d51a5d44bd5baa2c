"""``ksearch-tui report`` as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ksearch_tui.report.page import render
from search.config import RunConfig
from search.problems.definition import load_problem
from sessions.examples import example_path
from sessions.report import gather
from sessions.store import SessionStore, read_session
from tests.ksearch_tui.commands import ksearch
from tests.sessions.all_kinds import all_kinds, in_session


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A recorded run of a problem that is no longer there."""
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, RunConfig(str(tmp_path / "gone"))) as store:
        for event in in_session(all_kinds()).events:
            store.append(event)
    return path


def test_the_page_is_written_or_printed(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = ksearch("report", "softmax", "-o", str(page))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {page}\n")
    session = read_session(example_path("softmax"))
    assert page.read_text(encoding="utf-8") == render(gather("softmax.ksearch.toml", session, load_problem("softmax")))
    # An earlier report is written over, as an earlier export is.
    assert ksearch("report", str(example_path("softmax")), "-o", str(page)).returncode == 0
    # What a terminal can show has no say in the encoding.
    printed = ksearch("report", "softmax", PYTHONIOENCODING="ascii")
    assert (printed.returncode, printed.stdout) == (0, page.read_text(encoding="utf-8"))


def test_a_session_whose_problem_is_gone_is_reported_all_the_same(session: Path) -> None:
    done = ksearch("report", str(session))
    assert done.returncode == 0
    assert "<h1>gone</h1>" in done.stdout
    assert "the report is without the problem's description: unknown problem" in done.stderr


def test_a_torn_session_is_reported_and_left_alone(session: Path) -> None:
    torn = session.read_bytes()[:-10]
    session.write_bytes(torn)
    done = ksearch("report", str(session))
    assert done.returncode == 0
    assert "are an event cut short, and are left out" in done.stderr
    assert "The last event of the file was cut short" in done.stdout
    assert session.read_bytes() == torn


def test_the_session_itself_is_not_written_over(session: Path, tmp_path: Path) -> None:
    before = session.read_bytes()
    other = tmp_path / "other-name.html"
    other.symlink_to(session)
    for output in (session, other):
        done = ksearch("report", str(session), "-o", str(output))
        assert done.returncode == 2
        assert f"'{output}' is the session itself: name another file" in done.stderr
    assert session.read_bytes() == before


def test_mistakes_are_told_in_a_sentence(session: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no session\n")
    for arguments, code, complaint in (
        (("softmx",), 2, "no session file and no example 'softmx': did you mean 'softmax'?"),
        ((str(tmp_path / "notes.txt"),), 1, "it is not a session"),
        ((str(tmp_path),), 1, "is a folder"),
        (("softmax", "-o", str(tmp_path / "no" / "a.html")), 1, "can't write"),
        (("softmax", "-o", str(tmp_path)), 1, "can't write"),
    ):
        done = ksearch("report", *arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert complaint in done.stderr and "Traceback" not in done.stderr


def test_help_names_the_file_and_the_output() -> None:
    done = ksearch("report", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ksearch-tui report [-h] [-o OUT] FILE")


def test_a_report_needs_neither_a_screen_nor_mlx() -> None:
    code = (
        "import sys, ksearch_tui.headless.report\n"
        "heavy = {'textual', 'rich', 'mlx', 'openai'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
