"""Arrays that a kernel changes in place: which of its reads mean the array as it came, which what was written.

MLX's inputs can't be written and its outputs begin empty. So every read must see either the value from before the
launch (then it goes to the input) or one that has been written since (then it goes to the output).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from translator.metal_writer.accesses import (
    LOOPS,
    READ,
    UPDATE,
    WRITE,
    Access,
    branches_around,
    leaves_early,
    loops_around,
)  # fmt: skip
from translator.metal_writer.coverage import Copy, keep_unwritten
from translator.metal_writer.dependence import Dependence
from translator.metal_writer.expressions import Expressions
from translator.metal_writer.in_place_functions import FunctionUse
from translator.metal_writer.program import Routine


@dataclass
class Split:
    """How an array is taken apart: nodes that read what was written, and copies that must go before statements.

    ``flagged``: only flags, set with each write, can tell which elements were written. ``chosen``: each read asks the
    flags whether it means the value from before or the one that was written. ``halves`` are the functions that need
    both parts.
    """

    reads_of_output: set[int] = field(default_factory=set)
    copies: dict[int, list[Copy]] = field(default_factory=dict)
    flagged: bool = False
    chosen: bool = False
    halves: set[Routine] = field(default_factory=set)


def split_array(
    name: str,
    accesses: list[Access],
    dependence: Dependence,
    readers: Mapping[Routine, Expressions],
    partly: bool = False,
) -> Split:
    """Say how one array can be split between the functions of a kernel.

    ``partly``: the kernel isn't known to write the array's first element, its last, and those between.

    Where the text doesn't show which value a read means, flags tell it when the kernel runs: without races, what has
    been written before is what its own thread wrote, or another one of the block before a barrier.
    """
    kernel, body = dependence.routine, dependence.routine.body
    use = FunctionUse(name, accesses, readers)
    if any(use.writing(routine) for routine in readers if routine is not kernel):
        first = use.reads_come_first(kernel)
        split = Split(flagged=not first or partly or not use.kept_by_calls(kernel), chosen=not first)
        split.halves = {r for r in readers if use.writing(r) or (split.chosen and use.reading(r))}
        return split
    split = Split()
    writes = [access for access in accesses if access.kind in (WRITE, UPDATE)]
    reads = [a for a in accesses if a.kind in (READ, UPDATE) and a.routine is dependence.routine]
    repeats = any(
        not dependence.advances(write.node, loop) for write in writes for loop in loops_around(write.node, body)
    )
    split.chosen = repeats and bool(reads)
    split.chosen |= not use.reads_come_first(kernel) and any(event.call for event in use.events[kernel])
    keys = {write.key for write in writes}
    ends = {write.node.id: _assignment(write.node).end_byte for write in writes}
    loops = {write.node.id: {loop.id for loop in loops_around(write.node, body)} for write in writes}
    for read in reads:
        others = [write for write in writes if write.node.id != read.node.id]
        before = [
            write
            for write in others
            if ends[write.node.id] <= read.node.start_byte and not _exclusive(write.node, read.node, body)
        ]
        around = {loop.id for loop in loops_around(read.node, body)}
        shared = any(around & loops[write.node.id] for write in others) if around else False
        if before and _own(read, before, body):
            split.reads_of_output.add(read.node.id)
        elif before or (shared and read.key not in keys):
            split.chosen = True
    if split.chosen:
        split.flagged = True
        split.reads_of_output.clear()
        split.halves = {routine for routine in readers if use.reading(routine)}
    for write in writes:
        copies = keep_unwritten(write, writes, dependence)
        # With several elements, one that a thread copies may be another's that another thread writes.
        if copies and (len(keys) > 1 or any(_earlier(copy, other, body) for copy in copies for other in writes)):
            copies = None
        split.flagged |= copies is None or (partly and not _keep_the_rest(copies))
        for copy in copies or ():
            split.copies.setdefault(copy.statement.id, []).append(copy)
    if split.flagged:
        split.copies.clear()
    return split


def _earlier(copy: Copy, other: Access, body: Node) -> bool:
    """Whether a write may come before the statement that a copy is put before, which would undo it."""
    statement = copy.statement
    if statement.start_byte <= other.node.start_byte and other.node.end_byte <= statement.end_byte:
        condition = statement.child_by_field_name("condition")
        return condition is not None and other.node.end_byte <= condition.end_byte
    around = {loop.id for loop in loops_around(statement, body)}
    return other.node.end_byte <= statement.start_byte or any(
        loop.id in around for loop in loops_around(other.node, body)
    )


def _keep_the_rest(copies: list[Copy]) -> bool:
    """Whether copies keep what conditions on the element leave out: none but ``i < n`` stands around a copy."""
    plain = ("identifier", "number_literal", "field_expression")
    sides = [side for copy in copies for bound in copy.bounds for side in bound.named_children]
    return bool(copies) and all(side.type in plain for side in sides)


def _assignment(node: Node) -> Node:
    while node.parent is not None and node.type not in ("assignment_expression", "update_expression"):
        node = node.parent
    return node


def _own(read: Access, writes: list[Access], body: Node) -> bool:
    """Whether the same thread has surely written the element that is read: same text, same loops, same conditions."""
    headers, around = _headers(read.node, body), {loop.id for loop in loops_around(read.node, body)}
    holding = branches_around(read.node, body).items()
    return all(
        write.key == read.key and _headers(write.node, body) == headers
        and branches_around(write.node, body).items() <= holding
        and not any(loop.id not in around and leaves_early(loop) for loop in loops_around(write.node, body))
        for write in writes
    )  # fmt: skip


def _exclusive(a: Node, b: Node, body: Node) -> bool:
    """Whether two places are in the two branches of one if, so that a thread passes only one of them."""
    there = branches_around(b, body)
    return any(
        {branch, there.get(condition)} == {"consequence", "alternative"}
        for condition, branch in branches_around(a, body).items()
    )


def _headers(node: Node, body: Node) -> list[str]:
    headers = []
    for loop in loops_around(node, body):
        assert loop.type in LOOPS
        inner = loop.child_by_field_name("body")
        text = (loop.text or b"")[: inner.start_byte - loop.start_byte] if inner is not None else loop.text or b""
        headers.append(re.sub(rb"\s", b"", text).decode())
    return headers
