"""Where a replay is: what plays, the event, its time, the speed, and a bar to click."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ksearch_tui.inert import one_line

_QUIET = "$foreground 60%"
_LEAST_BAR = 10


class PositionBar(Static):
    """One line; a click on the bar asks to go there."""

    class Sought(Message):
        """A person clicked on a place of the bar."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    def __init__(self, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._state = ("", 0, 0, "", False, 1.0)
        self._bar = (0, 0)

    def show(self, title: str, position: int, count: int, at: str, playing: bool, speed: float) -> None:
        """Show that event ``position`` of ``count`` is reached, which happened at ``at`` (ISO 8601)."""
        self._state = (title, position, count, at, playing, speed)
        self._draw()

    def on_resize(self) -> None:
        """Draw the bar for another width."""
        self._draw()

    def _draw(self) -> None:
        title, position, count, at, playing, speed = self._state
        sign = "▶" if playing else "‖"
        head = f"{sign} {one_line(title)}"[: max(12, self.size.width // 3)]
        tail = f" {position}/{count} · {at[:10]} {at[11:19]} · {speed:g}×"
        if self.size.width < 80:
            tail = f" {position}/{count} · {speed:g}×"
        width = max(_LEAST_BAR, self.size.width - len(head) - len(tail) - 1)
        filled = round(width * position / count) if count else 0
        self._bar = (len(head) + 1, width)
        self.update(
            Content.assemble(
                (f"{head} ", "bold $text-accent"),
                ("━" * filled, "$text-accent"),
                ("─" * (width - filled), "$foreground 30%"),
                (tail, _QUIET),
            )
        )

    def on_click(self, event: events.Click) -> None:
        """Ask to go to the clicked place of the bar."""
        start, width = self._bar
        offset = event.get_content_offset(self)
        if offset is not None and start <= offset.x < start + width:
            count = self._state[2]
            self.post_message(self.Sought(max(1, round(count * (offset.x - start + 1) / width))))
