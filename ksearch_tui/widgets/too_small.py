"""One clear sentence in place of a screen that the terminal has no room for."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

LEAST_WIDTH, LEAST_HEIGHT = 60, 16


class TooSmall(Static):
    """Shown by the styles when the terminal is smaller than the least size."""

    def render(self) -> Content:
        """Return the sentence with both sizes."""
        width, height = self.app.size
        return Content(
            f"This terminal is {width}×{height}; ksearch-tui needs {LEAST_WIDTH}×{LEAST_HEIGHT}. "
            "Make the window larger, or the font smaller. (q quits; the session is safe)"
        )
