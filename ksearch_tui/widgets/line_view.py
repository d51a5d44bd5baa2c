"""A scrolling view of many lines that renders only those on the screen: kernels, diffs, CUDA sources, the activity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style

from ksearch_tui.keys import bindings


@dataclass(frozen=True)
class Line:
    """One line: a gutter that stays put (every gutter of a view has the same width), its text, and a ground to lie on.

    ``ground`` is a style such as ``on $error 20%`` that spans the whole width.
    """

    text: Content
    gutter: Content = field(default_factory=Content.empty)
    ground: str = ""


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines; with ``cursor`` a line can be chosen by key or click."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "lines")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-view--cursor", "line-view--linked"}
    ALLOW_SELECT = True
    WRAPS: ClassVar[bool] = False

    cursor_line: reactive[int] = reactive(0)

    class CursorMoved(Message):
        """The cursor went to another line."""

        def __init__(self, view: LineView, line: int) -> None:
            super().__init__()
            self.view, self.line = view, line

        @property
        def control(self) -> LineView:
            """The view whose cursor moved."""
            return self.view

    def __init__(self, *, cursor: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._has_cursor = cursor
        self._width = 0
        self._linked: frozenset[int] = frozenset()
        self._strips: LRUCache[tuple[int, int, bool, bool], Strip] = LRUCache(2048)
        self._styles: dict[str, Style] = {}

    @property
    def lines(self) -> Sequence[Line]:
        """The lines that are shown."""
        return self._lines

    def set_lines(self, lines: Sequence[Line], *, follow: bool = False) -> None:
        """Show ``lines``; ``follow`` keeps to the end when the end was in view."""
        at_end = self.is_vertical_scroll_end
        changed = max(len(self._lines), len(lines))
        self._lines = lines
        self._strips.clear()
        self._width = 0 if self.WRAPS else max((len(line.gutter) + line.text.cell_length for line in lines), default=0)
        self._fit()
        if follow and at_end:
            self.scroll_end(animate=False, x_axis=False)
        if self._has_cursor:
            self.cursor_line = min(self.cursor_line, max(0, len(lines) - 1))
        # Only as far down as there is or was text: painting empty lines costs as much as painting full ones.
        self.refresh(Region(0, 0, self.size.width, min(self.size.height, max(0, changed - self.scroll_offset.y))))

    def set_linked(self, lines: frozenset[int]) -> None:
        """Mark the lines that go with where a person is in another view."""
        if lines != self._linked:
            self._linked = lines
            self.refresh()

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Tell the bar where the view stands: Textual does so only while the bar is shown."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_show_horizontal_scrollbar(self, shown: bool) -> None:
        """Tell the bar where the view stands, as above."""
        if shown:
            self.horizontal_scrollbar.position = self.scroll_x

    def _fit(self) -> None:
        """Set the size to scroll over: none where all fits, since each change of it lays the screen out anew."""
        view = self.scrollable_content_region
        width, height = self._width, len(self._lines)
        self.virtual_size = Size(width if width > view.width else 0, height if height > view.height else 0)

    # -- rendering ---------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        number, width = scroll_y + y, self.size.width
        if number >= len(self._lines):
            return Strip.blank(width, self.visual_style.rich_style)
        at_cursor = self._has_cursor and number == self.cursor_line
        linked = number in self._linked
        key = (number, scroll_x, at_cursor, linked)
        selected = self.text_selection is not None
        if not selected and (cached := self._strips.get(key)) is not None:
            return cached
        strip = self._strip_of(number, scroll_x, width, at_cursor, linked)
        if not selected:
            self._strips[key] = strip
        return strip

    def _strip_of(self, number: int, scroll_x: int, width: int, at_cursor: bool, linked: bool) -> Strip:
        line = self._lines[number]
        base = self.visual_style
        if line.ground:
            base += self._parse(line.ground)
        if linked:
            base += Style.from_styles(self.get_component_styles("line-view--linked"))
        if at_cursor:
            base += Style.from_styles(self.get_component_styles("line-view--cursor"))
        text = line.text
        if (selection := self.text_selection) is not None and (span := selection.get_span(number)) is not None:
            start, end = span
            chosen = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            text = text.stylize(chosen, start, len(text) if end == -1 else end)
        gutter = Strip([Segment(part, style.rich_style) for part, style in self._parts(line.gutter, base)])
        segments, x = [], 0
        for part, style in self._parts(text, base):
            segments.append(Segment(part, style.rich_style_with_offset(x, number)))
            x += len(part)
        room = max(0, width - gutter.cell_length)
        body = Strip(segments).crop_extend(scroll_x, scroll_x + room, base.rich_style)
        return Strip.join([gutter, body]).crop(0, width)

    def _parts(self, content: Content, base: Style) -> list[tuple[str, Style]]:
        return list(content.render(base, end="", parse_style=self._parse))

    def _parse(self, style: Style | str) -> Style:
        """Return a style by its text, with the theme's colours."""
        if isinstance(style, Style):
            return style
        if style not in self._styles:
            self._styles[style] = Style.parse(style, self.app.theme_variables)
        return self._styles[style]

    def notify_style_update(self) -> None:
        """Forget what was rendered with other colours."""
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def on_resize(self) -> None:
        """Forget strips of another width."""
        self._strips.clear()
        self._fit()
        if self._has_cursor:
            self._scroll_to_cursor()

    # -- selecting text ----------------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, gutters left out."""
        return selection.extract("\n".join(line.text.plain for line in self._lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Repaint with the selection."""
        self._strips.clear()
        self.refresh()

    # -- moving ------------------------------------------------------------------------------------------------------

    def watch_cursor_line(self, old: int, new: int) -> None:
        """Bring the cursor's line into view and say so."""
        if not self._has_cursor:
            return
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.CursorMoved(self, new))

    def _scroll_to_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor_line, 1, 1), animate=False, force=True, x_axis=False)

    def validate_cursor_line(self, line: int) -> int:
        """Keep the cursor on a line."""
        return max(0, min(line, len(self._lines) - 1))

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked line."""
        if self._has_cursor:
            self.cursor_line = int(event.y + self.scroll_offset.y)

    def follow(self, line: int, row: int) -> None:
        """Put the cursor on ``line`` and that line on ``row`` of the view, as far as it scrolls, and tell nobody."""
        row = max(0, min(row, self.scrollable_content_region.height - 1))
        self.scroll_to(y=line - row, animate=False, force=True, immediate=True)
        with self.prevent(self.CursorMoved):
            self.cursor_line = line

    def _move(self, lines: int) -> None:
        if self._has_cursor:
            self.cursor_line += lines
        else:
            self.scroll_relative(y=lines, animate=False)

    def action_cursor_up(self) -> None:
        self._move(-1)

    def action_cursor_down(self) -> None:
        self._move(1)

    def action_page_up(self) -> None:
        self._move(1 - self.size.height)

    def action_page_down(self) -> None:
        self._move(self.size.height - 1)

    def action_scroll_home(self) -> None:
        if self._has_cursor:
            self.cursor_line = 0
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        if self._has_cursor:
            self.cursor_line = len(self._lines) - 1
        self.scroll_end(animate=False)

    def action_scroll_left(self) -> None:
        self.scroll_relative(x=-8, animate=False)

    def action_scroll_right(self) -> None:
        self.scroll_relative(x=8, animate=False)
