"""Opening, creating and locking session files, and what a person is told when that can't be."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search.config import RunConfig
from search.events import Event
from sessions import store as store_module
from sessions.resume import resume_state
from sessions.store import SessionError, SessionStore, read_session

CONFIG = RunConfig("softmax")
PAUSED = Event(1, "2025-01-01T00:00:00Z", "paused", {"by": "person"})


def test_a_new_session_never_overwrites_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ksearch.toml"
    path.write_text("mine")
    with pytest.raises(SessionError, match="already there: resume it, or choose another name"):
        SessionStore.create(path, CONFIG)
    assert path.read_text() == "mine"


def test_a_path_that_can_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is a folder"):
        SessionStore.create(tmp_path, CONFIG)
    with pytest.raises(SessionError, match=r"there is no '.*missing'"):
        SessionStore.create(tmp_path / "missing" / "a.ksearch.toml", CONFIG)
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="can't be created: Not a directory"):
        SessionStore.create(tmp_path / "file" / "a.ksearch.toml", CONFIG)


def test_a_file_system_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ksearch.toml"

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    for opening in (read_session, SessionStore.open, lambda p: SessionStore.create(p, CONFIG)):
        with pytest.raises(SessionError, match=r"can't be .*: Permission denied"):
            opening(path)


def test_what_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for opening in (read_session, SessionStore.open):
        with pytest.raises(SessionError, match="there is no"):
            opening(tmp_path / "none.ksearch.toml")
        with pytest.raises(SessionError, match="is a folder"):
            opening(tmp_path)
        with pytest.raises(SessionError, match="not a file that can hold a session"):
            opening(tmp_path / "pipe")


def test_a_file_that_a_run_has_open_can_be_read_but_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as running:
        running.append(PAUSED)
        with pytest.raises(SessionError, match="open in another ksearch-tui"):
            SessionStore.open(path)
        assert read_session(path).events == [PAUSED]
    with SessionStore.open(path) as store:
        assert store.events == [PAUSED]


def test_a_session_behind_a_symbolic_link_goes_on_in_its_own_file(tmp_path: Path) -> None:
    path, link = tmp_path / "a.ksearch.toml", tmp_path / "link.ksearch.toml"
    SessionStore.create(path, CONFIG).close()
    link.symlink_to(path)
    with SessionStore.open(link) as store:
        store.append(PAUSED)
    assert link.is_symlink()
    assert read_session(path).events == [PAUSED]


def test_a_full_disk_leaves_the_file_whole_and_the_event_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        before = path.read_bytes()
        write = os.write
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
            with pytest.raises(SessionError, match="is the disk full"):
                store.append(PAUSED)
        assert path.read_bytes() == before
        with pytest.raises(SessionError, match="event 2 does not follow event 0"):
            store.append(Event(2, PAUSED.at, "resumed", {"by": "person"}))
        store.append(PAUSED)
    assert read_session(path).events == [PAUSED]


def test_every_event_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ksearch.toml"
    calls: list[str] = []
    write, fsync = os.write, os.fsync
    with SessionStore.create(path, CONFIG) as store:
        monkeypatch.setattr(store_module.os, "write", lambda *a: (calls.append("write"), write(*a))[1])
        monkeypatch.setattr(store_module.os, "fsync", lambda *a: (calls.append("fsync"), fsync(*a))[1])
        store.append(PAUSED)
    assert calls == ["write", "fsync"]


def test_a_closed_session_takes_no_more_events(tmp_path: Path) -> None:
    store = SessionStore.create(tmp_path / "a.ksearch.toml", CONFIG)
    store.close()
    store.close()
    with pytest.raises(SessionError, match="is closed"):
        store.append(PAUSED)


def test_resuming_gives_the_tree_that_the_events_make(tmp_path: Path, run: list[Event]) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        for event in run:
            store.append(event)
    store, tree = resume_state(path)
    assert (tree.evaluations, tree.best().title, tree.stopped) == (2, "exp2 softmax", "the budget is spent")
    assert tree.speedup("o2") == pytest.approx(2.0)
    assert not tree["o2"].pruned
    store.close()


def test_a_run_that_does_not_fit_together_is_refused_and_unlocked(tmp_path: Path) -> None:
    path = tmp_path / "a.ksearch.toml"
    with SessionStore.create(path, CONFIG) as store:
        store.append(Event(1, PAUSED.at, "failed", {"option": "o9", "reason": "x"}))
    for _ in range(2):
        with pytest.raises(SessionError, match=r"can't be resumed: .*o9"):
            resume_state(path)


APPENDER = """
import sys
from itertools import count
from pathlib import Path
from search.events import Event
from sessions.store import SessionStore

text = "\\n".join(f"y[{i}] = 'x' + end = true;" for i in range(200))
with SessionStore.open(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    for seq in count(len(store.events) + 1):
        store.append(Event(seq, "2025-01-01T00:00:00Z", "note", {"text": text, "level": "info", "option": str(seq)}))
        print(seq, flush=True)
"""


def test_fifty_kills_lose_at_most_the_event_being_written(tmp_path: Path) -> None:
    """The child says after each append that it is safe; what it said must be there, and at most one event more."""
    path = tmp_path / "a.ksearch.toml"
    SessionStore.create(path, CONFIG).close()
    recorded = 0
    for kill in range(50):
        child = subprocess.Popen([sys.executable, "-c", APPENDER, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        # Anywhere within the first appends, a different place each time.
        time.sleep(kill * 0.00037)
        child.send_signal(signal.SIGKILL)
        said = [int(line) for line in child.stdout.read().splitlines()]
        child.wait()
        child.stdout.close()
        with SessionStore.open(path) as store:
            safe = said[-1] if said else recorded
            assert safe <= len(store.events) <= safe + 1
            assert [event["option"] for event in store.events] == [str(event.seq) for event in store.events]
            recorded = len(store.events)
    assert recorded > 50
