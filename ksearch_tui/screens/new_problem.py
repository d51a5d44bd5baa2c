"""The dialog that makes a problem of a CUDA file: which one, then what it doesn't say, all at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
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
        self._busy = False
        self._left: Widget | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("A new problem from a CUDA file", classes="dialog-title", markup=False)
            yield from _field("File", "source", "such as kernels/softmax.cu")
            yield from _field("Kernel", "kernel", "may stay empty: the first that is launched")
            yield from _field("Folder", "folder", "what to write; may stay empty: named after the file")
            yield VerticalScroll(id="questions", can_focus=False)
            yield Static("", id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Go on (Enter)", variant="primary", id="go", compact=True)
                yield Button("Cancel (Esc)", id="cancel", compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Start in the file's name."""
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
        self.query_one("#questions").remove_children()
        self._say("", "")

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
        asked = list(self.query(OpenQuestion))
        if missing := [question for question in asked if not question.answer]:
            self._say(f"{len(missing)} to answer.", "$text-warning")
            missing[0].query_one(Input).focus()
            return
        answers = self._answers | {question.key: question.answer for question in asked}
        self._be_busy(True)
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

    async def _ask(self, reading: Reading, answers: dict[str, str]) -> None:
        """Show all that is open, unless there is something that no answer helps with."""
        self._be_busy(False)
        if fixed := next((question for question in reading.questions if not question.answer), None):
            self._refuse(f"{reading.evidence(fixed)}: {fixed.message}")
            return
        self._answers = answers
        asked, seen = [], ""
        for question in reading.questions:
            evidence = reading.evidence(question)
            asked.append(OpenQuestion(question.answer, question.message, evidence if evidence != seen else ""))
            seen = evidence
        shown = self.query_one("#questions")
        await shown.remove_children()
        await shown.mount_all(asked)
        self.set_focus(asked[0].query_one(Input))
        self._say(f"{len(asked)} to answer.", "$text-warning")

    def _be_busy(self, busy: bool) -> None:
        """Take no key for a field while the file is read: it would change what the reading is of."""
        self._busy = busy
        if busy:
            self._left = self.focused
        for field in self.query(Input):
            field.disabled = busy
        if not busy:
            self.set_focus(self._left)

    def _refuse(self, said: str) -> None:
        self._be_busy(False)
        self._say(one_line(said), "$text-error")

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _say(self, text: str, style: str) -> None:
        self.query_one("#said", Static).update(Content.assemble((one_line(text), style)) if text else Content(""))


class OpenQuestion(Vertical):
    """Something that the source doesn't say, the line that it is about ("" for the one before), and an answer to it."""

    def __init__(self, key: str, message: str, evidence: str) -> None:
        super().__init__()
        self.key, self._message, self._evidence = key, message, evidence

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble((one_line(self._message), "bold $text-warning")))
        if self._evidence:
            yield Static(Content(one_line(self._evidence)), classes="evidence")
        yield Input(placeholder=one_line(self.key), compact=True)

    @property
    def answer(self) -> str:
        """What was answered, "" for nothing."""
        return self.query_one(Input).value.strip()


def _field(label: str, name: str, placeholder: str) -> ComposeResult:
    with Horizontal(id=f"{name}-field", classes="dialog-field"):
        yield Label(label)
        yield Input(placeholder=placeholder, id=name, compact=True)
