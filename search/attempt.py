"""One attempt at one option: write its program or mend it, evaluate it, and learn from what settles it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search.calibration import Calibration
from search.evaluation.client import Evaluator
from search.evaluation.record import Failure
from search.events import ENGINE, IMPROVE
from search.kernels.program import Program
from search.learning import Lesson, lessons
from search.option import Option
from search.proposers.base import Improver, NothingForNow, Proposer, ProposerError, Situation, writer_of
from search.tree import Tree, split_program


@dataclass(frozen=True)
class Bench:
    """What an attempt works with; ``emit`` records an event, ``tell`` says what is being done with an option.

    An option fails when the programs after the first ``repairs`` repairs have failed too.
    """

    situation: Situation
    proposer: Proposer
    evaluator: Evaluator
    repairs: int
    emit: Callable[..., Any]
    tell: Callable[[str, str], None]

    @property
    def tree(self) -> Tree:
        """The tree of the run."""
        return self.situation.tree


async def attempt(bench: Bench, option: str) -> None:
    """Make the next attempt at ``option``, which is approved.

    Everything is read from the tree, so an attempt that was broken off goes on where it stood: a program that was
    written and not evaluated is evaluated, a failure that was found is mended.
    """
    node = bench.tree[option]
    if _give_up_if_spent(bench, node):
        return
    number = node.attempts + 1
    bench.emit("started", option=option, attempt=number)
    if not node.unproven:
        try:
            program = await _write(bench, node)
        except NothingForNow:
            raise
        except ProposerError as error:
            _settle(bench, node, str(error) or "the proposer can't write it")
            return
        if program is None:
            return
        _wrote(bench, option, program, number, f"mends: {_told(node.failure)}" if node.failure else "")
    before = Calibration.of(bench.tree)
    if await _passes(bench, option, number):
        _learn(bench, option, before)
    else:
        _give_up_if_spent(bench, bench.tree[option])


async def improve(bench: Bench, option: str) -> None:
    """Ask for a faster program of ``option``, which has passed, and judge it, if there is one.

    The fastest program stays, whatever comes of this one.
    """
    proposer = bench.proposer
    if not isinstance(proposer, Improver):
        return
    bench.tell(option, "looking for a faster program")
    try:
        program = await proposer.improve(bench.situation, option)
    except NothingForNow:
        raise
    except ProposerError as error:
        bench.emit("note", text=f"no faster program: {error}", level="warning", option=option, about=IMPROVE)
        return
    node = bench.tree[option]
    if program is None or program.sha256 in {evaluation.program for evaluation in node.evaluations}:
        bench.emit("note", text="no faster program was found", level="info", option=option, about=IMPROVE)
        return
    number, before = node.attempts + 1, bench.tree.speedup(option)
    bench.emit("started", option=option, attempt=number, improves=True)
    _wrote(bench, option, program, number, "looks for a faster way")
    if await _passes(bench, option, number) and bench.tree.speedup(option) > before:
        own, *_ = lessons(bench.tree, option, Calibration.of(bench.tree))
        rate(bench, own)


def _wrote(bench: Bench, option: str, program: Program, number: int, note: str) -> None:
    store(bench.tree, bench.emit, program)
    by = writer_of(bench.proposer, bench.situation, option)
    bench.emit("wrote", option=option, program=program.sha256, attempt=number, by=by, note=note)


async def _passes(bench: Bench, option: str, number: int) -> bool:
    """Evaluate the program of ``option``, which is running; return whether it passes."""
    program = bench.tree.program(bench.tree[option].program)
    evaluation = await bench.evaluator.evaluate(program, lambda stage: bench.tell(option, stage))
    bench.emit("evaluated", option=option, attempt=number, **evaluation.to_fields())
    return evaluation.passed


def store(tree: Tree, emit: Callable[..., Any], program: Program) -> None:
    """Record ``program``, and each of its texts that this run does not hold yet."""
    kernels, layout = split_program(program)
    for digest, text in kernels.items():
        if digest not in tree.kernels:
            emit("kernel", sha256=digest, text=text)
    if program.sha256 not in tree.layouts:
        emit("program", sha256=program.sha256, layout=layout)


async def _write(bench: Bench, node: Option) -> Program | None:
    """Return the next program of ``node``, or None after settling it when there is no other way to write it."""
    if node.failure is None:
        bench.tell(node.id, "writing")
        return await bench.proposer.write(bench.situation, node.id)
    bench.tell(node.id, "mending")
    failed = bench.tree.program(node.program)
    mended = await bench.proposer.repair(bench.situation, node.id, failed, node.failure)
    if mended is None or mended.sha256 == node.program:
        _settle(bench, node, f"no other way to write it; {_told(node.failure)}")
        return None
    return mended


def _give_up_if_spent(bench: Bench, node: Option) -> bool:
    if node.failure is None or node.unproven or node.tried <= bench.repairs:
        return False
    _settle(bench, node, f"{_attempts(node.tried)} failed; {_told(node.failure)}")
    return True


def _settle(bench: Bench, node: Option, reason: str) -> None:
    bench.emit("failed", option=node.id, reason=reason)
    _learn(bench, node.id, Calibration.of(bench.tree))


def _learn(bench: Bench, option: str, before: Calibration) -> None:
    for lesson in lessons(bench.tree, option, before):
        rate(bench, lesson)


def rate(bench: Bench, lesson: Lesson) -> None:
    """Put on record what was learned about one option."""
    bench.emit(
        "rated",
        option=lesson.option,
        rating=lesson.rating,
        confidence=lesson.confidence,
        why=lesson.why,
        by=ENGINE,
    )


def _told(failure: Failure) -> str:
    line = f" line {failure.line}" if failure.line is not None else ""
    return f"{failure.stage}{line}: {failure.message}"


def _attempts(count: int) -> str:
    return f"{count} attempt" if count == 1 else f"all {count} attempts"
