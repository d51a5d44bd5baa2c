"""A model's reply in full: who was asked what, what it used, what became of it, and the text."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ksearch_tui.inert import inert, one_line
from ksearch_tui.narration import clock_time
from ksearch_tui.reading import laid_out
from ksearch_tui.widgets.folded import fold
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.widgets.too_small import TooSmall
from ksearch_tui.wording import asked_to, dollars, plural
from search.calls import USED
from search.events import Event
from search.tree import Tree

_LABEL = "$text-secondary"
_LABEL_WIDTH = 10
_LEAST_WIDTH = 20


class ReplyScreen(ModalScreen[None]):
    """Closes with Esc, q or Enter. A reply that was of no use is shown exactly as it came."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,o", "dismiss", "close")]

    def __init__(self, replied: Event, tree: Tree) -> None:
        super().__init__()
        self._replied = replied
        self._facts = reply_facts(replied, tree)
        self._text = tree.texts[replied["text_sha256"]]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog-large"):
            yield Static("A reply (Esc closes)", classes="dialog-title", markup=False)
            yield LineView(id="reply-text")
        yield TooSmall()

    def on_mount(self) -> None:
        """Start in the text."""
        self.query_one(LineView).focus()
        self.call_after_refresh(self._lay_out)

    @work(thread=True, exit_on_error=False)
    def _lay_out(self) -> None:
        # A long reply takes a while to fold.
        view = self.query_one(LineView)
        width = max(_LEAST_WIDTH, view.scrollable_content_region.width)
        text = laid_out(self._text) if self._replied["outcome"] == USED else inert(self._text)
        lines = [line for label, fact in self._facts for line in _fact(label, fact, width)]
        lines.append(Line(Content("")))
        lines += [Line(Content(row)) for line in text.split("\n") for row in fold(line, width)]
        self.app.call_from_thread(view.set_lines, lines)


def _fact(label: str, fact: str, width: int) -> list[Line]:
    rows = fold(fact, width - _LABEL_WIDTH)
    labels = [label, *[""] * (len(rows) - 1)]
    return [
        Line(Content(row), Content.assemble((f"{name:<{_LABEL_WIDTH}}", _LABEL)))
        for name, row in zip(labels, rows, strict=True)
    ]


def reply_facts(replied: Event, tree: Tree) -> list[tuple[str, str]]:
    """Return what is on record about a reply, each with its label, inert and on one line."""
    option = tree.options.get(replied["option"])
    served = f", answered as {replied['served_as']}" if replied["served_as"] not in ("", replied["model"]) else ""
    about = "" if replied["counted"] else "about "
    cost = f"{about}{dollars(replied['cost_usd'])}" if replied["priced"] else "no price known"
    attempts = f", {plural(replied['attempts'], 'request')}" if replied["attempts"] > 1 else ""
    became = replied["outcome"].replace("_", " ")
    facts = [
        ("model", f"{replied['role']}: {replied['model']}{served} at {replied['endpoint']}"),
        ("asked to", f"{asked_to(replied['call'], option.title if option else '')}, at {clock_time(replied)} UTC"),
        ("used", f"{about}{replied['prompt_tokens']} + {replied['completion_tokens']} tokens, {cost}"),
        ("took", f"{replied['seconds']:.1f} s, first words after {replied['first_seconds']:.1f} s{attempts}"),
        ("form", f"asked for as {replied['structured']}" if replied["structured"] else ""),
        ("became", f"{became}: {replied['note']}" if replied["note"] else became),
        ("prompt", f"SHA-256 {replied['prompt_sha256']}"),
    ]
    return [(label, one_line(fact)) for label, fact in facts if fact]
