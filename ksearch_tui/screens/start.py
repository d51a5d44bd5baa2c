"""The start screen: what to search for, on what, by whom, into which session; or a session to go on with or replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, Footer, Input, Label, OptionList, Select, Static
from textual.widgets.option_list import Option as Entry

from ksearch_tui.inert import inert, one_line
from ksearch_tui.keys import bindings
from ksearch_tui.paths import SUFFIX, new_session_path, recent_sessions
from ksearch_tui.screens.new_problem import NewProblemDialog
from ksearch_tui.start_at import AtExplorer, AtReplay, AtStart, StartAt
from ksearch_tui.widgets.limit_fields import FieldError, LimitFields
from ksearch_tui.widgets.model_fields import ModelFields
from ksearch_tui.widgets.too_small import TooSmall
from profiles.hardware import ProfileError, load_profile, profile_names
from search.config import RunConfig
from search.devices.registry import default_device, device_names
from search.problems.definition import ProblemError, built_in_names, load_problem
from search.rules import TreeError
from search.spending import Budget
from sessions.examples import example_names, example_path
from sessions.store import SessionError, read_session

DEFAULT_PROBLEM = "attention_prefill"
DEFAULT_PROFILE = "apple-m3-max"
BY_HAND = "yours: nothing runs that you did not approve"
BY_POLICY = "autopilot: the policy decides until you take over"
LLM = "llm"
_OWN_FOLDER = "a folder of your own…"
_QUIET = "$foreground 60%"


@dataclass(frozen=True)
class Recorded:
    """A session to open: a person's own to go on with, or a recorded example to replay."""

    path: Path
    label: str
    example: bool


class StartScreen(Screen[None]):
    """Enter starts; every field has a sensible value already."""

    CSS_PATH = "../styles/start.tcss"
    AUTO_FOCUS = "#start"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "app.focus_next", "next field", show=False),
        Binding("up,k", "app.focus_previous", "previous field", show=False),
        *bindings("start"),
    ]

    class Chosen(Message):
        """Where a person wants to go."""

        def __init__(self, start: StartAt) -> None:
            super().__init__()
            self.start = start

    def __init__(self, start: AtStart) -> None:
        super().__init__()
        self._config = start.config or RunConfig(DEFAULT_PROBLEM, default_device(), DEFAULT_PROFILE)
        self._find_profile = start.config is None
        self._said = start.said
        self._recorded = [
            *(Recorded(path, path.name.removesuffix(SUFFIX), False) for path in recent_sessions()),
            *(Recorded(example_path(name), name, True) for name in example_names()),
        ]
        self._suggested = ""
        self._asked: tuple[object, object] | None = None

    def compose(self) -> ComposeResult:
        # Imported here: the explorer's first paint does without it.
        from search.assembly import proposer_names

        config = self._config
        own = config.problem not in built_in_names()
        problems = [*built_in_names(), _OWN_FOLDER]
        yield Static(_banner(), id="banner", markup=False)
        with Horizontal(id="columns"):
            with Vertical(id="new"):
                yield from _field("Problem", _choice("problem", problems, _OWN_FOLDER if own else config.problem))
                with _row("folder-row"):
                    yield Label("Folder")
                    yield Input(config.problem if own else "", placeholder="…/problem.toml", id="folder", compact=True)
                yield from _field("Device", _choice("device", device_names(), config.device))
                yield from _field("Profile", _choice("profile", profile_names(), config.profile))
                yield from _field("Proposer", _choice("proposer", proposer_names(), config.proposer))
                yield ModelFields(config)
                yield LimitFields(Budget.of(config))
                yield from _field("Session", Input(id="session", compact=True))
                yield from _field("Decisions", _choice("decides", [BY_HAND, BY_POLICY], BY_HAND))
                with _row():
                    yield Label("")
                    yield Button("Start (Enter)", variant="primary", id="start", compact=True)
                    yield Button("From a CUDA file (c)", id="from-cuda", compact=True)
                yield Static("", id="about", markup=False)
            with Vertical(id="recorded"):
                yield OptionList(*(self._entry(recorded) for recorded in self._recorded), id="sessions", markup=False)
        yield Static("", id="said", markup=False)
        yield Footer(show_command_palette=False, compact=True)
        yield TooSmall()

    @staticmethod
    def _entry(recorded: Recorded) -> Entry:
        sign, what = ("▶", "example") if recorded.example else ("↻", "go on")
        return Entry(Content.assemble((f"{sign} {what:<9}", _QUIET), one_line(recorded.label)))

    def on_mount(self) -> None:
        """Fill in what depends on the machine and the time."""
        self.query_one("#new").border_title = "A new search"
        recorded = self.query_one("#recorded")
        recorded.border_title = "Sessions and examples"
        recorded.display = bool(self._recorded)
        self._suggest_session()
        self._show_model_fields()
        self._say(self._said)
        if self._find_profile and self._config.device == "metal":
            self._detect_profile()

    @work(thread=True, exit_on_error=False)
    def _detect_profile(self) -> None:
        # Asking MLX for the GPU's name takes a while.
        from ksearch_tui.headless.settings import device_and_profile

        _, profile = device_and_profile("metal", "")
        self.app.call_from_thread(self._set_profile, profile)

    def _set_profile(self, profile: str) -> None:
        self._select("profile").value = profile

    # -- fields ------------------------------------------------------------------------------------------------------

    def _select(self, id: str) -> Select[str]:
        return self.query_one(f"#{id}", Select)

    def _text(self, id: str) -> str:
        return self.query_one(f"#{id}", Input).value.strip()

    def _problem(self) -> str:
        chosen = str(self._select("problem").value)
        return self._text("folder") if chosen == _OWN_FOLDER else chosen

    @on(Select.Changed, "#problem")
    @on(Input.Changed, "#folder")
    def _suggest_session(self) -> None:
        """Name the session after the problem, unless a person named it."""
        self.query_one("#folder-row").display = self._select("problem").value == _OWN_FOLDER
        session = self.query_one("#session", Input)
        if session.value == self._suggested:
            self._suggested = session.value = str(new_session_path(self._problem() or "session"))

    @on(Select.Changed)
    @on(Input.Changed, "#folder")
    def _describe(self) -> None:
        """Say what was chosen: the problem, and the GPU that the kernel is for."""
        about = self.query_one("#about", Static)
        try:
            problem, profile = load_problem(self._problem()), load_profile(str(self._select("profile").value))
        except (ProblemError, ProfileError):
            about.update("")
            return
        about.update(
            Content.assemble(
                (inert(problem.title), "bold"),
                f"\n{one_line(problem.description)}\n\n",
                (inert(profile.title), "bold"),
                f"\n{profile.cores} cores at {profile.clock_ghz:g} GHz, {profile.bandwidth_gbs:g} GB/s",
            )
        )

    @on(Select.Changed, "#proposer")
    @on(Select.Changed, "#endpoint")
    def _show_model_fields(self) -> None:
        """Show what a model needs only where one is asked; say at once when its key is missing."""
        asked = (self._select("proposer").value, self._select("endpoint").value)
        if asked == self._asked:
            return
        self._asked = asked
        asks, fields = self._asks_models(), self.query_one(ModelFields)
        fields.display = asks
        self.query_one(LimitFields).show_models(asks)
        self._say(fields.describe() if asks else "")

    def _asks_models(self) -> bool:
        return self._select("proposer").value == LLM

    def _read(self) -> AtExplorer:
        """Return the run that the fields describe; raise what is wrong with them."""
        # Imported here: the start screen's first paint does without it.
        from ksearch_tui.headless.settings import model_settings

        chosen = self._problem()
        if not chosen:
            raise FieldError("name the folder of your problem")
        problem = load_problem(chosen)
        load_profile(str(self._select("profile").value))
        asks = self._asks_models()
        limits = self.query_one(LimitFields).limits(models=asks)
        if not self._text("session"):
            raise FieldError("name the session's file")
        path = Path(self._text("session")).expanduser()
        if path.exists():
            raise FieldError(f"'{path}' is already there: choose another name, or go on with it")
        config = RunConfig(
            problem=chosen if chosen in built_in_names() else str(problem.folder),
            device=str(self._select("device").value),
            profile=str(self._select("profile").value),
            proposer=str(self._select("proposer").value),
            budget=limits.evaluations,
            minutes=limits.minutes,
            tokens=limits.tokens,
            usd=limits.usd,
            **(model_settings(**self.query_one(ModelFields).settings()) if asks else {}),
        )
        return AtExplorer(config, path, autopilot=self._select("decides").value == BY_POLICY)

    @on(Button.Pressed, "#start")
    @on(Input.Submitted)
    def _start(self) -> None:
        try:
            start = self._read()
        except (FieldError, ProblemError, ProfileError) as error:
            self._say(str(error))
            return
        self.post_message(self.Chosen(start))

    @on(Button.Pressed, "#from-cuda")
    def action_from_cuda(self) -> None:
        """Make a problem of a CUDA file, and search for that with what the other fields say."""
        self.app.push_screen(NewProblemDialog(str(self._select("profile").value)), self._start_on)

    def _start_on(self, folder: Path | None) -> None:
        if folder is None:
            return
        self._select("problem").value = _OWN_FOLDER
        self.query_one("#folder", Input).value = str(folder)
        self.query_one("#session", Input).value = str(new_session_path(str(folder)))
        self._start()

    def _say(self, text: str) -> None:
        said = self.query_one("#said", Static)
        said.update(Content.assemble((one_line(text), "$text-error")))
        said.display = bool(text)

    # -- recorded sessions -------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected, "#sessions")
    def _open_chosen(self, event: OptionList.OptionSelected) -> None:
        recorded = self._recorded[event.option_index]
        self._open(recorded, replay=recorded.example)

    def action_replay_chosen(self) -> None:
        """Replay the session under the cursor of the list."""
        at = self.query_one("#sessions", OptionList).highlighted
        if at is not None:
            self._open(self._recorded[at], replay=True)

    def _open(self, recorded: Recorded, *, replay: bool) -> None:
        self._say("")
        self.query_one("#sessions").loading = True
        self._read_recorded(recorded, replay)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _read_recorded(self, recorded: Recorded, replay: bool) -> None:
        try:
            start = _replay(recorded) if replay else _resume(recorded)
        except (SessionError, TreeError) as error:
            self.app.call_from_thread(self._unreadable, str(error))
            return
        self.post_message(self.Chosen(start))

    def _unreadable(self, said: str) -> None:
        self.query_one("#sessions").loading = False
        self._say(said)


def _replay(recorded: Recorded) -> AtReplay:
    session = read_session(recorded.path)
    return AtReplay(session.events, session.config, recorded.label)


def _resume(recorded: Recorded) -> AtExplorer:
    from sessions.resume import resume_state

    store, tree = resume_state(recorded.path)
    return AtExplorer(store.config, recorded.path, store=store, tree=tree)


def _banner() -> Content:
    return Content.assemble(
        ("ksearch-tui", "bold $text-primary"),
        ("  you and a tree search write a fast, proven Metal kernel for MLX", _QUIET),
    )


def _row(id: str | None = None) -> Horizontal:
    return Horizontal(id=id, classes="field")


def _field(label: str, widget: Select[str] | Input) -> ComposeResult:
    with _row():
        yield Label(label)
        yield widget


def _choice(id: str, values: list[str], value: str) -> Select[str]:
    known = values if value in values else [*values, value]
    return Select([(one_line(name), name) for name in known], value=value, allow_blank=False, id=id, compact=True)
