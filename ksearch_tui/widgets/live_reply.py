"""The reply that a model is giving right now, under the log of the Activity tab: who is asked what, and the text."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ksearch_tui.inert import one_line
from ksearch_tui.reading import as_it_comes, as_it_is
from ksearch_tui.replies_under_way import GrowingReply, RepliesUnderWay
from ksearch_tui.widgets.folded import Folded
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.wording import asked_to, count, plural
from search.tree import Tree

_MOST_ROWS = 4_000
_LEAST_WIDTH = 20
_THOUGHTS_SHOWN = 3
_QUIET = "$foreground 60%"
_THOUGHT = "italic $foreground 50%"


class LiveReply(Vertical):
    """Is there only while a question waits for its reply; of several, the latest is shown."""

    def compose(self) -> ComposeResult:
        yield Static("", id="live-head", markup=False)
        yield LiveText(id="live-text")

    def on_mount(self) -> None:
        """Begin out of sight."""
        self.display = False

    def show(self, under_way: RepliesUnderWay, tree: Tree, now: float) -> None:
        """Show what has been heard up to ``now``."""
        reply = under_way.latest
        self.display = reply is not None
        if reply is not None:
            self.query_one("#live-head", Static).update(_head(reply, under_way, tree, now), layout=False)
            self.query_one(LiveText).grow(reply)


def _head(reply: GrowingReply, under_way: RepliesUnderWay, tree: Tree, now: float) -> Content:
    asked = reply.question
    title = one_line(tree[asked.option].title) if asked.option in tree.options else ""
    others = len(under_way.replies) - 1
    if reply.waiting:
        state, style = one_line(reply.waiting), "$text-warning"
    elif reply.pieces:
        state, style = f"~{count(reply.tokens)} tokens, {int(now - reply.since)} s", "$text-success"
    else:
        state, style = f"waiting for its first words, {int(now - reply.since)} s", "$text-accent"
    return Content.assemble(
        (f"{asked.role} ", "bold"),
        one_line(asked.model),
        (f" · {asked_to(asked.call, title)}", _QUIET),
        (f" · and {plural(others, 'other question')}" if others else "", _QUIET),
        "\n",
        (state, style),
        (" · Esc breaks it off", _QUIET),
    )


class LiveText(LineView):
    """The end of a text that grows; scrolling back holds it still.

    It turns its pages itself, since scrolling would lay the screen out anew with every line that comes.
    """

    WRAPS = True

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._reply: GrowingReply | None = None
        self._attempt = self._taken = self._back = 0
        self._runs: list[_Run] = []
        self._folded_to = 0

    def grow(self, reply: GrowingReply) -> None:
        """Show ``reply`` as far as it has come; only what is new is folded."""
        width = max(_LEAST_WIDTH, self.scrollable_content_region.width)
        if (reply, reply.attempt, width) != (self._reply, self._attempt, self._folded_to):
            self._reply, self._attempt, self._folded_to = reply, reply.attempt, width
            self._runs, self._taken, self._back = [], 0, 0
        elif self._taken == len(reply.pieces):
            return
        before = self._rows()
        for text, thought in reply.pieces[self._taken :]:
            if not self._runs or self._runs[-1].thought is not thought:
                self._runs.append(_Run(thought, width))
            self._runs[-1].add(text)
        self._taken = len(reply.pieces)
        if self._back:
            self._back += self._rows() - before
        self._turn(0)

    def on_resize(self) -> None:
        """Fold to another width."""
        super().on_resize()
        if self._reply is not None:
            self.grow(self._reply)
            self._turn(0)

    def _rows(self) -> int:
        return sum(len(lines) for lines in self._runs_as_lines())

    def _runs_as_lines(self) -> list[Sequence[Line]]:
        return [run.lines(last=run is self._runs[-1]) for run in self._runs]

    def _turn(self, rows: int) -> None:
        """Go so many rows towards the end, and show the page that is there."""
        lines = [line for part in self._runs_as_lines() for line in part]
        room = self.scrollable_content_region.height
        self._back = max(0, min(self._back - rows, len(lines) - room))
        end = len(lines) - self._back
        self.set_lines(lines[max(0, end - room) : end])

    def _move(self, lines: int) -> None:
        self._turn(lines)

    def action_scroll_home(self) -> None:
        self._turn(-_MOST_ROWS)

    def action_scroll_end(self) -> None:
        self._turn(_MOST_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go on with the wheel."""
        event.stop()
        self._turn(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go back with the wheel."""
        event.stop()
        self._turn(-1)


class _Run:
    """What came without a change between thinking and answering, as lines; thoughts that are over are one line."""

    def __init__(self, thought: bool, width: int) -> None:
        self.thought = thought
        self._folded = Folded(width, as_it_is if thought else as_it_comes)
        self._lines: list[Line] = []
        self._characters = 0

    def add(self, text: str) -> None:
        first = self._folded.add(text)
        style = _THOUGHT if self.thought else ""
        self._lines[first:] = [Line(Content.assemble((row, style))) for row in self._folded.rows[first:]]
        self._characters += len(text)

    def lines(self, *, last: bool) -> Sequence[Line]:
        if not self.thought:
            return self._lines[-_MOST_ROWS:]
        summary = Line(Content.assemble((f"▸ thinking: {plural(self._characters, 'character')}", _QUIET)))
        return [summary, *self._lines[-_THOUGHTS_SHOWN:]] if last else [summary]
