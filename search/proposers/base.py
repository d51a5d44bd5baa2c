"""What the engine asks of a proposer: options for the tree, and programs for approved options.

A proposer never writes an evaluation, an id or a status; those come from the engine. Every proposer is a `Proposer`;
what only some can do besides stands in protocols of its own, and the engine asks for it where it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from profiles.hardware import HardwareProfile
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.problems.definition import Problem
from search.tree import Tree

if TYPE_CHECKING:
    from search.calls import Calls


class ProposerError(RuntimeError):
    """The proposer can't do what was asked; the message says why and what a person can do."""


class NothingForNow(ProposerError):
    """Nothing at all can be asked of the proposer now, so no option is to blame: what was begun waits."""


class ProposerUnavailable(NothingForNow):
    """The proposer can't be reached, or refuses everything, until a person or time has mended it: the run pauses."""


class BudgetSpent(NothingForNow):
    """Asking would pass a limit of the run, which stops with this message."""


class BrokenOff(NothingForNow):
    """A person broke the question off; the run pauses, so that it isn't asked again at once."""


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

    ``avoid`` names actions that the guidance rules out under this option, ``closes`` options there that it rules out.
    """

    proposals: tuple[Proposal, ...] = ()
    avoid: tuple[str, ...] = ()
    question: str = ""
    choices: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """A new rating and confidence of an open option, and why."""

    option: str
    rating: float
    confidence: float
    why: str


@dataclass(frozen=True)
class Refinement:
    """What a proposer changes in the tree after a result: all of it is done, or nothing.

    ``inserts`` are new options with the option that they stand under, ``splits`` an open option with those that take
    its place, ``closes`` an open option with the reason why it isn't worth trying any more.
    """

    ratings: tuple[Judgement, ...] = ()
    inserts: tuple[tuple[str, Proposal], ...] = ()
    splits: tuple[tuple[str, tuple[Proposal, ...]], ...] = ()
    closes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Situation:
    """What a proposer may look at: the problem, the hardware the kernel is for, and the tree so far.

    ``hints`` are the patterns that the problem's CUDA references use, each with the place that shows it, such as
    ``{"shuffle": "softmax.cu:41 __shfl_xor_sync"}`` (names: `translator.inventory.PATTERNS`). Questions to a model go
    through ``calls``, None outside of a run.
    """

    problem: Problem
    profile: HardwareProfile
    tree: Tree
    hints: Mapping[str, str] = field(default_factory=dict)
    calls: Calls | None = None


class Proposer(Protocol):
    """Suggests options and writes programs."""

    @property
    def name(self) -> str:
        """Who proposes, as events say it."""

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


@runtime_checkable
class Improver(Protocol):
    """A proposer that can write an option that passed once more, better."""

    async def improve(self, situation: Situation, option: str) -> Program | None:
        """Return another program for ``option``, which has passed, or None when it sees no better way."""


@runtime_checkable
class Refiner(Protocol):
    """A proposer that changes its mind about the tree after a result."""

    async def refine(self, situation: Situation, option: str) -> Refinement:
        """Return what the result of ``option``, which has passed or failed, changes in the tree."""


@runtime_checkable
class Credited(Protocol):
    """A proposer whose programs are by someone else than its options."""

    def writer(self, situation: Situation, option: str) -> str:
        """Return who writes the program of ``option``."""


@runtime_checkable
class Connected(Protocol):
    """A proposer that holds connections."""

    async def ready(self) -> None:
        """Raise `ProposerUnavailable` when nothing can be asked, before a run begins."""

    async def close(self) -> None:
        """Let go of the connections; the next question makes new ones."""


def writer_of(proposer: Proposer, situation: Situation, option: str) -> str:
    """Return who writes the program of ``option``."""
    return proposer.writer(situation, option) if isinstance(proposer, Credited) else proposer.name
