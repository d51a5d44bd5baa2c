"""What a run has under way: one task of its own, so that it can be broken off while the run lives on."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from search.evaluation.client import EvaluatorError


class Work:
    """The task that a run has under way, if any."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def do(self, work: Coroutine[Any, Any, None]) -> BaseException | None:
        """Do ``work`` to its end, or until it is broken off; return what it raised, None if nothing or broken off."""
        task = self._task = asyncio.create_task(work)
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            self._task = None
        return None if task.cancelled() else task.exception()

    def break_off(self) -> None:
        """End what is under way, if anything is."""
        if self._task is not None:
            self._task.cancel()

    def go_on(self) -> None:
        """Raise `asyncio.CancelledError` when what is under way has been broken off, and has not noticed yet."""
        if self._task is not None and self._task.cancelling():
            raise asyncio.CancelledError


def told(error: Exception) -> str:
    """Return in words what ended a run that no proposer or kernel is meant to end, and where it was raised."""
    if isinstance(error, EvaluatorError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error, {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
