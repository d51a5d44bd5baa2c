"""A status line that a terminal overwrites and a log never sees."""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import Self, TextIO


class StatusLine:
    """Shows one changing line on a terminal; on anything else it shows nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._live, self._shown = stream, stream.isatty(), False

    def show(self, text: str) -> None:
        """Replace the line by ``text``."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Take the line away, so that a lasting line can be printed."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
