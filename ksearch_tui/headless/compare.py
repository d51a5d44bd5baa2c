"""``ksearch-tui compare``: sessions side by side, so that what a model, or a context level, is worth can be seen."""

from __future__ import annotations

import argparse
import json
import sys

from ksearch_tui.inert import one_line
from ksearch_tui.wording import times
from search.tree import Tree, TreeError
from sessions.comparison import Comparison, Row, compare, course
from sessions.store import SessionError, read_session

_TITLES = {"evaluations": "evaluations", "tokens": "tokens of models", "usd": "US dollars"}


def compare_sessions(options: argparse.Namespace) -> int:
    """Print the comparison of the session files."""
    courses = []
    for path in options.files:
        session = read_session(path)
        if session.repair:
            print(f"ksearch-tui: {session.repair}", file=sys.stderr)
        try:
            courses.append(course(path.name, session.config, Tree.fold(session.events)))
        except TreeError as error:
            raise SessionError(f"'{path}' can't be compared: {error}") from error
    found = compare(courses)
    print(json.dumps(found.to_json(), indent=2) if options.json else "\n".join(_lines(found)))
    return 0


def _lines(found: Comparison) -> list[str]:
    width = max(len("setting"), *(len(row.setting.label) for row in found.rows))
    lines = [
        f"{one_line(found.problem)}: speedups over the first program of {one_line(found.base)} ({found.times}); "
        "medians where a setting has several sessions"
    ]
    for spent, steps in found.steps.items():
        if steps:
            head = "".join(f"{f'{step:,.10g}':>10}" for step in steps)
            lines += ["", f"best speedup within so many {_TITLES[spent]}", f"  {'setting':<{width}}{head}"]
            lines += [f"  {_label(row, width)}{_cells(row, spent)}" for row in found.rows]
    columns = ("sessions", "best", "evals", "tokens", "USD", "malformed", "minutes")
    lines += ["", "in all", f"  {'setting':<{width}}" + "".join(f"{column:>10}" for column in columns)]
    return [*lines, *(f"  {_label(row, width)}{_totals(row)}" for row in found.rows)]


def _label(row: Row, width: int) -> str:
    return f"{one_line(row.setting.label):<{width}}"


def _cells(row: Row, spent: str) -> str:
    return "".join(f"{times(speedup):>10}" for speedup in row.after[spent].values())


def _totals(row: Row) -> str:
    usd = "?" if row.usd is None else f"{row.usd:.4f}"
    figures = (
        str(len(row.sessions)),
        times(row.best),
        f"{row.evaluations:g}",
        f"{'~' if row.estimated else ''}{row.tokens:,.0f}",
        usd,
        f"{row.malformed:g}",
        f"{row.minutes:.1f}",
    )
    return "".join(f"{figure:>10}" for figure in figures)
