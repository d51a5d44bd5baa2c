"""Barriers that some threads of a block would not reach: undefined in CUDA, and waited at forever in Metal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.dependence import Dependence
from translator.metal_writer.early_return import has_barrier
from translator.metal_writer.expressions import Expressions, call_arguments
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.program import Routine
from translator.metal_writer.refused import Refused
from translator.metal_writer.rounds import same_rounds

_LOOPS = ("for_statement", "while_statement", "do_statement")
_BRANCHES = ("if_statement", "switch_statement", "conditional_expression", *_LOOPS)
_ADVICE = "let every thread of the block reach the barrier, and put the condition around the work only"


def dependences(readers: Mapping[Routine, Expressions]) -> dict[Routine, Dependence]:
    """Return what the values of each function depend on; ``readers`` has callers before what they call.

    A parameter is the same in all threads when every call gives it what is.
    """
    found: dict[Routine, Dependence] = {}
    for routine, reader in readers.items():
        same = set() if routine.kernel else {parameter.name for parameter in routine.parameters}
        for caller, dependence in found.items():
            for call in calls_in(caller.body) if same else ():
                if routine not in called(reader.program, call):
                    continue
                arguments = call_arguments(call)
                for parameter, argument in zip(routine.parameters, arguments, strict=False):
                    if parameter.name in same and not dependence.uniform(argument):
                        same.discard(parameter.name)
        found[routine] = Dependence(reader, frozenset(same))
    return found


def check_barriers(readers: Mapping[Routine, Expressions]) -> None:
    """Refuse a barrier under a condition, or in a loop, that differs between the threads of a block."""
    for dependence in dependences(readers).values():
        for call in calls_in(dependence.routine.body):
            if has_barrier(dependence.reader.program, call):
                _check(call, dependence)
                if not dependence.routine.kernel:
                    _check_returns(call, dependence)


def _check(barrier: Node, dependence: Dependence) -> None:
    at, body = barrier, dependence.routine.body
    while (above := at.parent) is not None and at.id != body.id:
        condition = above.child_by_field_name("condition") if above.type in _BRANCHES else None
        differs = condition is not None and not _within(condition, barrier) and not dependence.uniform(condition)
        if condition is not None and differs and not same_rounds(above, dependence):
            shown = " ".join(dependence.reader.text(condition).split())[:60]
            what = "loop that threads of the block leave" if above.type in _LOOPS else "branch that threads take"
            raise Refused(barrier, f"a barrier in a {what} differently, by {shown}", _ADVICE)
        if above.type in _LOOPS:
            _check_exits(barrier, above, dependence)
        at = above


def _check_returns(barrier: Node, dependence: Dependence) -> None:
    """Refuse a return of a function before its barrier that only some threads take; those of kernels get guards."""
    for leaving in dependence.returns:
        at = leaving
        while leaving.end_byte <= barrier.start_byte and (above := at.parent) is not None:
            condition = above.child_by_field_name("condition") if above.type in _BRANCHES else None
            if condition is not None and not dependence.uniform(condition):
                raise Refused(leaving, f"'{dependence.routine.name}' may return before its barrier", _ADVICE)
            if above.id == dependence.routine.body.id:
                break
            at = above


def _check_exits(barrier: Node, loop: Node, dependence: Dependence) -> None:
    """Refuse a ``break``, or a ``continue`` before the barrier, that only some threads take."""
    for leaving in _exits(loop):
        if leaving.type == "continue_statement" and leaving.start_byte > barrier.end_byte:
            continue
        at = leaving
        while (above := at.parent) is not None and above.id != loop.id:
            condition = above.child_by_field_name("condition") if above.type in _BRANCHES else None
            if condition is not None and not dependence.uniform(condition):
                word = leaving.type.partition("_")[0]
                raise Refused(
                    leaving,
                    f"'{word}' takes some threads past the barrier in line {barrier.start_point[0] + 1}",
                    _ADVICE,
                )
            at = above


def _exits(loop: Node) -> Iterator[Node]:
    """Yield the statements that leave a loop or its round."""
    for node in walk(loop):
        if node.type not in ("break_statement", "continue_statement"):
            continue
        above = node.parent
        while above is not None and above.type not in _LOOPS:
            if above.type == "switch_statement" and node.type == "break_statement":
                break
            above = above.parent
        if above is not None and above.id == loop.id:
            yield node


def _within(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
