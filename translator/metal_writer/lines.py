"""Which line a piece of text came from, carried within the text itself while pieces are put together.

A private-use character before a token stands for its line; `split_marks` takes the marks out again.
"""

from __future__ import annotations

import re

_FIRST = 0xF0000
_MOST = 0x10FFFD - _FIRST
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(0x10FFFD)}]")


def mark(text: str, line: int) -> str:
    """Return ``text`` with each of its lines marked as that line of the source and those after it."""
    return "\n".join(
        chr(_FIRST + min(line + i, _MOST)) + part if part else part for i, part in enumerate(text.split("\n"))
    )


def unmark(text: str) -> str:
    """Return the text without its marks."""
    return _MARK.sub("", text)


def split_marks(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without its marks, and for each line where its first token stood (0: nowhere)."""
    lines = []
    for line in text.split("\n"):
        found = _MARK.search(line)
        lines.append(ord(found.group()) - _FIRST if found else 0)
    return unmark(text), tuple(lines)
