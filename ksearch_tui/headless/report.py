"""``ksearch-tui report``: a session as one HTML page, to hand to someone who was not there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.headless.settings import session_file
from ksearch_tui.report.page import render
from search.problems.definition import Problem, ProblemError, load_problem
from sessions.report import gather
from sessions.store import read_session


def report(options: argparse.Namespace) -> int:
    """Write the page to ``--output``, or to stdout."""
    path = session_file(str(options.file))
    output: Path | None = options.output
    if output is not None and output.exists() and output.samefile(path):
        raise CommandError(f"'{output}' is the session itself: name another file for the report", USAGE)
    session = read_session(path)
    if session.repair:
        print(f"ksearch-tui: {session.repair}", file=sys.stderr)
    # The page says its encoding itself, whatever the terminal's is.
    page = render(gather(path.name, session, _problem(session.config.problem))).encode()
    if output is None:
        sys.stdout.buffer.write(page)
        return 0
    try:
        output.write_bytes(page)
    except OSError as error:
        raise CommandError(f"can't write {output}: {error.strerror}") from error
    print(f"wrote {output}", file=sys.stderr)
    return 0


def _problem(name: str) -> Problem | None:
    """Return the problem of a session; None where it isn't on this machine: a report can do without its words."""
    try:
        return load_problem(name)
    except (ProblemError, OSError, RuntimeError) as error:
        print(f"ksearch-tui: the report is without the problem's description: {error}", file=sys.stderr)
        return None
