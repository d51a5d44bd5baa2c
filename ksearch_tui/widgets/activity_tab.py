"""The Activity tab: how predictions came out, what happened, and the reply that a model is giving right now."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from ksearch_tui.keys import bindings
from ksearch_tui.replies_under_way import RepliesUnderWay
from ksearch_tui.widgets.activity_log import ActivityLog
from ksearch_tui.widgets.live_reply import LiveReply, LiveText
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.record_table import record_table
from search.track_record import TrackRecord, track_records
from search.tree import Tree


class ActivityTab(Vertical):
    """Track records above, the log in the middle, a growing reply below."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("activity")

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._look: Look | None = None
        self._records: list[TrackRecord] = []

    def compose(self) -> ComposeResult:
        yield Static("", id="records", markup=False)
        yield ActivityLog(id="activity-log")
        yield LiveReply(id="live")

    def on_mount(self) -> None:
        """Take no room for records before there is one."""
        self.query_one("#records").display = False

    def show(self, look: Look) -> None:
        """Tell the events that are new since the last look."""
        self._look = look
        records = track_records(look.calibration)
        if records != self._records:
            self._records = records
            self._draw_records()
        self.query_one(ActivityLog).show(look)

    def show_replies(self, under_way: RepliesUnderWay, tree: Tree, now: float) -> None:
        """Show what models are saying up to ``now``."""
        self.query_one(LiveReply).show(under_way, tree, now)

    def on_resize(self) -> None:
        """Fit the records to another width."""
        self._draw_records()

    def _draw_records(self) -> None:
        table = self.query_one("#records", Static)
        table.display = bool(self._records)
        table.update(record_table(self._records, self.size.width - 2))

    def action_open_reply(self) -> None:
        """Open the reply under the log's cursor."""
        self.query_one(ActivityLog).open_reply()

    def action_next_reply(self) -> None:
        """Go to the next reply in the log."""
        self.query_one(ActivityLog).next_reply()

    def action_previous_reply(self) -> None:
        """Go to the reply above in the log."""
        self.query_one(ActivityLog).previous_reply()

    def action_live_down(self) -> None:
        """Go towards the end of the growing reply."""
        self.query_one(LiveText).action_cursor_down()

    def action_live_up(self) -> None:
        """Go back in the growing reply, and hold it still."""
        self.query_one(LiveText).action_cursor_up()
