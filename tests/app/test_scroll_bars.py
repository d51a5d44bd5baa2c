"""A scroll bar stands where the view does, also when the view was scrolled before the bar was there."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.content import Content

from ksearch_tui.widgets.line_view import Line, LineView


class OneView(App[None]):
    def compose(self) -> ComposeResult:
        yield LineView()


@pytest.mark.parametrize("cursor_line", [0, 30, 99])
async def test_a_bar_stands_where_the_view_does(cursor_line):
    async with OneView().run_test(size=(40, 10)) as pilot:
        view = pilot.app.screen.query_one(LineView)
        view.set_lines([Line(Content(f"line {number}")) for number in range(100)])
        assert not view.show_vertical_scrollbar
        view.scroll_to(y=cursor_line, animate=False, force=True, immediate=True)
        await pilot.pause()
        assert view.show_vertical_scrollbar
        assert view.vertical_scrollbar.position == view.scroll_y == min(cursor_line, 90)
