"""Claim: the explorer and the start screen are painted within a second of the process's start.

Whole processes in a pseudo-terminal of 160×50, until the line that names the run, the frame of the options and the row
of tabs are painted. Writes first_paint.toml: ``python benchmarks/first_paint.py``.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from machine import record
from terminal import Terminal

ROUNDS = 9
LIMIT_SECONDS = 1.0


def seconds_to_paint(arguments: list[str], *texts: str) -> float:
    """Return the seconds from the start of the process until all ``texts`` are painted."""
    terminal = Terminal(arguments)
    try:
        return terminal.wait_for(*texts) - terminal.started
    finally:
        terminal.close()


def main() -> int:
    """Measure, write the result, and return 1 when the claim doesn't hold."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        explorer, start = [], []
        for number in range(ROUNDS):
            session = str(Path(folder) / f"{number}.ksearch.toml")
            explore = ["explore", "attention_prefill", "--device", "simulator", "--session", session]
            explorer.append(seconds_to_paint(explore, "attention_prefill", "Options", "Activity"))
            start.append(seconds_to_paint([], "A new search", "attention_prefill"))
    record(
        __file__,
        {
            "explorer_median_seconds": statistics.median(explorer),
            "explorer_slowest_seconds": max(explorer),
            "start_median_seconds": statistics.median(start),
            "start_slowest_seconds": max(start),
            "rounds": ROUNDS,
            "limit_seconds": LIMIT_SECONDS,
        },
    )
    return 0 if statistics.median(explorer) < LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
