"""The Activity tab: what happened, one line each, the latest at the bottom."""

from __future__ import annotations

from textual.content import Content

from ksearch_tui.narration import clock_time, narrate
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.widgets.look import Look
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


class ActivityTab(LineView):
    """The events of a run, told; long lines go on under themselves."""

    WRAPS = True

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._told: list[Line] = []
        self._seen = 0

    def show(self, look: Look) -> None:
        """Tell the events that are new since the last look."""
        if look.seen < self._seen:
            self._told, self._seen = [], 0
            self.set_lines([])
        if look.seen == self._seen:
            return
        start = max(self._seen, look.seen - _MOST_LINES)
        told = (_line(event, look.tree) for event in look.tree.events[start : look.seen])
        new = [line for line in told if line is not None]
        self._told = [*self._told, *new][-_MOST_LINES:]
        self._seen = look.seen
        if not self.size:
            # Not laid out yet: the first resize folds what was told.
            return
        self.set_lines([*self.lines, *self._folded(new)][-_MOST_LINES:], follow=True)

    def on_resize(self) -> None:
        """Fold the lines to another width."""
        super().on_resize()
        self.set_lines(self._folded(self._told)[-_MOST_LINES:], follow=True)

    def _folded(self, told: list[Line]) -> list[Line]:
        width = max(_LEAST_WIDTH, self.scrollable_content_region.width - _CLOCK_WIDTH)
        folded: list[Line] = []
        for line in told:
            first, *rest = line.text.wrap(width)
            folded.append(Line(first, line.gutter))
            folded += [Line(part, _NO_CLOCK) for part in rest]
        return folded


def _line(event: Event, tree: Tree) -> Line | None:
    text = narrate(event, tree)
    if not text:
        return None
    style = _STYLES.get(event.kind, "")
    if event.kind == "evaluated" and event["outcome"] != "passed":
        style = "$text-error"
    elif event.kind == "note" and event["level"] != "info":
        style = "$text-warning" if event["level"] == "warning" else "$text-error"
    elif event.data.get("by") == PERSON:
        style = "$text-accent"
    return Line(Content.assemble((text, style)), Content.assemble((f"{clock_time(event)}  ", "$foreground 50%")))
