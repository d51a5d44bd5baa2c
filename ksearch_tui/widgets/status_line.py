"""The bottom line: best so far, what is spent of each budget, elapsed time, and what runs right now with a spinner."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.widgets import Static

from ksearch_tui.inert import one_line
from ksearch_tui.replies_under_way import RepliesUnderWay
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.progress_so_far import best_so_far, spark
from ksearch_tui.wording import count, dollars, duration

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 8
# The header says the budget too, so a narrow line can do without.
_WIDE = 100
_QUIET = "$foreground 60%"
_SHORT_SECONDS = 120


class StatusLine(Static):
    """One line under the panes.

    ``elapsed`` gives the seconds to show, ``left`` those that the run may still go on (None: no limit).
    """

    def __init__(self, elapsed: Callable[[], float], left: Callable[[], float | None], id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._elapsed, self._left = elapsed, left
        self._under_way = RepliesUnderWay()
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

    def follow(self, under_way: RepliesUnderWay) -> None:
        """Count what replies that are coming in use, from now on."""
        self._under_way = under_way

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
        doing = self._doing_now()
        parts = self._spent()
        # What happens now matters more than what was: half of the line is its, if it needs that much.
        room = self.size.width - min(Content.assemble(*doing).cell_length, self.size.width // 2)
        while len(parts) > 1 and sum(part.content.cell_length for part in parts) > room:
            parts.remove(min(parts, key=lambda part: part.matters))
        return Content.assemble(*(part.content for part in parts), *doing)

    def _spent(self) -> list[_Part]:
        """Return the best so far and what is spent, each with how much it matters."""
        if self._look is None:
            return []
        look, tree, wide = self._look, self._look.tree, self.size.width >= _WIDE
        parts = []
        if curve := spark(best_so_far(look.found), 32 if wide else 12):
            parts += [_Part(2, ("best so far ", _QUIET)), _Part(3, (curve, "$text-success"), "  ")]
        if wide:
            budget = f"{tree.evaluations}/{look.config.budget}"
            parts.append(_Part(1, ("budget ", _QUIET), budget, (" evaluations · ", _QUIET)))
        parts += self._models_spent(look)
        parts.append(_Part(4, (duration(self._elapsed()), _QUIET)))
        if (left := self._left()) is not None:
            style = "$text-warning" if left < _SHORT_SECONDS else _QUIET
            parts.append(_Part(8, (f" {int(left // 60)}m{int(left % 60):02} left", style)))
        return parts

    def _models_spent(self, look: Look) -> list[_Part]:
        """Return tokens and money, with what a reply that is still coming in has used so far."""
        used, config, under_way = look.tree.account, look.config, self._under_way
        tokens, usd = used.tokens + under_way.tokens, used.usd + under_way.usd
        if not tokens:
            return []
        about = "~" if under_way.replies or used.estimated else ""
        most_tokens = f"/{count(config.tokens)}" if config.tokens else ""
        most_usd = f"/{dollars(config.usd)}" if config.usd else ""
        unpriced = "+?" if used.unpriced else ""
        parts = [_Part(6, f"{about}{count(tokens)}{most_tokens}", (" tokens · ", _QUIET))]
        if usd or config.usd or unpriced:
            parts.append(_Part(7, f"{about}{dollars(usd)}{unpriced}{most_usd}", (" · ", _QUIET)))
        return parts

    def _doing_now(self) -> list[str | tuple[str, str]]:
        if self._doing:
            waited = self._elapsed() - self._since
            frame = _SPINNER[int(waited * _FRAMES_PER_SECOND) % len(_SPINNER)]
            seconds = f" {int(waited)} s" if waited >= 1 else ""
            return ["  ", (f"{frame} ", "$text-warning"), one_line(self._doing), (seconds, _QUIET)]
        if self._look is not None and self._look.tree.stopped:
            return ["  ", (f"stopped: {one_line(self._look.tree.stopped)}", "$text-warning")]
        return ["  ", (self._hint, "$text-accent")] if self._hint else []


class _Part:
    """A part of the line, and how much it matters: what matters least goes first where there is no room."""

    def __init__(self, matters: int, *content: str | tuple[str, str]) -> None:
        self.matters, self.content = matters, Content.assemble(*content)
