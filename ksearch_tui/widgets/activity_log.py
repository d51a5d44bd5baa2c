"""The log of a run: what happened, the latest at the bottom; the replies of models among it can be opened."""

from __future__ import annotations

from itertools import pairwise

from textual import events
from textual.content import Content
from textual.message import Message

from ksearch_tui.narration import clock_time, narrate
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.widgets.look import Look
from search.calls import CANCELLED, LOST, MALFORMED, USED
from search.events import PERSON, Event
from search.tree import Tree

_MOST_LINES = 2_000
_LEAST_WIDTH = 20
_CLOCK_WIDTH = 10
_NO_CLOCK = Content(" " * _CLOCK_WIDTH)
_STYLES = {
    "failed": "$text-error",
    "evaluated": "$text-success",
    "asked": "$text-warning",
    "stopped": "bold",
    "paused": "bold",
    "resumed": "bold",
    "autopilot": "bold",
}
_LEVELS = {"info": "", "warning": "$text-warning", "error": "$text-error"}
_OUTCOMES = {
    USED: ("✓", "$text-secondary"),
    MALFORMED: ("✗", "$text-warning"),
    CANCELLED: ("–", "$text-accent"),
    LOST: ("–", "$text-warning"),
}
_FAULT = ("✗", "$text-error")


class ActivityLog(LineView):
    """The events of a run, told; long lines go on under themselves. The cursor keeps to the end while it is there."""

    WRAPS = True

    class Opened(Message):
        """A person wants to read the reply of this event in full."""

        def __init__(self, replied: Event) -> None:
            super().__init__()
            self.replied = replied

    def __init__(self, id: str | None = None) -> None:
        super().__init__(cursor=True, id=id)
        self._told: list[tuple[Event, Line]] = []
        self._sources: list[Event] = []
        self._seen = 0

    def show(self, look: Look) -> None:
        """Tell the events that are new since the last look."""
        if look.seen < self._seen:
            self._told, self._sources, self._seen = [], [], 0
            self.set_lines([])
        if look.seen == self._seen:
            return
        start = max(self._seen, look.seen - _MOST_LINES)
        told = ((event, _line(event, look.tree)) for event in look.tree.events[start : look.seen])
        new = [(event, line) for event, line in told if line is not None]
        self._told = [*self._told, *new][-_MOST_LINES:]
        self._seen = look.seen
        # Not laid out yet: the first resize folds what was told.
        if self.size and new:
            self._add(new)

    def _add(self, told: list[tuple[Event, Line]]) -> None:
        at_end = self.cursor_line >= len(self.lines) - 1
        folded = self._folded(told)
        dropped = max(0, len(self.lines) + len(folded) - _MOST_LINES)
        self._sources = [*self._sources, *(event for event, _ in folded)][-_MOST_LINES:]
        lines = [*self.lines, *(line for _, line in folded)][-_MOST_LINES:]
        self.set_lines(lines, follow=at_end)
        self.cursor_line = len(lines) - 1 if at_end else max(0, self.cursor_line - dropped)

    def on_resize(self) -> None:
        """Fold the lines to another width."""
        at = self._sources[self.cursor_line] if self.cursor_line < len(self._sources) - 1 else None
        super().on_resize()
        self._sources = []
        self.set_lines([])
        self._add(self._told)
        if at is not None and at in self._sources:
            self.cursor_line = self._sources.index(at)

    def _folded(self, told: list[tuple[Event, Line]]) -> list[tuple[Event, Line]]:
        width = max(_LEAST_WIDTH, self.scrollable_content_region.width - _CLOCK_WIDTH)
        folded: list[tuple[Event, Line]] = []
        for event, line in told:
            first, *rest = line.text.wrap(width)
            folded.append((event, Line(first, line.gutter)))
            folded += [(event, Line(part, _NO_CLOCK)) for part in rest]
        return folded

    # -- replies -----------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Choose a line; a second click opens its reply."""
        super().on_click(event)
        if event.chain == 2:
            self.open_reply()

    def open_reply(self) -> None:
        """Open the reply under the cursor."""
        replied = self._sources[self.cursor_line] if self._sources else None
        if replied is None or replied.kind != "replied":
            self.notify("There is no reply on this line: [ and ] go to the nearest ones.", markup=False)
        elif not replied["text_sha256"]:
            self.notify("Nothing of a reply was kept: there was no whole one.", markup=False)
        else:
            self.post_message(self.Opened(replied))

    def next_reply(self) -> None:
        """Put the cursor on the next reply below."""
        self._go_to(next((line for line in self._replies() if line > self.cursor_line), None))

    def previous_reply(self) -> None:
        """Put the cursor on the next reply above."""
        self._go_to(next((line for line in reversed(self._replies()) if line < self.cursor_line), None))

    def _replies(self) -> list[int]:
        """Return the lines where a reply begins."""
        begins = [line for line, (above, here) in enumerate(pairwise([None, *self._sources])) if above is not here]
        return [line for line in begins if self._sources[line].kind == "replied"]

    def _go_to(self, line: int | None) -> None:
        if line is None:
            self.notify("There is no reply in this direction.", markup=False)
        else:
            self.cursor_line = line


def _line(event: Event, tree: Tree) -> Line | None:
    text = narrate(event, tree)
    if not text:
        return None
    style = _STYLES.get(event.kind, "")
    if event.kind == "evaluated" and event["outcome"] != "passed":
        style = "$text-error"
    elif event.kind == "note":
        style = _LEVELS.get(event["level"], "")
    elif event.kind == "replied":
        sign, style = _OUTCOMES.get(event["outcome"], _FAULT)
        text = f"{sign} {text}"
    elif event.data.get("by") == PERSON:
        style = "$text-accent"
    return Line(Content.assemble((text, style)), Content.assemble((f"{clock_time(event)}  ", "$foreground 50%")))
