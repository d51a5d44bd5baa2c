"""The redirect dialog: where to search, in a person's words; a question that comes back is answered here too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option as Entry
from textual.worker import Worker, WorkerState

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from search.proposers.base import Redirection


class RedirectDialog(ModalScreen["Redirection | None"]):
    """Sends guidance to the proposer; ends with what it made of it, or None when a person gives up."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, option: str, send: Callable[[str], Awaitable[Redirection]]) -> None:
        super().__init__()
        self._option = option
        self._send = send

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(f"Where should the search go under “{self._option}”?"), classes="dialog-title")
            yield Input(placeholder="try double buffering first, no unrolling", id="guidance")
            yield Static("", id="said", markup=False)
            yield OptionList(id="choices", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Redirect (Enter)", variant="primary", id="send", compact=True)
                yield Button("Cancel (Esc)", id="cancel", compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Start in the text."""
        self.query_one("#choices").display = False
        self.query_one(Input).focus()

    @on(Input.Submitted)
    @on(Button.Pressed, "#send")
    def _submit(self) -> None:
        self._ask(self.query_one(Input).value)

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self._ask(self._choices[event.option_index])

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """Close without a direction."""
        self.workers.cancel_node(self)
        self.dismiss(None)

    def _ask(self, guidance: str) -> None:
        if not guidance.strip():
            self._say("Say in a few words where to search.", "$text-warning")
            return
        self._say("The proposer is thinking…", "$text-accent")
        self._request(guidance.strip())

    @work(exclusive=True, exit_on_error=False)
    async def _request(self, guidance: str) -> Redirection:
        self.query_one(".dialog").loading = False
        return await self._send(guidance)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Close with the answer, show the question, or say what went wrong with the text kept."""
        if event.state is WorkerState.ERROR:
            self._say(one_line(str(event.worker.error)), "$text-error")
        elif event.state is WorkerState.SUCCESS:
            said = event.worker.result
            if said is None:
                return
            if said.question:
                self._question(said)
            else:
                self.dismiss(said)

    def _question(self, said: Redirection) -> None:
        self._choices = said.choices
        self._say(one_line(said.question), "bold $text-warning")
        choices = self.query_one(OptionList)
        choices.clear_options()
        choices.add_options([Entry(Content(one_line(choice))) for choice in said.choices])
        choices.display = bool(said.choices)
        if said.choices:
            choices.highlighted = 0
            choices.focus()

    def _say(self, text: str, style: str) -> None:
        self.query_one("#said", Static).update(Content.assemble((text, style)))
