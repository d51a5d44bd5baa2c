"""Writing Metal text: lines, comments and indented blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_INDENT = "  "


class MetalWriter:
    """Collects the lines of a kernel; call it to add lines at the current depth."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def __call__(self, *lines: str) -> None:
        """Add ``lines``; an empty one separates paragraphs."""
        self._lines += [_INDENT * self._depth + line if line else "" for line in lines]

    def note(self, *lines: str) -> None:
        """Add a comment of one or more lines."""
        self(*(f"// {line}" for line in lines))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head { ... }`` around what is written inside the ``with``; ``head`` may be empty for a bare scope."""
        self(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self("}")

    @property
    def text(self) -> str:
        """What has been written so far."""
        return "\n".join(self._lines) + "\n"
