"""``ksearch-tui run`` and ``ksearch-tui resume --headless``: the search without a screen, under autopilot."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from ksearch_tui.headless.progress import StatusLine
from ksearch_tui.headless.settings import resumed_config, run_config
from ksearch_tui.headless.summary import run_summary, summary_lines
from ksearch_tui.inert import one_line
from ksearch_tui.narration import narrate
from ksearch_tui.paths import endpoint_memory, new_session_path
from search.assembly import open_run
from search.audience import Question
from search.config import RunConfig
from search.engine import Engine
from search.events import ENGINE, Event
from search.tree import Tree
from sessions.resume import resume_state
from sessions.store import SessionStore


def run(options: argparse.Namespace) -> int:
    """Search until the budget is spent; exit 1 when no kernel passed."""
    config = run_config(options)
    path = options.session or new_session_path(config.problem)
    return _search(config, lambda: SessionStore.create(path, config), path, None, options.json)


def resume(options: argparse.Namespace) -> int:
    """Go on with a session, on the screen or (``--headless``) without."""
    if not options.headless:
        from ksearch_tui.headless.screen import resume_on_screen

        return resume_on_screen(options)
    store, tree = resume_state(options.file)
    with store:
        if store.repair:
            print(f"ksearch-tui: {store.repair}", file=sys.stderr)
        config = resumed_config(store.config, options)
        return _search(config, lambda: store, store.path, tree, options.json)


def _search(config: RunConfig, begin: Callable[[], SessionStore], path: Path, tree: Tree | None, as_json: bool) -> int:
    waiting: list[str] = []
    try:
        engine = asyncio.run(_drive(config, begin, tree, waiting.append))
    except KeyboardInterrupt:
        print(f"ksearch-tui: stopped; go on with: ksearch-tui resume {path}", file=sys.stderr)
        raise
    if waiting:
        print(f"ksearch-tui: nothing is lost; go on with: ksearch-tui resume {path}", file=sys.stderr)
    summary = run_summary(config, engine.tree, path)
    print(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary)))
    return 0 if summary["best"] and engine.failure is None and not waiting else 1


async def _drive(
    config: RunConfig, begin: Callable[[], SessionStore], tree: Tree | None, on_waiting: Callable[[str], None]
) -> Engine:
    """Run the engine to its end; every event is on disk before it is told.

    A session is begun only when its proposer can be asked. As nobody is there to end a pause, one by the engine stops
    the run, and ``on_waiting`` is told why.
    """
    engine = await open_run(config, tree=tree, memory=endpoint_memory())

    def end_pause(event: Event) -> None:
        if event.kind == "paused" and event["by"] == ENGINE:
            on_waiting(event["reason"])
            engine.stop(event["reason"])

    with begin() as store, StatusLine(sys.stderr) as status:
        print(f"ksearch-tui: session {store.path}", file=sys.stderr)
        engine.subscribe(store.append)
        engine.subscribe(lambda event: _tell(event, engine, status))
        engine.subscribe(end_pause)
        engine.on_progress(lambda option, stage: status.show(one_line(f"{engine.tree[option].title}: {stage}")))
        engine.on_text(_growing_reply(status))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, engine.stop, "terminated")
        engine.set_autopilot(True)
        await engine.run()
    return engine


def _growing_reply(status: StatusLine) -> Callable[[Question, str, bool], None]:
    """Return what shows how far a reply has come, as a model may write for minutes."""
    latest: Question | None = None
    length = 0

    def show(question: Question, piece: str, thought: bool) -> None:
        nonlocal latest, length
        length = len(piece) + (length if question is latest else 0)
        latest = question
        status.show(f"  {one_line(question.model)}: {question.call}, {length} characters so far")

    return show


def _tell(event: Event, engine: Engine, status: StatusLine) -> None:
    if sentence := narrate(event, engine.tree):
        status.clear()
        print(sentence, file=sys.stderr, flush=True)
