"""The process that evaluates: requests as JSON lines on standard input, progress and results on standard output.

It is started by `search.evaluation.client` in a session of its own. Nothing else may write to the protocol's pipe: the
compilers' and MLX's C code print to standard output when they like, so that is pointed at standard error first.
When the pipe closes, the client is gone: the worker ends, with everything it started, even in the middle of a kernel.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, TextIO

from profiles.hardware import HardwareProfile, ProfileError, load_profile
from search.devices.base import Device, DeviceUnavailable
from search.devices.registry import open_device
from search.evaluation.judge import evaluate
from search.evaluation.limits import Limits
from search.kernels.program import Program
from search.problems.definition import Problem, ProblemError, load_problem

_GRACE_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Serve evaluations of one problem on one device until the pipe closes; ``arguments``: problem, device, profile."""
    replies = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    problem_name, device_name, profile_name = arguments
    try:
        problem, profile = load_problem(problem_name), load_profile(profile_name)
        device = open_device(device_name, profile)
    except (ProblemError, ProfileError, DeviceUnavailable) as error:
        _reply(replies, error=str(error))
        return 1
    _reply(replies, ready=device.describe())
    try:
        while (line := requests.get()) is not None:
            _serve(json.loads(line), problem, device, profile, replies)
    finally:
        device.close()
    return 0


def _read_requests(requests: queue.Queue[str | None]) -> None:
    for line in sys.stdin:
        requests.put(line)
    requests.put(None)
    threading.Event().wait(_GRACE_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _serve(
    request: dict[str, Any], problem: Problem, device: Device, profile: HardwareProfile, replies: TextIO
) -> None:
    try:
        evaluation = evaluate(
            Program.from_json(request["program"]),
            problem,
            device,
            profile,
            progress=lambda text: _reply(replies, progress=text),
            seed=request["seed"],
            limits=Limits(**request["limits"]),
        )
    except (ProblemError, DeviceUnavailable) as error:
        _reply(replies, error=str(error))
    else:
        _reply(replies, result=evaluation.to_fields())


def _reply(replies: TextIO, **message: Any) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
