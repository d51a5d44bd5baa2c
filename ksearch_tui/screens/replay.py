"""The replay: a recorded run played again, with the explorer's widgets, to look at only."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer

from ksearch_tui.keys import bindings
from ksearch_tui.screens.run_screen import RunScreen
from ksearch_tui.start_at import AtReplay
from ksearch_tui.widgets.position_bar import PositionBar
from ksearch_tui.widgets.status_line import StatusLine
from search.problems.definition import ProblemError, load_problem
from sessions.replay import Replay

_SLOWEST, _FASTEST = 1 / 16, 1024.0
_TICK_SECONDS = 0.1
# Events closer together than this are shown at once: nobody sees them apart.
_BLINK_SECONDS = 0.02


class ReplayScreen(RunScreen):
    """Plays, steps and seeks through the events of a run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("replay", "browse")

    def __init__(self, start: AtReplay) -> None:
        replay = Replay(start.events)
        super().__init__(start.config, replay.tree, self._seconds_at_the_position)
        self._title = start.title
        self._replay = replay
        self._speed = start.speed
        self._playing = not start.paused
        self._timer: Timer | None = None
        self._changed = True

    def compose_bottom(self) -> ComposeResult:
        """Compose the position above the status line."""
        yield PositionBar(id="position")
        yield StatusLine(self.elapsed, self.seconds_left, id="status")

    def on_mount(self) -> None:
        """Show the first event and start to play."""
        super().on_mount()
        self._replay.step()
        self.set_interval(_TICK_SECONDS, self._tick)
        self._load_problem()
        self._wait_for_next()

    @work(thread=True, exit_on_error=False)
    def _load_problem(self) -> None:
        try:
            problem = load_problem(self.config.problem)
        except ProblemError as error:
            said = f"{error}\nThe run plays all the same; the Mapping tab stays empty."
            self.app.call_from_thread(self.notify, said, title="No problem", severity="warning", markup=False)
            return
        self.problem = problem
        self._changed = True

    def _seconds_at_the_position(self) -> float:
        events, position = self._replay.events, self._replay.position
        if not position:
            return 0.0
        first, now = (datetime.fromisoformat(events[place].at) for place in (0, position - 1))
        return (now - first).total_seconds()

    def now(self) -> datetime:
        """Return the moment of the event that is shown."""
        position = max(1, self._replay.position)
        return datetime.fromisoformat(self._replay.events[position - 1].at)

    # -- playing -----------------------------------------------------------------------------------------------------

    def _wait_for_next(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._playing and self._replay.position < len(self._replay.events):
            self._timer = self.set_timer(self._replay.delay(self._speed), self._advance)

    def _advance(self) -> None:
        self._replay.step()
        while self._replay.position < len(self._replay.events) and self._replay.delay(self._speed) < _BLINK_SECONDS:
            self._replay.step()
        self._changed = True
        if self._replay.position == len(self._replay.events):
            self._playing = False
        self._wait_for_next()

    def _tick(self) -> None:
        if self._changed:
            self._changed = False
            self._show()

    def _show(self) -> None:
        self.run_state = self._replay.tree
        self.refresh_run()
        position, events = self._replay.position, self._replay.events
        at = events[position - 1].at if position else ""
        self.query_one(PositionBar).show(self._title, position, len(events), at, self._playing, self._speed)

    def _go(self, position: int) -> None:
        self._replay.seek(position)
        self._show()
        self._wait_for_next()

    def on_position_bar_sought(self, event: PositionBar.Sought) -> None:
        """Go where the bar was clicked."""
        self._go(event.position)

    def action_play(self) -> None:
        """Play, or stop; at the end play from the start again."""
        if not self._playing and self._replay.position == len(self._replay.events):
            self._replay.seek(1)
        self._playing = not self._playing
        self._show()
        self._wait_for_next()

    def action_step(self) -> None:
        """Stop, and go one event on."""
        self._playing = False
        self._go(self._replay.position + 1)

    def action_step_back(self) -> None:
        """Stop, and go one event back."""
        self._playing = False
        self._go(self._replay.position - 1)

    def action_to_start(self) -> None:
        """Go to the first event."""
        self._go(1)

    def action_to_end(self) -> None:
        """Go to the last event."""
        self._playing = False
        self._go(len(self._replay.events))

    def action_faster(self) -> None:
        """Play twice as fast."""
        self._set_speed(self._speed * 2)

    def action_slower(self) -> None:
        """Play half as fast."""
        self._set_speed(self._speed / 2)

    def _set_speed(self, speed: float) -> None:
        self._speed = min(_FASTEST, max(_SLOWEST, speed))
        self._show()
        self._wait_for_next()
