"""How long a session of 2,000 options takes to load: read, checked, and folded into a tree. The claim: under 2 s.

Run ``python benchmarks/session_load.py``; the figures go to ``session_load.toml``.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from machine import record

from search.config import RunConfig
from search.events import Event
from search.kernels.program import Pass, Program
from search.tree import Tree, split_program
from sessions.replay import Replay
from sessions.schema import write_event, write_header
from sessions.store import read_session

OPTIONS = 2_000
REPEATS = 5
LIMIT_SECONDS = 2.0
START = datetime(2025, 1, 1, tzinfo=UTC)


def program(number: int) -> Program:
    """Return a program of the size that the attention family writes: some 60 lines, 3 KB."""
    lines = [f"    score += (float)q[row * D + {d}u] * (float)k[key * D + {d}u];  // {number}" for d in range(48)]
    source = "\n".join(
        ["uint row = thread_position_in_grid.x / 32u;", "float score = 0.0f;", *lines, "o[row] = score;"]
    )
    return Program((Pass("attention", ("q", "k"), ("o",), source, ("32 * L", "H", "B"), ("32", "1", "1")),))


def evaluation(number: int, sha256: str) -> dict[str, Any]:
    """Return the flat fields of an evaluation that passed on three workloads."""
    seconds = [0.001 * (1 + number % 7), 0.002, 0.0135]
    return {
        "program": sha256,
        "outcome": "passed",
        "device": "simulator",
        "time_kind": "modelled",
        "on": "apple-m3-max",
        "cases": 9,
        "worst_error": 1.25e-5,
        "compile_seconds": 0.81,
        "elapsed_seconds": 4.2,
        "mlx_version": "0.32.4",
        "workloads": ["chat prompt", "image tokens", "tail"],
        "seconds": seconds,
        "low": seconds,
        "high": seconds,
        "roofline_seconds": [second / 3 for second in seconds],
        "baseline_seconds": [0.0, 0.0, 0.0],
        "bound_by": ["memory", "arithmetic", "memory"],
        "terms": ["memory=0.001 arithmetic=0.0004"] * 3,
    }


def happenings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a run of `OPTIONS` options records: eight options a parent, each tried once and passed."""
    for number in range(OPTIONS):
        option = f"o{number + 1}"
        candidate = program(number)
        kernels, layout = split_program(candidate)
        yield (
            "option_added",
            {
                "option": option,
                "parent": f"o{(number - 1) // 8 + 1}" if number else "",
                "title": f"K tile in threadgroup memory, variant {number}",
                "why": "each key is read once a threadgroup instead of once a row",
                "action": "k_tile",
                "rating": 7.5,
                "confidence": 0.7,
                "difficulty": 3,
                "predicted": 1.8,
                "by": "catalogue",
                "origin": 0,
            },
        )
        yield "decided", {"option": option, "decision": "approve", "by": "autopilot", "policy_choice": option}
        yield "started", {"option": option, "attempt": 1}
        for sha256, text in kernels.items():
            if text or not number:
                yield "kernel", {"sha256": sha256, "text": text}
        yield "program", {"sha256": candidate.sha256, "layout": layout}
        yield (
            "wrote",
            {"option": option, "program": candidate.sha256, "attempt": 1, "by": "catalogue", "note": ""},
        )
        yield "evaluated", {"option": option, "attempt": 1, **evaluation(number, candidate.sha256)}


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median wall time of `REPEATS` calls of ``work``."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    """Write such a session, load it, and keep the figures."""
    events = [
        Event(seq, (START + timedelta(seconds=seq)).isoformat(), kind, data)
        for seq, (kind, data) in enumerate(happenings(), start=1)
    ]
    text = write_header(RunConfig("attention_prefill"), START) + "".join(write_event(event) for event in events)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.ksearch.toml"
        path.write_text(text, encoding="utf-8")
        assert [event.data for event in read_session(path).events] == [event.data for event in events]
        load = median_seconds(lambda: Tree.fold(read_session(path).events))
        read = median_seconds(lambda: read_session(path))
        whole = median_seconds(lambda: tomllib.loads(text))
    replay = Replay(events)
    replay.seek(len(events))
    figures = {
        "options": OPTIONS,
        "events": len(events),
        "megabytes": len(text.encode()) / 1e6,
        "load_seconds": load,
        "of_that_reading_seconds": read,
        "tomllib_whole_file_seconds": whole,
        "replay_open_seconds": median_seconds(lambda: Replay(events)),
        "replay_back_seconds": median_seconds(replay.back),
        "limit_seconds": LIMIT_SECONDS,
    }
    record(__file__, figures)
    if load > LIMIT_SECONDS:
        raise SystemExit(f"loading took {load:.2f} s; the limit is {LIMIT_SECONDS} s")


if __name__ == "__main__":
    main()
