"""The program of the option under the cursor, as the Mapping tab sets it beside the CUDA."""

from __future__ import annotations

from dataclasses import dataclass

from ksearch_tui.widgets.look import Look
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.tree import TreeError


@dataclass(frozen=True)
class Candidate:
    """A program and why its last evaluation failed; without a program, ``missing`` says why there is none."""

    program: Program | None = None
    failure: Failure | None = None
    missing: str = ""


def candidate_of(look: Look) -> Candidate:
    """Return the program of the look's option."""
    option = look.option
    if option is None:
        return Candidate(missing="There is no option yet.")
    if not option.program:
        return Candidate(missing="Not written yet: approving the option has it written and evaluated.")
    try:
        program = look.tree.program(option.program)
    except TreeError as error:
        return Candidate(missing=str(error))
    return Candidate(program, option.evaluations[-1].failure if option.evaluations else None)
