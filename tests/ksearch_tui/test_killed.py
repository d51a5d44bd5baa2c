"""The program killed at random moments: what it had told is on disk, and the run goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from search.tree import Tree
from sessions.store import read_session

BEGIN = ("run", "softmax", "--device", "simulator", "--budget", "1000", "--session")
GO_ON = ("resume", "--headless")


def killed_after(seconds: float, arguments: list[str], home: Path) -> list[str]:
    """Start the program, kill it and all it started after ``seconds``; return the lines that it had printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ksearch_tui.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(home)},
        start_new_session=True,
    )
    try:
        _, narration = process.communicate(timeout=seconds)
        raise AssertionError(f"the run ended by itself: {narration}")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, narration = process.communicate()
    # The last line may be torn; those before it were told after their events were on disk.
    return narration.split("\n")[:-1]


@pytest.mark.parametrize("kills", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_run_loses_at_most_the_event_being_written(kills: int, tmp_path: Path) -> None:
    session = tmp_path / "s.ksearch.toml"
    chance = random.Random(kills)
    known: list = []
    for kill in range(kills):
        arguments = [*GO_ON, str(session)] if session.exists() else [*BEGIN, str(session)]
        told = killed_after(chance.uniform(0.3, 2.5), arguments, tmp_path)
        if not session.exists():
            assert not any("started" in line for line in told)
            continue
        events = read_session(session).events
        assert events[: len(known)] == known, f"kill {kill}: recorded events changed"
        Tree.fold(events)
        evaluated = [line for line in told if " passed " in line and " cases" in line]
        assert len(evaluated) <= sum(event.kind == "evaluated" for event in events[len(known) :]), f"kill {kill}"
        known = events
    assert len(known) > kills

    done = subprocess.run(
        [sys.executable, "-m", "ksearch_tui.cli", "replay", str(session), "--headless", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"] == sum(event.kind == "evaluated" for event in known)
