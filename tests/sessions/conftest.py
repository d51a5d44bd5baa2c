"""A small run whose figures a person chose: a root that passed, a child that failed, one that was pruned and undone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from search.events import Event
from search.kernels.program import Pass, Program
from search.tree import split_program

SOURCE = """\
// Don't let [[events]] or end = true within a line worry anyone.
uint row = thread_position_in_grid.x;
y[row] = "quoted\\\\" ? x[row] : 0;
"""


def numbered(happenings: Iterable[tuple[str, dict[str, Any]]]) -> list[Event]:
    """Return events in order, a second apart from midnight on."""
    return [
        Event(seq, f"2025-01-01T00:{seq // 60:02d}:{seq % 60:02d}.000Z", kind, data)
        for seq, (kind, data) in enumerate(happenings, start=1)
    ]


def option(name: str, parent: str, title: str) -> tuple[str, dict[str, Any]]:
    return "option_added", {
        "option": name,
        "parent": parent,
        "title": title,
        "why": "to see",
        "action": "",
        "rating": 6,
        "confidence": 0.5,
        "difficulty": 2,
        "predicted": 1.5,
        "by": "catalogue",
        "origin": 0,
    }


def evaluated(name: str, program: Program, seconds: dict[str, float], attempt: int = 1) -> tuple[str, dict[str, Any]]:
    """Return an evaluation that passed with a time for each workload, half of it the roofline."""
    times = list(seconds.values())
    return "evaluated", {
        "option": name,
        "attempt": attempt,
        "program": program.sha256,
        "outcome": "passed",
        "device": "simulator",
        "time_kind": "modelled",
        "on": "apple-m3-max",
        "cases": 11,
        "worst_error": 0.25,
        "compile_seconds": 0.5,
        "elapsed_seconds": 2.0,
        "mlx_version": "0.32.4",
        "workloads": list(seconds),
        "seconds": times,
        "low": times,
        "high": times,
        "roofline_seconds": [time / 2 for time in times],
        "baseline_seconds": [0.0 for _ in times],
        "bound_by": ["memory" for _ in times],
        "terms": ["memory=0.001" for _ in times],
    }


def stored(program: Program) -> list[tuple[str, dict[str, Any]]]:
    """Return the events that put a program into a run."""
    kernels, layout = split_program(program)
    return [
        *(("kernel", {"sha256": sha256, "text": text}) for sha256, text in kernels.items()),
        ("program", {"sha256": program.sha256, "layout": layout}),
    ]


def passed(name: str, program: Program, seconds: dict[str, float]) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of an approved option whose first attempt passes."""
    return [
        ("decided", {"option": name, "decision": "approve", "by": "autopilot", "policy_choice": name}),
        ("started", {"option": name, "attempt": 1}),
        *stored(program),
        ("wrote", {"option": name, "program": program.sha256, "attempt": 1, "by": "catalogue", "note": ""}),
        evaluated(name, program, seconds),
    ]


def one_pass(source: str) -> Program:
    return Program((Pass("rows", ("x",), ("y",), source, ("rows", "1", "1"), ("32", "1", "1")),))


@pytest.fixture
def run() -> list[Event]:
    """A run that uses most kinds of events, and an undo."""
    prune = ("decided", {"option": "o2", "decision": "prune", "by": "person", "policy_choice": "o3"})
    root = [option("o1", "", "naive"), *passed("o1", one_pass(SOURCE), {"tall": 0.004})]
    branches = [option("o2", "o1", "exp2 softmax"), option("o3", "o1", "unroll ×8")]
    seq_of_prune = len(root) + len(branches) + 1
    return numbered(
        [
            *root,
            *branches,
            prune,
            ("undone", {"target": seq_of_prune, "by": "person"}),
            (
                "rated",
                {"option": "o2", "rating": 8.5, "confidence": 0.9, "why": "naive is bound by exp", "by": "engine"},
            ),
            *passed("o2", one_pass(SOURCE + "// exp2\n"), {"tall": 0.002}),
            ("note", {"text": "a carriage\r\nreturn, a bell \x07, ünïcode 🙂", "level": "info", "option": ""}),
            ("stopped", {"reason": "the budget is spent"}),
        ]
    )


@pytest.fixture
def make_events() -> Any:
    """Number happenings as events, for tests that bring their own."""
    return numbered


@pytest.fixture
def building_blocks() -> Any:
    """The makers of events above, for tests that compose a run of their own."""
    return {"option": option, "passed": passed, "stored": stored, "numbered": numbered}
