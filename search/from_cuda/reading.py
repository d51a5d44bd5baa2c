"""A CUDA file read: what is in it, how it is launched, and what the writer makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translator.cuda_source import CudaSource, parse_cuda
from translator.inventory import Inventory, take_inventory
from translator.launch_plan import LaunchPlan, Question
from translator.launches import answered_plan, launch_from_text
from translator.metal_writer import write_metal
from translator.mistakes import CudaInputError, decode_cuda
from translator.translation import Translation


@dataclass(frozen=True)
class Reading:
    """What was read, with which answers; ``translation`` is None while questions are open."""

    path: Path
    kernel: str | None
    answers: Mapping[str, str]
    source: CudaSource = field(repr=False)
    inventory: Inventory = field(repr=False)
    plan: LaunchPlan
    translation: Translation | None

    @property
    def complete(self) -> bool:
        """Whether there is a program."""
        return self.translation is not None and not self.translation.refusals

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is open; what follows from an open launch size isn't among it."""
        return self.plan.questions

    def evidence(self, question: Question) -> str:
        """Return the line of the source that a question is about, as ``FILE:LINE: TEXT``."""
        lines = self.source.text.splitlines()
        text = lines[question.span.line - 1].strip() if 0 < question.span.line <= len(lines) else ""
        return f"{self.path.name}:{question.span.line}: {text}"


def read_cuda(path: Path, kernel: str | None, answers: Mapping[str, str]) -> Reading:
    """Read ``path`` and translate what it launches, around ``kernel`` when one is named.

    Raises `CudaInputError` for what can't be read at all, or an answer that is for nothing.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CudaInputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise CudaInputError(f"{path} is a folder; give a CUDA file") from None
    except OSError as error:
        raise CudaInputError(f"{path}: {error.strerror}") from error
    source = parse_cuda(decode_cuda(content, str(path)), str(path))
    plan = answered_plan(source, kernel, answers)
    _require_whole(source, plan)
    translation = None if plan.questions else write_metal(source, plan)
    return Reading(path, kernel, dict(answers), source, take_inventory(source), plan, translation)


def read_answers(texts: Sequence[str]) -> dict[str, str]:
    """Return answers from texts such as ``grid=ceildiv(n,256) block=256``; raise `CudaInputError` for another form."""
    given: dict[str, str] = {}
    for text in texts:
        given |= launch_from_text(text)
    return given


def _require_whole(source: CudaSource, plan: LaunchPlan) -> None:
    """Raise `CudaInputError` for a file that breaks off inside the code that something has to be known of."""
    end = len(source.text.rstrip())
    cut = next((d for d in source.diagnostics if d.span.end >= end and d.code == "C002"), None)
    if cut is not None and plan.questions:
        raise CudaInputError(
            f"{source.path}:{cut.span.line}: the file breaks off inside a function; is it whole? "
            "Check that every brace and '#if' is closed"
        )
