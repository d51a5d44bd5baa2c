"""Text of files that nobody here wrote, as data within a text that is read: it can't end its quotation, nor act."""

from __future__ import annotations

import re

LONGEST_LINE = 140


def plain(text: str) -> str:
    """Return the text on one line, with a mark for every character that doesn't show, and no backquotes."""
    return _visible(" ".join(text.split())).replace("`", "'")


def fenced(text: str, language: str, longest: int = LONGEST_LINE) -> str:
    """Return the text as a Markdown block whose fence is longer than any run of backquotes in it.

    Control characters become marks, tabs blanks, and lines of more than ``longest`` characters are cut.
    """
    lines = [_cut(_visible(line.expandtabs(4)).rstrip(), longest) for line in re.split(r"\r\n|\n|\r", text)]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *lines, fence])


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else line[: longest - 1] + "…"
