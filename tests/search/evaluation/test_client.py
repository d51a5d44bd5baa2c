"""The process that evaluates, from outside: starting, failing, being killed, being cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from search.evaluation.client import EvaluatorError, EvaluatorProcess
from search.evaluation.limits import Limits

CENTRE = str(Path(__file__).parent / "centre")
ENDLESS = "for (uint i = 1; i != 0; i |= 1) { y[0] = T(i); }"


@pytest.fixture
async def evaluator() -> AsyncIterator[EvaluatorProcess]:
    """An evaluator of `centre` on the simulator, closed after the test."""
    evaluator = EvaluatorProcess(CENTRE, "simulator", "apple-m3-max")
    yield evaluator
    await evaluator.close()


def group_of(worker: int) -> set[int]:
    """Return the ids of the worker and of what it started, zombies included: they all stay in its process group."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,pgid="], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
    return {pid for pid, group in rows if group == worker}


async def until(condition, seconds: float = 10.0) -> None:
    """Wait for ``condition`` to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("problem", "device", "profile", "message"),
    [
        ("softmux", "simulator", "apple-m3-max", "did you mean 'softmax'"),
        ("softmax", "simulator", "apple-m3-mix", "did you mean 'apple-m3-max'"),
        ("softmax", "abacus", "apple-m3-max", "unknown device 'abacus': there are metal, simulator"),
    ],
)
async def test_what_can_not_be_served_is_said_in_a_sentence(program, problem, device, profile, message):
    evaluator = EvaluatorProcess(problem, device, profile)
    for _ in range(2):
        with pytest.raises(EvaluatorError, match=message):
            await evaluator.evaluate(program(), lambda text: None)
    await evaluator.close()


async def test_a_worker_that_cannot_start_says_why(program, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named numpy' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(EvaluatorError, match=r"did not start: exit code 1 \(No module named numpy\)"):
        await EvaluatorProcess(CENTRE, "simulator", "apple-m3-max").evaluate(program(), lambda text: None)


async def test_a_program_is_judged_with_progress_on_the_way(evaluator, program):
    told: list[str] = []
    found = await evaluator.evaluate(program(), told.append)
    assert found.failure is None
    assert found.program == program().sha256
    assert (told[0], told[-1]) == ("compiling", "timing 1/1 wide")


async def test_the_same_worker_serves_the_next_program(evaluator, program, source):
    await evaluator.evaluate(program("y[0] = nothing;"), lambda text: None)
    before = evaluator.pid
    found = await evaluator.evaluate(program(source.replace("* gain", "")), lambda text: None)
    assert found.failure.stage == "correctness"
    assert evaluator.pid == before


async def test_a_worker_killed_from_outside_fails_the_evaluation_and_is_replaced(evaluator, program, source):
    killed = []

    def kill(text: str) -> None:
        if text.startswith("checking 1/"):
            killed.append(evaluator.pid)
            os.kill(evaluator.pid, signal.SIGKILL)

    found = await evaluator.evaluate(program(source + ENDLESS), kill)
    assert found.failure.stage == "crash"
    assert "signal SIGKILL while checking 1/" in found.failure.message
    await until(lambda: not group_of(killed[0]))  # its children are reaped by init, a moment later
    assert (await evaluator.evaluate(program(), lambda text: None)).passed


async def test_a_worker_that_ended_while_idle_is_replaced(evaluator, program):
    await evaluator.evaluate(program(), lambda text: None)
    worker = evaluator.pid
    os.kill(worker, signal.SIGKILL)
    await until(lambda: not group_of(worker))
    assert (await evaluator.evaluate(program(), lambda text: None)).passed


async def test_cancelling_kills_the_worker_and_what_it_started(evaluator, program, source):
    checking = asyncio.Event()

    def note(text: str) -> None:
        if text.startswith("checking"):
            checking.set()

    task = asyncio.create_task(evaluator.evaluate(program(source + ENDLESS), note))
    await checking.wait()
    worker = evaluator.pid
    await until(lambda: len(group_of(worker)) > 1)  # the kernel runs in a process of its own
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert evaluator.pid == 0
    await until(lambda: not group_of(worker), 2.0)
    assert (await evaluator.evaluate(program(), lambda text: None)).passed


async def test_an_evaluation_that_takes_too_long_is_ended(program, source):
    evaluator = EvaluatorProcess(CENTRE, "simulator", "apple-m3-max", limits=Limits(run=30, evaluation=3.0))
    workers = set()
    found = await evaluator.evaluate(program(source + ENDLESS), lambda text: workers.add(evaluator.pid))
    assert found.failure.stage == "timeout"
    assert found.failure.message.startswith("not finished after 3 s, while checking 1/")
    (worker,) = workers
    await until(lambda: not group_of(worker), 2.0)


async def test_closing_leaves_no_process_behind(evaluator, program):
    await evaluator.evaluate(program(), lambda text: None)
    worker = evaluator.pid
    assert group_of(worker) == {worker}
    await evaluator.close()
    assert not group_of(worker)


async def test_an_interrupt_in_the_terminal_does_not_reach_the_worker(evaluator, program):
    await evaluator.evaluate(program(), lambda text: None)
    assert os.getpgid(evaluator.pid) == evaluator.pid
    os.kill(evaluator.pid, signal.SIGINT)
    before = evaluator.pid
    assert (await evaluator.evaluate(program(), lambda text: None)).passed
    assert evaluator.pid == before


async def test_a_worker_whose_client_is_gone_ends_with_everything_it_started(program, source, tmp_path):
    """The client is killed outright in the middle of an endless kernel."""
    client = tmp_path / "client.py"
    client.write_text(
        "import asyncio, sys\n"
        "from search.evaluation.client import EvaluatorProcess\n"
        "from search.kernels.program import Program\n"
        f"evaluator = EvaluatorProcess({CENTRE!r}, 'simulator', 'apple-m3-max')\n"
        "def note(text): print(text, evaluator.pid, flush=True)\n"
        "asyncio.run(evaluator.evaluate(Program.from_json(sys.argv[1]), note))\n"
    )
    command = [sys.executable, str(client), program(source + ENDLESS).to_json()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    worker = 0
    while not worker:
        line = process.stdout.readline().split()
        worker = int(line[-1]) if line[0] == "checking" else 0
    process.kill()
    process.communicate()

    await until(lambda: not group_of(worker))
