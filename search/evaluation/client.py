"""Evaluation in a process of its own: a kernel that crashes, hangs or eats memory can't take the program along."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from typing import IO, Any, Protocol

from search.evaluation.limits import DEFAULT_LIMITS, Limits
from search.evaluation.record import FAILED, Evaluation, Failure
from search.kernels.program import Program

_LINE_LIMIT = 1 << 24
_GRACE_SECONDS = 1.0


class EvaluatorError(RuntimeError):
    """Nothing can be evaluated, through no fault of the program; the message says what is missing or broken."""


class Evaluator(Protocol):
    """What judges programs for the engine."""

    async def evaluate(self, program: Program, progress: Callable[[str], None]) -> Evaluation:
        """Judge ``program``, telling ``progress`` each stage; raise `EvaluatorError` when that isn't possible."""

    async def close(self) -> None:
        """Release the process behind it."""


class EvaluatorProcess:
    """An evaluator that keeps one worker process and starts it anew when it crashed, hung or was cancelled.

    ``problem``, ``device`` and ``profile`` are names, as on the command line. Evaluations run one after the other.
    """

    def __init__(self, problem: str, device: str, profile: str, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._setup = (problem, device, profile)
        self._limits = limits
        self._worker: Process | None = None
        self._errors: IO[bytes] | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int:
        """The worker's process id, 0 when there is none."""
        return self._worker.pid if self._worker else 0

    async def evaluate(self, program: Program, progress: Callable[[str], None]) -> Evaluation:
        """Judge ``program`` in the worker; cancelling kills the worker and everything it started."""
        stage = "starting"

        def note(text: str) -> None:
            nonlocal stage
            stage = text
            progress(text)

        async with self._turn:
            verdict, ending = None, ""
            try:
                async with asyncio.timeout(self._limits.evaluation):
                    verdict = await self._ask(program, note)
            except TimeoutError:
                message = f"not finished after {self._limits.evaluation:g} s, while {stage}"
                return self._failed(program, "timeout", message)
            finally:
                if verdict is None:
                    ending = await self._kill()
            return verdict or self._failed(program, "crash", f"the evaluation ended by {ending} while {stage}")

    async def close(self) -> None:
        """End the worker: by closing its pipe, which lets it tidy up, or by force."""
        if self._worker is not None and self._worker.stdin is not None:
            self._worker.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._worker.wait()
        await self._kill()

    async def _ask(self, program: Program, progress: Callable[[str], None]) -> Evaluation | None:
        """Return the worker's verdict, or None when the worker died."""
        heard = False

        def note(text: str) -> None:
            nonlocal heard
            heard = True
            progress(text)

        waiting = self._worker
        verdict = await self._converse(waiting or await self._start(), program, note)
        if verdict is None and waiting is not None and not heard:
            # It had ended between two evaluations, which is no fault of this program.
            await self._kill()
            verdict = await self._converse(await self._start(), program, progress)
        return verdict

    async def _converse(self, worker: Process, program: Program, progress: Callable[[str], None]) -> Evaluation | None:
        assert worker.stdin is not None
        # The same program always meets the same inputs, and another program other ones.
        seed = int(program.sha256[:8], 16)
        request = {"program": program.to_json(), "seed": seed, "limits": asdict(self._limits)}
        worker.stdin.write(json.dumps(request).encode() + b"\n")
        with contextlib.suppress(ConnectionError):  # the other end is gone: reading its replies tells
            await worker.stdin.drain()
        while (message := await _read(worker)) is not None:
            if "progress" in message:
                progress(message["progress"])
            elif "result" in message:
                return Evaluation.from_fields(message["result"])
            else:
                raise EvaluatorError(message["error"])
        return None

    async def _start(self) -> Process:
        """Start the worker; raise `EvaluatorError` when it can't serve."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _kill
        self._worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the folder a person happens to be in must not shadow our packages
            "-m",
            "search.evaluation.worker",
            *self._setup,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            limit=_LINE_LIMIT,
            start_new_session=True,  # Ctrl-C in the terminal is the app's to handle; one kill reaches all it started
        )
        message = await _read(self._worker)
        if message is None:
            raise EvaluatorError(f"the evaluation process did not start: {await self._kill()}")
        if "error" in message:
            raise EvaluatorError(message["error"])
        return self._worker

    async def _kill(self) -> str:
        """Kill the worker and everything it started; return how it ended, in words."""
        worker, errors = self._worker, self._errors
        if worker is None or errors is None:
            return "nothing"
        self._worker = self._errors = None
        # macOS answers EPERM for a group whose leader has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        code = await worker.wait()
        with errors:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{how} ({said[-1][:200]})" if said else how

    def _failed(self, program: Program, stage: str, message: str) -> Evaluation:
        return Evaluation(
            program=program.sha256,
            outcome=FAILED,
            device=self._setup[1],
            kind="",
            on=self._setup[1],
            failure=Failure(stage, message),
            mlx_version=version("mlx"),
        )


async def _read(worker: Process) -> dict[str, Any] | None:
    """Return the worker's next message, or None when it has ended."""
    assert worker.stdout is not None
    line = await worker.stdout.readline()
    return json.loads(line) if line.endswith(b"\n") else None
