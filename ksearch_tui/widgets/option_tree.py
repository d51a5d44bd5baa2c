"""The option tree on the screen: sign and word of the status, title, rating, confidence, speedup, in fixed columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Tree as TreeWidget
from textual.widgets.tree import TreeNode

from ksearch_tui.inert import one_line
from ksearch_tui.keys import bindings
from ksearch_tui.widgets.look import Look
from ksearch_tui.wording import STATUS_SIGNS, STATUS_STYLES, confidence_bar, times
from search.tree import PASSED, PRUNED, Option, Tree

_GUIDE = 2
_WIDE = 64
_SHORTEST_TITLE = 8


@dataclass(frozen=True)
class Row:
    """What one line of the tree shows. ``mark`` is ★ for the best, ^ for a pinned option, » for the policy's choice."""

    option: str
    depth: int
    title: str
    status: str
    rating: float
    confidence: float
    speedup: float
    mark: str = ""


class OptionTree(TreeWidget[Row], inherit_bindings=False):
    """Follows a run: `sync` brings the nodes in line with a tree, changing only what differs."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"option-tree--{status}" for status in STATUS_STYLES} | {
        "option-tree--mark",
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(Text(""), id=id)
        self.show_root = False
        self.guide_depth = _GUIDE
        self.auto_expand = False
        self.root.expand()
        self._node_of: dict[str, TreeNode[Row]] = {}
        self._seen: dict[str, Option] = {}
        self._marks: dict[str, str] = {}
        self._ground = Style()

    @property
    def chosen(self) -> str:
        """The id of the option under the cursor, "" when there is none."""
        node = self.cursor_node
        return node.data.option if node is not None and node.data is not None else ""

    def sync(self, look: Look) -> None:
        """Show the look's tree: add, drop and relabel nodes where it differs from what was shown."""
        tree = look.tree
        gone = [option for option in self._node_of if option not in tree.options]
        if gone:
            self._drop(gone)
        marks = _marks(look)
        changed = {name for name in marks.keys() ^ self._marks.keys() if name in tree.options}
        changed |= {name for name in marks.keys() & self._marks.keys() if marks[name] != self._marks[name]}
        self._marks = marks
        for name, option in tree.options.items():
            seen = self._seen.get(name)
            if seen is option:
                continue
            if seen is None:
                self._add(tree, option)
            elif seen != option:
                changed.add(name)
                if not option.parent and seen.passing is not option.passing:
                    changed |= tree.options.keys()
                if seen.pruned != option.pruned:
                    self._fold_pruned(option)
            self._seen[name] = option
        for name in changed:
            node, row = self._node_of[name], self._row(tree, tree.options[name])
            if node.data != row:
                node.data = row
                node.set_label(Text(row.title))

    def choose(self, option: str) -> None:
        """Put the cursor on ``option``, unfolding what hides it."""
        node = self._node_of.get(option)
        if node is None:
            return
        above = node.parent
        while above is not None:
            if not above.is_expanded:
                above.expand()
            above = above.parent
        # A node that was just added has no line before the next refresh.
        self.call_after_refresh(self._move_to, option)

    def _move_to(self, option: str) -> None:
        if (node := self._node_of.get(option)) is not None:
            self.move_cursor(node)

    def fold(self) -> None:
        """Fold the option under the cursor, or go to its parent when there is nothing to fold."""
        node = self.cursor_node
        if node is None:
            return
        if node.children and node.is_expanded:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def unfold(self) -> None:
        """Unfold the option under the cursor, or go to its first child when it is unfolded."""
        node = self.cursor_node
        if node is None or not node.children:
            return
        if node.is_collapsed:
            node.expand()
        else:
            self.move_cursor(node.children[0])

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _add(self, tree: Tree, option: Option) -> None:
        parent = self._node_of[option.parent] if option.parent else self.root
        row = self._row(tree, option)
        self._node_of[option.id] = parent.add(Text(row.title), row, expand=not option.pruned)

    def _drop(self, gone: list[str]) -> None:
        chosen = self.cursor_node
        for name in gone:
            del self._seen[name]
        for name in gone:
            node = self._node_of.pop(name)
            above = node.parent
            if above is None or above.data is None or above.data.option in self._node_of:
                if chosen is node and above is not None and above.data is not None:
                    self.choose(above.data.option)
                node.remove()

    def _fold_pruned(self, option: Option) -> None:
        node = self._node_of[option.id]
        if option.pruned:
            node.collapse()
        else:
            node.expand()

    def _row(self, tree: Tree, option: Option) -> Row:
        depth = self._node_of[option.parent].data.depth + 1 if option.parent else 0  # type: ignore[union-attr]
        speedup = tree.speedup(option.id)
        mark = self._marks.get(option.id, "")
        title = one_line(option.title)
        return Row(option.id, depth, title, option.status, option.rating, option.confidence, speedup, mark)

    # -- rendering ---------------------------------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Work out the ground once for all lines: it is a third of what painting a line costs."""
        self._ground = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line, as the widget that this builds on would."""
        scroll_x, scroll_y = self.scroll_offset
        return self._render_line(y + scroll_y, scroll_x, scroll_x + self.size.width, self._ground)

    def get_label_width(self, node: TreeNode[Row]) -> int:
        """Every line fills what the view has, so nothing scrolls sideways; asked for every line of a changed tree."""
        return 1

    def render_label(self, node: TreeNode[Row], base_style: Style, style: Style) -> Text:
        """Return the columns of one option, the title cut to what is left of the width."""
        row = node.data
        if row is None:
            return Text("")
        width = self.scrollable_content_region.width
        status = self.get_component_rich_style(f"option-tree--{row.status}", partial=True)
        fold = ("▾ " if node.is_expanded else "▸ ") if node.children else "  "
        columns = self._columns(row, width)
        room = max(_SHORTEST_TITLE, width - row.depth * _GUIDE - 4 - sum(cell_len(text) for text, _ in columns))
        title = row.title if cell_len(row.title) <= room else set_cell_size(row.title, room - 1) + "…"
        label = Text(no_wrap=True, style=style)
        label.append(fold, Style(meta={"toggle": True}) if node.children else None)
        label.append(f"{STATUS_SIGNS[row.status]} ", status)
        label.append(set_cell_size(title, room), status if row.status == PRUNED else None)
        for text, kind in columns:
            if kind == "mark":
                label.append(text, self.get_component_rich_style("option-tree--mark", partial=True))
            else:
                label.append(text, status if kind == "status" or row.status == PRUNED else None)
        return label

    @staticmethod
    def _columns(row: Row, width: int) -> list[tuple[str, str]]:
        """Return the columns right of the title as (text, kind), fewer where it is narrow."""
        rated = (f"{row.rating:>4.1f} {confidence_bar(row.confidence)}", "figure")
        mark = (f" {row.mark:<2}", "mark")
        speedup = f"{times(row.speedup):>8}" if row.speedup else " " * 8
        if width >= _WIDE:
            return [mark, rated, (f"  {row.status:<8}", "status"), (speedup, "figure")]
        result = (speedup, "figure") if row.status == PASSED and row.speedup else (f" {row.status:>8}", "status")
        short = (f"{row.rating:>4.1f}", "figure")
        return [mark, short if width < 40 else rated, result]


def _marks(look: Look) -> dict[str, str]:
    marks = {name: "^" for name, option in look.tree.options.items() if option.pinned}
    for sign, name in (("»", look.policy_next), ("★", look.best.id if look.best and look.best.parent else "")):
        if name:
            marks[name] = marks.get(name, "") + sign
    return marks
