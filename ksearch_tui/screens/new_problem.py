"""The dialog that makes a problem of a CUDA file: which one, then what it doesn't say, one question at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from search.from_cuda.reading import Reading


class NewProblemDialog(ModalScreen[Path | None]):
    """Ends with the folder of the new problem, or None when a person gives up."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, profile: str) -> None:
        super().__init__()
        self._profile = profile
        self._answers: dict[str, str] = {}
        self._reading: Reading | None = None
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("A new problem from a CUDA file", classes="dialog-title", markup=False)
            yield from _field("File", "source", "such as kernels/softmax.cu")
            yield from _field("Kernel", "kernel", "may stay empty: the first that is launched")
            yield from _field("Folder", "folder", "what to write; may stay empty: named after the file")
            yield Static("", id="question", markup=False)
            yield Static("", id="evidence", markup=False)
            yield from _field("Answer", "answer", "")
            yield Static("", id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Go on (Enter)", variant="primary", id="go", compact=True)
                yield Button("Cancel (Esc)", id="cancel", compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Start in the file's name."""
        self._show_question(False)
        self.query_one("#source").focus()

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """Close without a problem."""
        self.workers.cancel_node(self)
        self.dismiss(None)

    @on(Input.Changed, "#source")
    @on(Input.Changed, "#kernel")
    def _begin_anew(self) -> None:
        """Forget what was answered: another file or kernel asks for other things."""
        self._answers.clear()
        self._reading = None
        self._show_question(False)

    @on(Input.Submitted)
    @on(Button.Pressed, "#go")
    def _go(self) -> None:
        if self._busy:
            return
        source = self._text("source")
        if not source:
            self._say("Name the file.", "$text-warning")
            self.query_one("#source").focus()
            return
        answers = dict(self._answers)
        if self._reading is not None and self._reading.questions:
            question = self._reading.questions[0]
            if not self._text("answer"):
                self._say("Give an answer, or press Esc.", "$text-warning")
                return
            answers[question.answer] = self._text("answer")
        self._busy = True
        self._say("Reading…", "$text-accent")
        folder = Path(self._text("folder") or Path(source).stem).expanduser()
        self._work(Path(source).expanduser(), self._text("kernel") or None, answers, folder)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _work(self, source: Path, kernel: str | None, answers: dict[str, str], folder: Path) -> None:
        """Read the file, and write the problem when nothing is open; what a person must know comes back in words."""
        from profiles.hardware import load_profile
        from search.devices.base import DeviceUnavailable
        from search.from_cuda.folder import CantStart, require_free, write_problem
        from search.from_cuda.reading import read_cuda
        from search.problems.definition import ProblemError
        from translator.mistakes import CudaInputError

        tell: Callable[..., None] = self.app.call_from_thread
        try:
            require_free(folder, force=False)
            reading = read_cuda(source, kernel, answers)
            if reading.questions:
                tell(self._ask, reading, answers)
                return
            write_problem(
                reading, folder, load_profile(self._profile), lambda said: tell(self._say, said, "$text-accent")
            )
        except (CudaInputError, CantStart, DeviceUnavailable, ProblemError, OSError) as error:
            tell(self._refuse, str(error))
            return
        tell(self.dismiss, folder.resolve())

    def _ask(self, reading: Reading, answers: dict[str, str]) -> None:
        """Show the first thing that is open, with the line of the source that it is about."""
        self._busy = False
        self._reading, self._answers = reading, answers
        question = reading.questions[0]
        if not question.answer:
            self._reading = None
            self._refuse(f"{reading.evidence(question)}: {question.message}")
            return
        self._show_question(True)
        count = len(reading.questions)
        said = f"{one_line(question.message)} ({count} open)" if count > 1 else one_line(question.message)
        self.query_one("#question", Static).update(Content.assemble((said, "bold $text-warning")))
        self.query_one("#evidence", Static).update(Content(one_line(reading.evidence(question))))
        answer = self.query_one("#answer", Input)
        answer.value, answer.placeholder = "", one_line(question.answer)
        answer.focus()
        self._say("", "")

    def _refuse(self, said: str) -> None:
        self._busy = False
        self._say(one_line(said), "$text-error")

    def _show_question(self, shown: bool) -> None:
        for name in ("question", "evidence", "answer-field"):
            self.query_one(f"#{name}").display = shown

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _say(self, text: str, style: str) -> None:
        self.query_one("#said", Static).update(Content.assemble((one_line(text), style)) if text else Content(""))


def _field(label: str, name: str, placeholder: str) -> ComposeResult:
    with Horizontal(id=f"{name}-field", classes="dialog-field"):
        yield Label(label)
        yield Input(placeholder=placeholder, id=name, compact=True)
