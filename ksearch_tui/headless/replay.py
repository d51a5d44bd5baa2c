"""``ksearch-tui replay``: a session again, on the screen or as lines."""

from __future__ import annotations

import argparse
import json
import sys
import time

from ksearch_tui.headless.settings import session_file
from ksearch_tui.headless.summary import run_summary, summary_lines
from ksearch_tui.narration import narrate
from sessions.replay import Replay
from sessions.store import read_session


def replay(options: argparse.Namespace) -> int:
    """Play the events of a session; nothing is run again and no network is needed."""
    path = session_file(options.session)
    if not (options.headless or options.json):
        from ksearch_tui.headless.screen import replay_on_screen

        return replay_on_screen(path, options.speed or 1.0, paused=options.step)
    session = read_session(path)
    if session.repair:
        print(f"ksearch-tui: {session.repair}", file=sys.stderr)
    playing = Replay(session.events)
    narration = sys.stderr if options.json else sys.stdout
    while playing.position < len(session.events):
        if options.step and sys.stdin.isatty():
            input()
        elif options.speed:
            time.sleep(playing.delay(options.speed))
        event = playing.step()
        if event is not None and (sentence := narrate(event, playing.tree)):
            print(f"{event.at[11:19]}  {sentence}", file=narration, flush=True)
    summary = run_summary(session.config, playing.tree, path)
    print(json.dumps(summary, indent=2) if options.json else "\n".join(["", *summary_lines(summary)]))
    return 0
