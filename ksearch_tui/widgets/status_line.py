"""The bottom line: best so far, budget, elapsed time, and what runs right now with a spinner."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.widgets import Static

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.progress_so_far import best_so_far, spark
from ksearch_tui.wording import duration

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 8
# The header says the budget too, so a narrow line can do without.
_WIDE = 100
_QUIET = "$foreground 60%"


class StatusLine(Static):
    """One line under the panes; ``elapsed`` gives the seconds to show."""

    def __init__(self, elapsed: Callable[[], float], id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._elapsed = elapsed
        self._look: Look | None = None
        self._doing = ""
        self._hint = ""
        self._since = 0.0
        self._line = Content("")

    def on_mount(self) -> None:
        """Keep the clock and the spinner going."""
        self.set_interval(1 / _FRAMES_PER_SECOND, self._draw)

    def show(self, look: Look) -> None:
        """Show the run of ``look``."""
        self._look = look
        self._draw()

    def set_doing(self, text: str) -> None:
        """Say what is waited for ("" for nothing)."""
        begins_or_ends = bool(text) != bool(self._doing)
        if text and begins_or_ends:
            self._since = self._elapsed()
        self._doing = text
        # Stages follow each other faster than anyone reads: the next turn of the spinner shows the latest.
        if begins_or_ends:
            self._draw()

    def set_hint(self, text: str) -> None:
        """Say what a person can do while nothing is waited for ("" for nothing)."""
        if text != self._hint:
            self._hint = text
            self._draw()

    def _draw(self) -> None:
        line = self._content()
        if not line.is_same(self._line):
            self._line = line
            self.update(line, layout=False)

    def _content(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        if self._look is not None:
            look, tree = self._look, self._look.tree
            if curve := spark(best_so_far(look.found), 32 if self.size.width >= _WIDE else 12):
                parts += [("best so far ", _QUIET), (curve, "$text-success"), "  "]
            if self.size.width >= _WIDE:
                parts += [("budget ", _QUIET), f"{tree.evaluations}/{look.config.budget}", (" evaluations · ", _QUIET)]
            parts.append((duration(self._elapsed()), _QUIET))
        if self._doing:
            waited = self._elapsed() - self._since
            frame = _SPINNER[int(waited * _FRAMES_PER_SECOND) % len(_SPINNER)]
            parts += ["  ", (f"{frame} ", "$text-warning"), one_line(self._doing)]
            parts.append((f" {int(waited)} s" if waited >= 1 else "", _QUIET))
        elif self._look is not None and self._look.tree.stopped:
            parts += ["  ", (f"stopped: {one_line(self._look.tree.stopped)}", "$text-warning")]
        elif self._hint:
            parts += ["  ", (self._hint, "$text-accent")]
        return Content.assemble(*parts)
