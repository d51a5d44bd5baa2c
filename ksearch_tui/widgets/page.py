"""A page of text that wraps to its width and scrolls: what a tab is when it tells rather than lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from ksearch_tui.widgets.line_view import Line, LineView

_LABEL = "$text-secondary"
_LEAST_WIDTH = 20


@dataclass(frozen=True)
class Paragraph:
    """A text, after a ``label`` of fixed width if there is one; what is too long for a line goes on under itself."""

    text: Content
    label: str = ""
    label_width: int = 0


class Page(LineView):
    """Shows paragraphs."""

    WRAPS = True

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs: Sequence[Paragraph] = ()

    def write(self, paragraphs: Sequence[Paragraph]) -> None:
        """Replace the text."""
        self._paragraphs = paragraphs
        room = self.scrollable_content_region.width
        if room:  # Before the first layout there is nothing to wrap to, and a wrong guess would be seen for a moment.
            width = max(_LEAST_WIDTH, room)
            self.set_lines([line for paragraph in paragraphs for line in _wrapped(paragraph, width)])

    def on_resize(self) -> None:
        """Wrap to another width."""
        self.write(self._paragraphs)


def _wrapped(paragraph: Paragraph, width: int) -> list[Line]:
    indent = paragraph.label_width
    parts = [part for text in paragraph.text.split("\n", allow_blank=True) for part in text.wrap(width - indent)]
    label = Content.assemble((f"{paragraph.label:<{indent}}", _LABEL))
    margin = Content(" " * indent)
    return [Line(part, margin if number else label) for number, part in enumerate(parts)]
