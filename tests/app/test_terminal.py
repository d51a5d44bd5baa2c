"""The whole program in a real pseudo-terminal: killed or left, it gives the terminal back and the session is whole."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

import pytest

from search.tree import Tree
from sessions.store import read_session

LEAVE_ALTERNATE_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"


class Program:
    """``ksearch-tui`` in a pseudo-terminal of 100×30."""

    def __init__(self, *arguments: str) -> None:
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, "-m", "ksearch_tui.cli", *arguments])
        ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read_until(self, text: bytes, seconds: float = 60.0) -> None:
        """Read what is painted until ``text`` is in it."""
        limit = time.monotonic() + seconds
        while text not in self.output:
            assert time.monotonic() < limit, self.output[-2000:]
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.output += os.read(self.terminal, 65536)

    def ends(self, seconds: float = 30.0) -> int:
        """Read to the end and return the exit code."""
        limit = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while time.monotonic() < limit:
                if select.select([self.terminal], [], [], 0.2)[0]:
                    self.output += os.read(self.terminal, 65536)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "run.ksearch.toml"


def explore(session) -> Program:
    return Program("explore", "softmax", "--device", "simulator", "--session", str(session))


@pytest.mark.parametrize("how", ["key", "SIGTERM", "SIGHUP"])
def test_however_it_ends_the_terminal_is_given_back_and_the_session_folds(session, how):
    program = explore(session)
    # The footer's last word comes with the first full paint; the run is opened after that.
    program.read_until(b"help")
    program.read_until(b"Naive")
    if how == "key":
        os.write(program.terminal, b"q")
    else:
        os.kill(program.pid, getattr(signal, how))
    assert program.ends() == 0
    assert LEAVE_ALTERNATE_SCREEN in program.output
    assert SHOW_CURSOR in program.output
    assert f"resume {session}".encode() in program.output.replace(b"\r\n", b"")
    tree = Tree.fold(read_session(session).events)
    assert tree.stopped == "quit"


def test_an_interrupt_key_says_how_to_quit_and_does_not_end_the_run(session):
    program = explore(session)
    program.read_until(b"Naive")
    program.output = b""
    os.write(program.terminal, b"\x03")
    program.read_until(b"quit")
    os.write(program.terminal, b"q")
    assert program.ends() == 0
