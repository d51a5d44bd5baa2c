"""Some lines of text under something else: it turns its pages itself, since scrolling would lay the screen out anew."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content

from ksearch_tui.widgets.line_view import Line
from ksearch_tui.widgets.page import Page, Paragraph


class DetailView(Page, can_focus=False):
    """Shows as much of its paragraphs as there is room for, from a line on, and says when there is more."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._all: Sequence[Line] = ()
        self._top = 0

    def tell(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show other paragraphs from their beginning."""
        self._top = 0
        self.write(paragraphs)

    def set_lines(self, lines: Sequence[Line], *, follow: bool = False) -> None:
        """Show ``lines`` from where a person has read to."""
        self._all = lines
        self.read_on(0)

    def read_on(self, lines: int) -> None:
        """Go ``lines`` down, or up."""
        room = self.scrollable_content_region.height
        self._top = max(0, min(self._top + lines, len(self._all) - room))
        shown = list(self._all[self._top : self._top + room])
        if self._top + room < len(self._all) and shown:
            shown[-1] = Line(Content.assemble(("… } reads on", "$foreground 60%")))
        super().set_lines(shown)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Read on with the wheel."""
        event.stop()
        self.read_on(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Read back with the wheel."""
        event.stop()
        self.read_on(-1)
