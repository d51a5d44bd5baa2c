"""A place in a text."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A part of the text: ``text[start:end]``, and where it starts, line and column counted from 1."""

    start: int
    end: int
    line: int
    column: int

    def holds(self, other: Span) -> bool:
        """Whether the other span lies within this one."""
        return self.start <= other.start and other.end <= self.end
