"""The Mapping tab: the problem's CUDA reference, its primitives coloured by how they become Metal, with their traps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from ksearch_tui.inert import one_line
from ksearch_tui.keys import bindings
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.widgets.look import Look
from search.problems.definition import Problem

if TYPE_CHECKING:
    from translator.inventory import Inventory, Occurrence

_STYLES = {
    "direct": "$text-success",
    "idiom": "$text-accent",
    "rewrite": "$text-warning",
    "drop": "$foreground 50%",
    "unsupported": "$text-error",
}
_SIGNS = {"direct": "=", "idiom": "≈", "rewrite": "!", "drop": "–", "unsupported": "✗"}
_QUIET = "$foreground 60%"


@dataclass(frozen=True)
class MappedFile:
    """A CUDA file, what it uses, and its coloured lines."""

    path: Path
    inventory: Inventory
    lines: tuple[Line, ...]


class MappingTab(Vertical):
    """The CUDA references of the problem; a cursor tells what the line under it becomes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("mapping")

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._problem: Problem | None = None
        self._files: list[MappedFile] = []
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="mapping-head", markup=False)
        yield LineView(cursor=True, id="mapping-source")
        yield Static("", id="mapping-detail", markup=False)

    def show(self, look: Look) -> None:
        """Show the references of the look's problem; they are read once."""
        if look.problem is None or look.problem is self._problem:
            return
        self._problem = look.problem
        if not look.problem.cuda:
            self._say("This problem has no CUDA reference.")
            return
        self._say(f"Reading {', '.join(path.name for path in look.problem.cuda)}…")
        self._read(look.problem)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _read(self, problem: Problem) -> None:
        worker = get_current_worker()
        files, unreadable = [], []
        for path in problem.cuda:
            try:
                files.append(read_mapped_file(path))
            except (OSError, UnicodeDecodeError) as error:
                unreadable.append(f"{path}: {error}")
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show_files, files, unreadable)

    def _show_files(self, files: list[MappedFile], unreadable: list[str]) -> None:
        self._files = files
        for message in unreadable:
            self.notify(message, title="CUDA reference", severity="warning", markup=False)
        if files:
            self._show_file(0)
        else:
            self._say("No CUDA reference could be read.")

    def _show_file(self, number: int) -> None:
        self._at = number % len(self._files)
        view = self.query_one(LineView)
        view.set_lines(self._files[self._at].lines)
        view.cursor_line = 0
        self._head()
        occurrences = self._occurrences()
        if occurrences:
            view.cursor_line = occurrences[0].line - 1
        self._detail(view.cursor_line)

    def _say(self, text: str) -> None:
        self.query_one("#mapping-head", Static).update(Content.assemble((one_line(text), _QUIET)))

    def _occurrences(self) -> tuple[Occurrence, ...]:
        return self._files[self._at].inventory.occurrences if self._files else ()

    def _head(self) -> None:
        file = self._files[self._at]
        counts = Counter(occurrence.primitive.kind for occurrence in file.inventory.occurrences)
        parts: list[str | tuple[str, str]] = [(file.path.name, "bold")]
        if len(self._files) > 1:
            parts.append((f" ({self._at + 1} of {len(self._files)}, f switches)", _QUIET))
        parts.append(f" · {file.inventory.coverage:.0%} mapped")
        for kind, sign in _SIGNS.items():
            if counts[kind]:
                parts += [" · ", (f"{sign} {counts[kind]} {kind}", _STYLES[kind])]
        self.query_one("#mapping-head", Static).update(Content.assemble(*parts))

    def _detail(self, line: int) -> None:
        here = [occurrence for occurrence in self._occurrences() if occurrence.line == line + 1]
        entries = [_entry(occurrence) for occurrence in here]
        if not entries:
            entries = [Content.assemble((f"line {line + 1} needs no mapping; ] and [ go to those that do", _QUIET))]
        self.query_one("#mapping-detail", Static).update(Content("\n").join(entries))

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Tell what the line under the cursor becomes."""
        self._detail(event.line)

    def action_next_file(self) -> None:
        """Show the next file."""
        if self._files:
            self._show_file(self._at + 1)

    def action_next_occurrence(self) -> None:
        """Go to the next line with a primitive, from the last to the first."""
        self._jump(sorted({occurrence.line - 1 for occurrence in self._occurrences()}))

    def action_previous_occurrence(self) -> None:
        """Go to the line with a primitive above, from the first to the last."""
        self._jump(sorted({occurrence.line - 1 for occurrence in self._occurrences()}, reverse=True), up=True)

    def _jump(self, lines: list[int], *, up: bool = False) -> None:
        view = self.query_one(LineView)
        if lines:
            at = view.cursor_line
            view.cursor_line = next((line for line in lines if (line < at if up else line > at)), lines[0])


def _entry(occurrence: Occurrence) -> Content:
    primitive = occurrence.primitive
    style = _STYLES.get(primitive.kind, "")
    parts: list[str | tuple[str, str]] = [
        (f"{_SIGNS.get(primitive.kind, '?')} {primitive.kind} ", style),
        (one_line(primitive.cuda), "bold"),
        " → ",
        (one_line(primitive.metal) or "nothing", f"bold {style}"),
    ]
    if primitive.trap:
        parts += ["\n  ", ("trap: ", "bold $text-warning"), one_line(primitive.trap)]
    return Content.assemble(*parts)


def read_mapped_file(path: Path) -> MappedFile:
    """Return the CUDA file at ``path`` with its inventory and coloured lines; raises OSError or UnicodeDecodeError."""
    # Imported here, in the reading thread: the parser and the lexers are not needed for the first paint.
    from ksearch_tui.widgets.syntax import CUDA, coloured_lines
    from translator.cuda_source import parse_cuda
    from translator.inventory import take_inventory

    text = path.read_text(encoding="utf-8")
    inventory = take_inventory(parse_cuda(text, str(path)))
    by_line: dict[int, list[Occurrence]] = {}
    for occurrence in inventory.occurrences:
        by_line.setdefault(occurrence.line, []).append(occurrence)
    lines = []
    for number, content in enumerate(coloured_lines(text, CUDA), start=1):
        here = by_line.get(number, [])
        signs = "".join(dict.fromkeys(_SIGNS.get(occurrence.primitive.kind, "?") for occurrence in here))[:2]
        style = _STYLES.get(here[0].primitive.kind, "") if here else ""
        for occurrence in here:
            content = _coloured(content, occurrence, text)
        gutter = Content.assemble((f"{number:>4} ", "$foreground 40%"), (f"{signs:<3}", f"bold {style}".strip()))
        lines.append(Line(content, gutter))
    return MappedFile(path, inventory, tuple(lines))


def _coloured(content: Content, occurrence: Occurrence, text: str) -> Content:
    """Return a line with one occurrence underlined in its kind's colour."""
    found = text[occurrence.start : occurrence.end].split("\n")[0]
    start = content.plain.find(found, max(0, occurrence.column - 1)) if found else -1
    if start < 0:
        return content
    style = f"bold underline {_STYLES.get(occurrence.primitive.kind, '')}".strip()
    return content.stylize(style, start, start + len(found))
