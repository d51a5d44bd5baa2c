"""``ksearch-tui run`` and ``ksearch-tui resume --headless``: the search without a screen, under autopilot."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from dataclasses import replace

from ksearch_tui.headless.progress import StatusLine
from ksearch_tui.headless.settings import run_config
from ksearch_tui.headless.summary import run_summary, summary_lines
from ksearch_tui.narration import narrate
from ksearch_tui.paths import new_session_path
from search.assembly import open_run
from search.config import RunConfig
from search.engine import Engine
from search.events import Event
from search.tree import Tree
from sessions.resume import resume_state
from sessions.store import SessionStore


def run(options: argparse.Namespace) -> int:
    """Search until the budget is spent; exit 1 when no kernel passed."""
    config = run_config(options)
    path = options.session or new_session_path(config.problem)
    with SessionStore.create(path, config) as store:
        return _search(config, store, None, options.json)


def resume(options: argparse.Namespace) -> int:
    """Go on with a session, on the screen or (``--headless``) without."""
    if not options.headless:
        from ksearch_tui.headless.screen import resume_on_screen

        return resume_on_screen(options.file, options.budget)
    store, tree = resume_state(options.file)
    with store:
        if store.repair:
            print(f"ksearch-tui: {store.repair}", file=sys.stderr)
        config = replace(store.config, budget=options.budget or store.config.budget)
        return _search(config, store, tree, options.json)


def _search(config: RunConfig, store: SessionStore, tree: Tree | None, as_json: bool) -> int:
    print(f"ksearch-tui: session {store.path}", file=sys.stderr)
    try:
        engine = asyncio.run(_drive(config, store, tree))
    except KeyboardInterrupt:
        print(f"ksearch-tui: stopped; go on with: ksearch-tui resume {store.path}", file=sys.stderr)
        raise
    summary = run_summary(config, engine.tree, store.path)
    print(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary)))
    return 0 if summary["best"] and engine.failure is None else 1


async def _drive(config: RunConfig, store: SessionStore, tree: Tree | None) -> Engine:
    """Run the engine to its end; every event is on disk before it is told."""
    engine = await open_run(config, tree=tree)
    with StatusLine(sys.stderr) as status:
        engine.subscribe(store.append)
        engine.subscribe(lambda event: _tell(event, engine, status))
        engine.on_progress(lambda option, stage: status.show(f"  {engine.tree[option].title}: {stage}"))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, engine.stop, "terminated")
        engine.set_autopilot(True)
        await engine.run()
    return engine


def _tell(event: Event, engine: Engine, status: StatusLine) -> None:
    if sentence := narrate(event, engine.tree):
        status.clear()
        print(sentence, file=sys.stderr, flush=True)
