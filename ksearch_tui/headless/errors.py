"""Which errors are a person's to mend, and how they are said; any other is a bug and keeps its traceback."""

from __future__ import annotations

from profiles.hardware import ProfileError
from search.devices.base import DeviceUnavailable
from search.engine import EngineError
from search.evaluation.client import EvaluatorError
from search.kernels.program import ProgramError
from search.problems.definition import ProblemError
from search.proposers.base import ProposerError
from search.tree import TreeError
from sessions.store import SessionError

FAILED, USAGE = 1, 2

_MENDABLE = (
    DeviceUnavailable,
    EngineError,
    EvaluatorError,
    ProgramError,
    ProposerError,
    SessionError,
    TreeError,
)


class CommandError(Exception):
    """A command can't do what was asked; ``code`` is the exit code (1 the work failed, 2 wrong usage)."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def explain(error: Exception) -> tuple[int, str | None]:
    """Return the exit code and the sentence for ``error``; the sentence is None when it is a bug of ours."""
    # Imported here: the parser that it comes with is no part of the app's first paint.
    from translator.mistakes import CudaInputError

    if isinstance(error, CommandError):
        return error.code, str(error)
    if isinstance(error, ProblemError | ProfileError | CudaInputError):
        return USAGE, str(error)
    if isinstance(error, _MENDABLE):
        return FAILED, str(error)
    if isinstance(error, OSError) and error.filename:
        return FAILED, f"{error.filename}: {error.strerror}"
    return FAILED, None
