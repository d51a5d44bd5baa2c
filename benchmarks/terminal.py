"""A program in a terminal of its own: what it paints can be waited for, and keys can be typed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

# Answers that Textual waits for or takes note of: it asks which modes the terminal knows.
_PAINT_LIMIT_SECONDS = 20.0


class Terminal:
    """Runs ``ksearch-tui`` with ``arguments`` in a pseudo-terminal of ``width`` by ``height`` cells."""

    def __init__(self, arguments: list[str], width: int = 160, height: int = 50) -> None:
        self.started = time.perf_counter()
        self.painted = b""
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, "-m", "ksearch_tui.cli", *arguments])
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def wait_for(self, *texts: str) -> float:
        """Return when (``perf_counter``) the last of ``texts`` was painted after this call began or the last key."""
        wanted = [text.encode() for text in texts]
        limit = time.perf_counter() + _PAINT_LIMIT_SECONDS
        while time.perf_counter() < limit:
            ready, _, _ = select.select([self._terminal], [], [], 0.5)
            if ready:
                try:
                    self.painted += os.read(self._terminal, 1 << 16)
                except OSError:
                    break
            if all(text in self.painted for text in wanted):
                return time.perf_counter()
        raise TimeoutError(f"{texts} was not painted; the last output is {self.painted[-400:]!r}")

    def press(self, key: str) -> float:
        """Forget what was painted, type ``key``, and return when."""
        self._drain()
        self.painted = b""
        pressed = time.perf_counter()
        os.write(self._terminal, key.encode())
        return pressed

    def _drain(self) -> None:
        while select.select([self._terminal], [], [], 0)[0]:
            os.read(self._terminal, 1 << 16)

    def close(self) -> None:
        """Quit, and end the program if it does not."""
        os.write(self._terminal, b"q")
        limit = time.perf_counter() + 10
        while time.perf_counter() < limit:
            if os.waitpid(self._process, os.WNOHANG)[0]:
                break
            if select.select([self._terminal], [], [], 0.05)[0]:
                try:
                    os.read(self._terminal, 1 << 16)
                except OSError:
                    continue
        else:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._terminal)
