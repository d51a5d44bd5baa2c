"""The dialog for an option of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from ksearch_tui.widgets.too_small import TooSmall


@dataclass(frozen=True)
class NewOption:
    """What a person wants to try, and why."""

    title: str
    why: str


class NewOptionDialog(ModalScreen[NewOption | None]):
    """Asks for a title and a reason; ends with None when a person gives up."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, parent: str) -> None:
        super().__init__()
        self._parent_title = parent

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(f"An option of your own under “{self._parent_title}”"), classes="dialog-title")
            yield Input(placeholder="what to change, such as: two rows per simdgroup", id="title")
            yield Input(placeholder="why it should help (may stay empty)", id="why")
            yield Static("", id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Add (Enter)", variant="primary", id="add", compact=True)
                yield Button("Cancel (Esc)", id="cancel", compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Start in the title."""
        self.query_one("#title").focus()

    @on(Input.Submitted)
    @on(Button.Pressed, "#add")
    def _add(self) -> None:
        title = self.query_one("#title", Input).value.strip()
        if not title:
            said = Content.assemble(("Give it a title.", "$text-warning"))
            self.query_one("#said", Static).update(said)
            self.query_one("#title").focus()
            return
        self.dismiss(NewOption(title, self.query_one("#why", Input).value.strip()))

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """Close without an option."""
        self.dismiss(None)
