"""The doors to the app: what each command shows, once it is sure that there is a terminal to show it on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.start_at import AtExplorer, AtReplay, AtStart, StartAt


def start(options: argparse.Namespace) -> int:
    """Show the start screen."""
    return _show(AtStart(), "`ksearch-tui run PROBLEM`")


def explore(options: argparse.Namespace) -> int:
    """Show the explorer on a new run."""
    _need_terminal("`ksearch-tui run PROBLEM`")
    from ksearch_tui.headless.settings import run_config
    from ksearch_tui.paths import new_session_path

    config = run_config(options)
    path = options.session or new_session_path(config.problem)
    return _show(AtExplorer(config, path, options.autopilot), "`ksearch-tui run PROBLEM`")


def resume_on_screen(options: argparse.Namespace) -> int:
    """Show the explorer on a session that goes on; the app closes the session file."""
    _need_terminal("`ksearch-tui resume FILE --headless`")
    from ksearch_tui.headless.settings import resumed_config
    from sessions.resume import resume_state

    path: Path = options.file
    store, tree = resume_state(path)
    if store.repair:
        print(f"ksearch-tui: {store.repair}", file=sys.stderr)
    config = resumed_config(store.config, options)
    return _show(AtExplorer(config, path, store=store, tree=tree), "`ksearch-tui resume FILE --headless`")


def replay_on_screen(path: Path, speed: float, *, paused: bool) -> int:
    """Show the replay of a session file."""
    _need_terminal("`ksearch-tui replay FILE --headless`")
    from sessions.store import read_session

    session = read_session(path)
    shown = AtReplay(session.events, session.config, path.name, speed, paused)
    return _show(shown, "`ksearch-tui replay FILE --headless`")


def _show(start_at: StartAt, instead: str) -> int:
    _need_terminal(instead)
    from ksearch_tui.app import run_app

    return run_app(start_at)


def _need_terminal(instead: str) -> None:
    """Raise unless both ends are a terminal: Textual would write its escapes into a pipe or a file."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError(f"the app needs a terminal; without one, use {instead}", USAGE)
