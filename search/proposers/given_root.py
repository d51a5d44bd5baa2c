"""The program that a problem itself gives a search to start from."""

from __future__ import annotations

from search.kernels.program import Program, ProgramError
from search.kernels.text import program_from_text
from search.problems.definition import Problem
from search.proposers.base import Proposal, ProposerError

GIVEN = "given"
"""The action of the option that stands for it."""


def given_option(problem: Problem) -> Proposal:
    """Return the option of the problem's own root program; raise `ProposerError` when it has none."""
    if problem.root is None:
        source = f" what {problem.cuda[0].name} computes" if problem.cuda else " it"
        raise ProposerError(
            f"the problem '{problem.name}' has no program to start from: write{source} as a Metal file "
            f'{problem.folder / "root.metal"} (see `ksearch-tui check --help`), and add root = "root.metal" to its '
            "problem.toml"
        )
    of = f" of {problem.cuda[0].name}" if problem.original is not None and problem.cuda else ""
    why = f"What {problem.root.name} has: every speedup is over this."
    return Proposal(f"the translation{of}" if of else "the given program", why, GIVEN, 5.0, 1.0, 1, 1.0)


def given_program(problem: Problem) -> Program:
    """Return the problem's own root program; raise `ProposerError` when it does not read."""
    assert problem.root is not None
    try:
        return program_from_text(problem.root.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ProgramError) as error:
        raise ProposerError(f"{problem.root}: {error}") from error
