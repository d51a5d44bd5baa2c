"""What the engine asks of a proposer: options for the tree, and programs for approved options.

A proposer never writes an evaluation, an id or a status; those come from the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from profiles.hardware import HardwareProfile
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.problems.definition import Problem
from search.tree import Tree


class ProposerError(RuntimeError):
    """The proposer can't do what was asked; the message says why and what a person can do."""


@dataclass(frozen=True)
class Proposal:
    """An option as proposed: rating 0..10, confidence 0..1, difficulty 1..5, ``predicted`` speedup over the parent.

    ``action`` is the catalogue's key for the transformation ("" when free text from a person or a model).
    """

    title: str
    why: str
    action: str
    rating: float
    confidence: float
    difficulty: int
    predicted: float


@dataclass(frozen=True)
class Redirection:
    """What a proposer makes of a person's guidance: options in its order, or a question with choices when unsure.

    ``avoid`` names actions that the guidance rules out under this option.
    """

    proposals: tuple[Proposal, ...] = ()
    avoid: tuple[str, ...] = ()
    question: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Situation:
    """What a proposer may look at: the problem, the hardware the kernel is for, and the tree so far.

    ``hints`` are the patterns that the problem's CUDA references use, each with the place that shows it, such as
    ``{"shuffle": "softmax.cu:41 __shfl_xor_sync"}`` (names: `translator.inventory.PATTERNS`).
    """

    problem: Problem
    profile: HardwareProfile
    tree: Tree
    hints: Mapping[str, str] = field(default_factory=dict)


class Proposer(Protocol):
    """Suggests options and writes programs."""

    name: str

    async def root(self, situation: Situation) -> Proposal:
        """Return the option that the tree starts from."""

    async def propose(self, situation: Situation, option: str) -> tuple[Proposal, ...]:
        """Return new options under ``option``; empty when there is nothing left to propose there."""

    async def redirect(self, situation: Situation, option: str, guidance: str) -> Redirection:
        """Return new options under ``option`` that follow ``guidance``, or a question."""

    async def write(self, situation: Situation, option: str) -> Program:
        """Return the program of ``option``, built on its parent's; raise `ProposerError` when it can't."""

    async def repair(self, situation: Situation, option: str, program: Program, failure: Failure) -> Program | None:
        """Return a program mended after ``failure``, or None when there is no other way to write it."""
