"""Text that grows at its end, folded to a width as it comes: what was folded once is never folded again."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len

_LAST_WORD = 0.6


class Folded:
    """Rows of at most ``width`` cells; all but the last are settled. ``read`` turns what was added into what is shown.

    ``read`` is given the text and whether it is the last; it returns what can be shown and what has to wait for more.
    """

    def __init__(self, width: int, read: Callable[[str], tuple[str, str]]) -> None:
        self.rows: list[str] = [""]
        self._width, self._read, self._held = width, read, ""

    def add(self, text: str) -> int:
        """Add ``text`` at the end; returns the first row that has changed."""
        first = len(self.rows) - 1
        shown, self._held = self._read(self._held + text)
        begun, *lines = shown.split("\n")
        self.rows[-1:] = fold(self.rows[-1] + begun, self._width)
        for line in lines:
            self.rows += fold(line, self._width)
        return first


def fold(text: str, width: int) -> list[str]:
    """Return a line in rows of at most ``width`` cells, parted between words where that doesn't waste much of a row."""
    rows = []
    while len(text) > width or cell_len(text) > width:
        end = _fitting(text, width)
        space = text.rfind(" ", int(end * _LAST_WORD), end) + 1
        rows.append(text[: space or end])
        text = text[space or end :]
        if len(text) > 64 * width:
            # A long line is cut into pieces first, so that the rest is not copied for each row of it.
            return [*rows, *_in_pieces(text, width)]
    return [*rows, text]


def _in_pieces(text: str, width: int) -> list[str]:
    rows = [""]
    for start in range(0, len(text), 32 * width):
        rows[-1:] = fold(rows[-1] + text[start : start + 32 * width], width)
    return rows


def _fitting(text: str, width: int) -> int:
    """Return how many characters of ``text`` fit into ``width`` cells, at least one."""
    end = width
    while end > 1 and cell_len(text[:end]) > width:
        end -= max(1, (cell_len(text[:end]) - width) // 2)
    return max(1, end)
