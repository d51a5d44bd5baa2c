"""The explorer: a person steers a search while it runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import BindingType
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.worker import Worker, WorkerError, WorkerState

from ksearch_tui.announcing import announcement, asked_now, hint
from ksearch_tui.editor import EditorError, discard_draft, edit_file, editor_command, write_draft
from ksearch_tui.inert import one_line
from ksearch_tui.keys import actions, bindings
from ksearch_tui.paths import sessions_folder
from ksearch_tui.possible import possible
from ksearch_tui.replies_under_way import RepliesUnderWay
from ksearch_tui.screens.new_option import NewOptionDialog
from ksearch_tui.screens.redirect import RedirectDialog
from ksearch_tui.screens.run_screen import RunScreen
from ksearch_tui.start_at import AtExplorer
from ksearch_tui.widgets.activity_tab import ActivityTab
from ksearch_tui.widgets.status_line import StatusLine
from ksearch_tui.wording import count, plural
from search.events import Event, is_followed
from search.kernels.program import ProgramError
from search.kernels.text import program_from_text, program_to_text
from search.option import Option
from search.proposers.base import BrokenOff
from search.rules import TreeError
from search.tree import Tree
from sessions.store import SessionStore

if TYPE_CHECKING:
    from search.audience import Question
    from search.engine import Engine
    from search.proposers.base import Redirection

# Changes of the tree are gathered this long before they are laid out.
_TICK_SECONDS = 0.12
# So are the pieces of a model's reply: nobody reads faster.
_HEAR_SECONDS = 0.08
_STOP_SECONDS = 5.0


class ExplorerScreen(RunScreen):
    """Opens the engine, records and shows its events, and turns keys into decisions."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("explorer", "browse")

    class Refused(Message):
        """The run could not be opened; the message says what is wrong."""

        def __init__(self, start: AtExplorer, said: str) -> None:
            super().__init__()
            self.start, self.said = start, said

    def __init__(
        self,
        start: AtExplorer,
        open_engine: Callable[..., Awaitable[Engine]],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(start.config, start.tree or Tree(), lambda: clock() - self._opened_at)
        self._start = start
        self._open_engine = open_engine
        self._opened_at = clock()
        self._engine: Engine | None = None
        self._opened = asyncio.Event()
        self._early: list[Callable[[Engine], object]] = []
        self._store = start.store
        self._engine_work: Worker[None] | None = None
        self._stages: dict[str, str] = {}
        self._under_way = RepliesUnderWay()
        self._heard = -1
        self._asking: list[str] = []
        self._seen_best = 0.0
        self._disabled: frozenset[str] = frozenset()
        self._changed = True

    # -- the run -----------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Open the run once the first paint is out."""
        super().on_mount()
        self.set_interval(_TICK_SECONDS, self._tick)
        self.set_interval(_HEAR_SECONDS, self._hear)
        self.query_one(StatusLine).follow(self._under_way)
        self.call_after_refresh(self._open_run)

    @work(group="open", exit_on_error=False)
    async def _open_run(self) -> None:
        self._say_doing("opening the problem")
        # Only a run that can begin leaves a session: an endpoint may be down.
        engine = await self._open_engine(self.config, tree=self._start.tree)
        store = self._store = self._store or self._create_session()
        engine.subscribe(store.append)
        engine.subscribe(self._on_event)
        engine.on_progress(self._on_progress)
        engine.on_text(self._on_text)
        self._engine, self.run_state, self.problem = engine, engine.tree, engine.problem
        if store.repair:
            self.notify(store.repair, title="Session repaired", severity="warning", timeout=15, markup=False)
        if self._start.autopilot and not engine.tree.autopilot:
            engine.set_autopilot(True)
        for decide in self._early:
            self._try(decide, engine)
        self._opened.set()
        self._changed = True
        self._start_engine(engine)

    def _create_session(self) -> SessionStore:
        path = self._start.session_path
        if path.parent == sessions_folder():
            path.parent.mkdir(parents=True, exist_ok=True)
        return SessionStore.create(path, self.config)

    def _start_engine(self, engine: Engine) -> None:
        self._engine_work = self.run_worker(engine.run(), group="engine", exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say what went wrong in a worker; the session stays open."""
        worker = event.worker
        if event.state is WorkerState.ERROR and worker.error is not None:
            if worker.group == "open":
                self._let_go()
                self.post_message(self.Refused(self._start, self._sentence(worker.error)))
                return
            if isinstance(worker.error.__cause__, BrokenOff):
                return
            title = "The run stopped" if worker.group == "engine" else "That did not work"
            text = self._sentence(worker.error)
            if worker.group == "engine":
                text += "\nWhat is recorded is safe."
            self.notify(text, title=title, severity="error", timeout=20, markup=False)
        if event.state in (WorkerState.ERROR, WorkerState.SUCCESS, WorkerState.CANCELLED):
            self._stages = {}
            self._changed = True

    @staticmethod
    def _sentence(error: BaseException) -> str:
        from ksearch_tui.headless.errors import explain

        message = explain(error)[1] if isinstance(error, Exception) else None
        return one_line(message or f"{type(error).__name__}: {error}")

    def _on_event(self, event: Event) -> None:
        """Have the next tick show an event; it is in the session file already."""
        self._changed = True
        if event.kind in ("evaluated", "failed", "cancelled"):
            self._stages.pop(event["option"], None)
        self._announce(event)

    def _announce(self, event: Event) -> None:
        """Show a toast for what a person may be waiting for."""
        toast = announcement(event, self.run_state, self._seen_best)
        if toast is not None:
            self.notify(toast.text, title=toast.title, severity=toast.severity, timeout=toast.seconds, markup=False)
        best = self.run_state.best()
        self._seen_best = self.run_state.speedup(best.id) if best is not None else 0.0

    def _on_progress(self, option: str, stage: str) -> None:
        self._follow_questions()
        if not self._under_way.wait(option, stage):
            self._stages[option] = stage
            self._say_doing()

    def _on_text(self, question: Question, piece: str, thought: bool) -> None:
        """Take in a piece of a reply; the next tick shows it."""
        self._under_way.hear(question, piece, thought, self.elapsed())

    def _follow_questions(self) -> None:
        if self._engine is not None:
            self._under_way.follow(self._engine.asking, self.elapsed())

    def _hear(self) -> None:
        """Show what models have said since the last tick, where it is looked at, and how long they have been asked."""
        self._follow_questions()
        under_way = self._under_way
        if not under_way.replies and under_way.version == self._heard:
            return
        tab = self._shown_tab()
        if isinstance(tab, ActivityTab):
            tab.show_replies(under_way, self.run_state, self.elapsed())
        if under_way.version != self._heard:
            self._heard = under_way.version
            self._say_doing()

    def _tick(self) -> None:
        if self._changed:
            self._changed = False
            self.refresh_run()
            self._say_doing()
            self.option_changed()

    def _say_doing(self, text: str = "") -> None:
        """Say on the bottom line what is waited for: a request, or what is evaluated."""
        if not text and (reply := self._under_way.latest) is not None:
            text = asked_now(reply, self.run_state)
        if not text and self._asking:
            text = self._asking[-1]
        if not text and self._engine is not None:
            running = [name for name, option in self.run_state.options.items() if option.running]
            if running:
                text = f"{one_line(self.run_state[running[0]].title)}: {self._stages.get(running[0], 'writing')}"
        status = self.query_one(StatusLine)
        status.set_doing(text)
        status.set_hint(hint(self.run_state) if self._engine is not None else "")

    async def close_run(self) -> None:
        """Stop the engine, wait until it has let go of its evaluator, and close the session."""
        running = self._engine_work
        if self._engine is not None and running is not None and running.is_running:
            self._engine.stop("quit")
            with contextlib.suppress(TimeoutError, WorkerError):
                await asyncio.wait_for(running.wait(), _STOP_SECONDS)
            running.cancel()
        self._let_go()

    @property
    def session(self) -> Path | None:
        """The session's file, None when none could be opened."""
        return self._store.path if self._store is not None else None

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()

    # -- which actions there are -------------------------------------------------------------------------------------

    def option_changed(self) -> None:
        """Grey out what can't be done with the option under the cursor."""
        disabled = frozenset(action.name for action in actions("explorer") if not self._possible(action.name))
        if disabled != self._disabled:
            self._disabled = disabled
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable what `option_changed` greyed out; only while a model is asked can that be broken off."""
        if action == "break_off":
            return not self.finding and self._engine is not None and bool(self._engine.asking)
        return None if action in self._disabled else super().check_action(action, parameters)

    def _possible(self, action: str) -> bool:
        opening = self._engine is None and not self.run_state.options
        return opening or possible(action, self.run_state, self.option)

    def action_top(self) -> None:
        """Go to the first line of what has the focus."""
        self._list().action_scroll_home()

    def action_bottom(self) -> None:
        """Go to the last line of what has the focus."""
        self._list().action_scroll_end()

    def _list(self) -> ScrollView:
        return self.focused if isinstance(self.focused, ScrollView) else self.options

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _decide(self, decide: Callable[[Engine, str], object]) -> None:
        """Do something with the option under the cursor, or as soon as the run is open."""
        option = self._option_or_say()
        if option is not None:
            self._do(lambda engine: decide(engine, option.id))

    def _option_or_say(self) -> Option | None:
        """Return the option under the cursor; say so where there is none yet."""
        if self.option is None:
            self.notify("There is no option yet: the run is being opened.", timeout=4, markup=False)
        return self.option

    def _do(self, decide: Callable[[Engine], object]) -> None:
        if self._engine is None:
            self._early.append(decide)
            self._say_later()
        else:
            self._try(decide, self._engine)

    def _try(self, decide: Callable[[Engine], object], engine: Engine) -> bool:
        """Do something with the run; say so when the engine refuses."""
        from search.engine import EngineError

        try:
            decide(engine)
        except (EngineError, TreeError) as error:
            self.notify(one_line(str(error)), severity="warning", markup=False)
            return False
        return True

    async def _once_open(self) -> Engine:
        """Return the engine, after a word and a wait where the run is still being opened."""
        while self._engine is None:
            self._say_later()
            await self._opened.wait()
        return self._engine

    def _say_later(self) -> None:
        self.notify("The run is being opened; this is done as soon as it is.", timeout=4, markup=False)

    def action_approve(self) -> None:
        """Have the option written and evaluated."""
        self._decide(lambda engine, option: engine.approve(option))

    def action_prune(self) -> None:
        """Drop the option and what is under it."""
        self._decide(lambda engine, option: engine.prune(option))

    def action_pin(self) -> None:
        """Pin or unpin the option."""
        self._decide(lambda engine, option: engine.unpin(option) if engine.tree[option].pinned else engine.pin(option))

    def action_undo(self) -> None:
        """Take back the last decision."""

        def undo(engine: Engine) -> None:
            self.notify(one_line(engine.undo()), title="Taken back", timeout=4, markup=False)

        self._do(undo)

    def action_pause(self) -> None:
        """Pause or go on; a run that stopped is started again."""
        if self._engine is not None and (self._engine_work is None or not self._engine_work.is_running):
            self._start_engine(self._engine)
        else:
            self._do(lambda engine: engine.resume() if engine.tree.paused else engine.pause())

    def action_autopilot(self) -> None:
        """Switch autopilot."""
        self._do(lambda engine: engine.set_autopilot(not engine.tree.autopilot))

    def action_break_off(self) -> None:
        """Break off what a model is being asked."""
        engine = self._engine
        if engine is None:
            return
        self._follow_questions()
        asked, before = self._under_way.latest, self.run_state.account.tokens
        if engine.cancel_call() and asked is not None:
            tokens = self.run_state.account.tokens - before
            said = f"{asked.question.role} {one_line(asked.question.model)}; it cost ~{count(tokens)} tokens."
            self.notify(said, title="Broken off", severity="warning", timeout=8, markup=False)
        self._hear()

    # -- asking the proposer -----------------------------------------------------------------------------------------

    @work(group="ask", exit_on_error=False)
    async def action_more(self) -> None:
        """Ask for more options under the one under the cursor."""
        option = self._option_or_say()
        if option is None:
            return
        engine = await self._once_open()
        found = await self._ask(f"asking for options under {one_line(option.title)}", engine.propose(option.id))
        text = (
            f"{plural(found, 'new option')} under {one_line(option.title)}"
            if found
            else "Nothing more to propose here."
        )
        self.notify(text, markup=False)

    async def _ask(self, doing: str, request: Awaitable[int]) -> int:
        self._asking.append(doing)
        self._say_doing()
        try:
            return await request
        finally:
            self._asking.remove(doing)
            self._changed = True

    @work(group="ask", exit_on_error=False)
    async def action_redirect(self) -> None:
        """Ask in words for a direction; show the question that comes back, if one does."""
        option = self._option_or_say()
        if option is None:
            return
        before = len(self.run_state.events)

        async def send(guidance: str) -> Redirection:
            return await (await self._once_open()).redirect(option.id, guidance)

        said = await self.app.push_screen_wait(RedirectDialog(one_line(option.title), send))
        if said is not None:
            found = len(said.proposals)
            follow = "follows" if found == 1 else "follow"
            text = f"{plural(found, 'option')} {follow} it." if found else "Nothing new follows; the guidance is kept."
            since = self.run_state.events[before:]
            told = [event for event in since if is_followed(event) and event["option"] == option.id]
            followed = [f"How it was followed: {one_line(event['text'])}" for event in told[-1:]]
            self.notify("\n".join([text, *followed]), title="Redirected", timeout=12, markup=False)
            self._changed = True

    @work(group="ask", exit_on_error=False)
    async def action_new_option(self) -> None:
        """Add an option of one's own under the one under the cursor."""
        parent = self._option_or_say()
        if parent is None:
            return
        wanted = await self.app.push_screen_wait(NewOptionDialog(one_line(parent.title)))
        if wanted is None:
            return
        added: list[str] = []

        def add(engine: Engine) -> None:
            added.append(engine.add(parent.id, wanted.title, wanted.why))

        if self._try(add, await self._once_open()):
            self.refresh_run()
            self.options.choose(added[0])
            self.notify("Added. a has it written, e lets you write it.", timeout=6, markup=False)

    # -- editing -----------------------------------------------------------------------------------------------------

    @work(group="edit", exclusive=True, exit_on_error=False)
    async def action_edit(self) -> None:
        """Open the option's program in a person's editor and run what comes back."""
        from search.engine import EngineError

        option = self._option_or_say()
        if option is None:
            return
        engine, draft = await self._once_open(), None
        try:
            editor_command()
            text = program_to_text(await engine.draft(option.id))
            draft = write_draft(text, f"{option.id}.metal")
            edited = await edit_file(self.app, draft)
            if edited != text:
                engine.edit(option.id, program_from_text(edited))
        except (EditorError, EngineError, ProgramError, TreeError) as error:
            kept = f"\nYour text is kept in {draft}" if draft is not None else ""
            said = f"{one_line(str(error))}{kept}"
            self.notify(said, title="Not edited", severity="error", timeout=30, markup=False)
            return
        discard_draft(draft)
        if edited == text:
            self.notify("Nothing was changed.", markup=False)
        else:
            self.notify("Your program runs when its turn comes.", title="Taken over", markup=False)
