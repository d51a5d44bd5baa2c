"""Claim: with 2,000 options in the tree and an evaluation running, a key is painted within 50 ms (95th percentile).

The real app in a pseudo-terminal of 160×50 goes on with a session of 2,000 options; autopilot has real evaluations run
on the simulator meanwhile. Each ``j`` is timed until the row of the next option is painted anew.
Writes key_latency.toml: ``python benchmarks/key_latency.py``.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from machine import record  # noqa: E402
from terminal import Terminal  # noqa: E402

from search.assembly import open_run  # noqa: E402
from search.config import RunConfig  # noqa: E402
from search.events import Event  # noqa: E402
from sessions.store import SessionStore, read_session  # noqa: E402

OPTIONS = 2_000
GROUP = 20
KEYS = 200
PAUSE_SECONDS = 0.05
LIMIT_SECONDS = 0.050


def title(number: int) -> str:
    """Return the title of an added option, which nothing else on the screen contains."""
    return f"variant-{number:04}"


async def record_session(path: Path) -> None:
    """Record a run whose naive kernel is proven, with what the catalogue proposes and 2,000 more options."""
    config = RunConfig("softmax", "simulator", "apple-m3-max", "catalogue", budget=10_000)
    engine = await open_run(config)
    running = asyncio.create_task(engine.run())
    while not engine.tree.frontier() or not engine.tree.evaluations:
        await asyncio.sleep(0.1)
    recorded = list(engine.tree.events)
    engine.stop("recorded")
    await running
    with SessionStore.create(path, config) as store:
        for event in recorded:
            store.append(event)
        for number in range(OPTIONS):
            store.append(added(len(recorded) + number + 1, number, engine.tree.root))


def added(seq: int, number: int, root: str) -> Event:
    """Return the event that adds option ``number``: every twentieth under the root, the others under that."""
    group = number - number % GROUP
    data = {
        "option": f"variant{number}",
        "parent": root if number == group else f"variant{group}",
        "title": title(number),
        "why": "One of many, to fill the tree.",
        "action": f"variant {number}",
        "rating": 1.0,
        "confidence": 0.9,
        "difficulty": 5,
        "predicted": 1.0,
        "by": "catalogue",
        "origin": 0,
    }
    return Event(seq, datetime.now(UTC).isoformat(), "option_added", data)


def latencies(path: Path) -> list[float]:
    """Return the seconds from each key to its repaint."""
    terminal = Terminal(["resume", str(path)])
    try:
        terminal.wait_for(title(0), "your turn")
        terminal.press("A")
        terminal.wait_for("compiling")
        terminal.press("/")
        terminal.wait_for("find an option")
        for character in title(0):
            terminal.press(character)
        time.sleep(0.5)
        terminal.press("\x1b")
        time.sleep(0.5)
        found = []
        for number in range(1, KEYS + 1):
            pressed = terminal.press("j")
            found.append(terminal.wait_for(title(number)) - pressed)
            time.sleep(PAUSE_SECONDS)
        return found
    finally:
        terminal.close()


def evaluations(path: Path) -> int:
    """Return how many evaluations the session at ``path`` has."""
    return sum(event.kind == "evaluated" for event in read_session(path).events)


def main() -> int:
    """Measure, write the result, and return 1 when the claim doesn't hold."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        path = Path(folder) / "big.ksearch.toml"
        asyncio.run(record_session(path))
        before = evaluations(path)
        found = latencies(path)
        ended = evaluations(path) - before
    percentile = statistics.quantiles(found, n=20)[-1]
    record(
        __file__,
        {
            "options": OPTIONS,
            "keys": KEYS,
            "evaluations_ended_meanwhile": ended,
            "median_seconds": statistics.median(found),
            "percentile_95_seconds": percentile,
            "slowest_seconds": max(found),
            "limit_seconds": LIMIT_SECONDS,
        },
    )
    return 0 if percentile < LIMIT_SECONDS and ended else 1


if __name__ == "__main__":
    sys.exit(main())
