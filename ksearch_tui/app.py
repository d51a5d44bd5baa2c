"""The app: which screen is shown, what the keys are, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ksearch_tui.commands import ContextCommands
from ksearch_tui.keys import bindings, user_keymap, user_keys_path
from ksearch_tui.paths import endpoint_memory
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.help import HelpScreen
from ksearch_tui.screens.replay import ReplayScreen
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtExplorer, AtReplay, AtStart, StartAt

if TYPE_CHECKING:
    from search.config import RunConfig
    from search.engine import Engine
    from search.tree import Tree

OpenEngine = Callable[..., Awaitable["Engine"]]


@dataclass(frozen=True)
class Ending:
    """How the app ended: the session that was recorded, if any."""

    session: Path | None = None


async def open_engine(config: RunConfig, *, tree: Tree | None) -> Engine:
    """Open a run; the parts that it needs are imported in a thread, so that the screen stays alive."""
    assembly = await asyncio.to_thread(import_module, "search.assembly")
    engine: Engine = await assembly.open_run(config, tree=tree, memory=endpoint_memory())
    return engine


class KsearchApp(App[Ending]):
    """One run at a time: the start screen, the explorer, or the replay."""

    TITLE = "ksearch-tui"
    CSS_PATH = "styles/app.tcss"
    # Nothing that lies over a screen, and no text that is typed, keeps a person from leaving.
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("app"),
        Binding("ctrl+q", "quit", show=False, priority=True),
    ]
    COMMANDS = App.COMMANDS | {ContextCommands}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny"),
        (60, "-narrow"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-flat"),
        (16, "-low"),
        (34, "-tall"),
    ]

    def __init__(
        self,
        start: StartAt,
        *,
        open_engine: OpenEngine = open_engine,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._start_at = start
        self._open_engine = open_engine
        self._clock = clock
        self.own_keys, self._key_problems = user_keymap(user_keys_path())

    def on_mount(self) -> None:
        """Go where the command line said, with a person's own keys; end well when the terminal goes away."""
        self.go(self._start_at)
        self.set_keymap(self.own_keys)
        for problem in self._key_problems:
            self.notify(problem, title="Keys", severity="warning", timeout=15, markup=False)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(name, self._ended_from_outside)

    def _ended_from_outside(self) -> None:
        self.run_worker(self.action_quit())

    def go(self, start: StartAt) -> None:
        """Show the screen that ``start`` names, in place of the one that is shown and of what lies over that."""
        screen = self._screen_for(start)
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(screen)
        else:
            # Textual's own empty screen lies at the bottom and can't be taken away.
            self.push_screen(screen)

    def _screen_for(self, start: StartAt) -> Screen[Any]:
        if isinstance(start, AtExplorer):
            return ExplorerScreen(start, self._open_engine, self._clock)
        if isinstance(start, AtReplay):
            return ReplayScreen(start)
        return StartScreen(start)

    def on_start_screen_chosen(self, event: StartScreen.Chosen) -> None:
        """Go where the start screen says."""
        self.go(event.start)

    def on_explorer_screen_refused(self, event: ExplorerScreen.Refused) -> None:
        """Say in the start screen's place what was wrong, with the fields as they were."""
        self.go(AtStart(event.start.config, event.said))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Leave out what Textual offers and nobody needs here."""
        for command in super().get_system_commands(screen):
            if command.title not in ("Maximize", "Minimize", "Keys", "Quit"):
                yield command

    def get_key_display(self, binding: Binding) -> str:
        """Show the space bar in one cell: the footer is short of room."""
        return "␣" if binding.key == "space" else super().get_key_display(binding)

    def action_help(self) -> None:
        """Show the keys of the screen."""
        if isinstance(self.screen, ExplorerScreen | ReplayScreen):
            place = "explorer" if isinstance(self.screen, ExplorerScreen) else "replay"
            places = (place, "browse", "list", "lines", "mapping", "activity", "app")
            self.push_screen(HelpScreen(places, self.own_keys))
        else:
            self.push_screen(HelpScreen(("start", "app"), self.own_keys))

    def action_theme(self) -> None:
        """Choose the colours."""
        self.search_themes()

    async def action_quit(self) -> None:
        """Stop the run cleanly and end; the session is on disk already."""
        session = None
        for screen in self.screen_stack:
            if isinstance(screen, ExplorerScreen):
                await screen.close_run()
                session = screen.session
        self.exit(Ending(session))


def run_app(start: StartAt) -> int:
    """Run the app until a person quits; say where the session is; return the exit code."""
    # A full collection walks every node of a large tree, 80 ms in which no key is answered: have it seldom, and spare
    # it what is there for good.
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
    app = KsearchApp(start)
    ending = app.run()
    if ending is not None and ending.session is not None:
        print(f"Session saved: {ending.session}", file=sys.stderr)
        print(f"Go on with:    ksearch-tui resume {ending.session}", file=sys.stderr)
    return app.return_code or 0
