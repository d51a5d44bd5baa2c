"""Whether a kernel writes every element of an array that it changes, and if not, what keeps the others.

An element is surely written when only bounds (``i < n``) and choices of a thread (``lane == 0``) stand around the
write. Before another condition the element can be copied; where the element itself depends on data, flags say which
were written, and a pass afterwards takes the others from before.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.accesses import Access, conditions_around
from translator.metal_writer.dependence import Dependence, place_parts

_UPPER, _LOWER = ("<", "<="), (">", ">=")


@dataclass(frozen=True)
class Copy:
    """An element to be copied before a statement, where the bounds among its conditions hold."""

    write: Access
    statement: Node
    bounds: tuple[Node, ...]


def keep_unwritten(write: Access, writes: list[Access], dependence: Dependence) -> list[Copy] | None:
    """Return the copies that keep what one write may leave out; None where only flags can tell."""
    if any(dependence.on_data(part) for part in place_parts(write.node)):
        return None
    body = dependence.routine.body
    for node in dependence.returns:
        if node.start_byte < write.node.start_byte:
            for _, condition in conditions_around(node, body):
                for part in _parts(condition, "||"):
                    if not _bounds(part, dependence, _LOWER, _UPPER) and not _chooses(part, write, dependence):
                        return None
    copies = []
    for statement, condition in conditions_around(write.node, body):
        if _both_branches(statement, write, writes):
            continue
        in_else = _within(statement.child_by_field_name("alternative"), write.node)
        parts = [condition] if in_else else _parts(condition, "&&")
        bounds = [part for part in parts if _bounds(part, dependence, _UPPER, _LOWER)] if not in_else else []
        if all(part in bounds or _chooses(part, write, dependence) for part in parts):
            continue
        if not _can_copy(statement, write, dependence):
            return None
        copies.append(Copy(write, statement, tuple(bounds)))
        break
    return copies


def _parts(condition: Node, sign: str) -> list[Node]:
    """Return the parts of a condition between ``&&`` or ``||``."""
    if condition.type in ("condition_clause", "parenthesized_expression"):
        return _parts(condition.named_children[-1], sign)
    if condition.type == "binary_expression" and condition.children[1].type == sign:
        return [*_parts(condition.named_children[0], sign), *_parts(condition.named_children[-1], sign)]
    return [condition]


def _bounds(part: Node, dependence: Dependence, up: tuple[str, ...], down: tuple[str, ...]) -> bool:
    """Whether a condition only keeps indices below a size: ``i < n`` and not ``i > 0``."""
    if part.type != "binary_expression" or dependence.on_data(part):
        return False
    left, right, sign = part.named_children[0], part.named_children[-1], part.children[1].type
    if sign in down:
        left, right = right, left
    return sign in (*up, *down) and not dependence.fixed(left) and dependence.fixed(right)


def _chooses(part: Node, write: Access, dependence: Dependence) -> bool:
    """Whether a condition picks the thread that writes an element, and not the element."""
    if dependence.on_data(part) or dependence.fixed(part):
        return False
    return not dependence.named_in(part) & dependence.closure(write.node)


def _both_branches(statement: Node, write: Access, writes: list[Access]) -> bool:
    other = statement.child_by_field_name("alternative")
    then = statement.child_by_field_name("consequence")
    if other is None or then is None:
        return False
    keys = [{w.key for w in writes if _within(branch, w.node)} for branch in (then, other)]
    return write.key in keys[0] and write.key in keys[1]


def _within(branch: Node | None, node: Node) -> bool:
    return branch is not None and branch.start_byte <= node.start_byte and node.end_byte <= branch.end_byte


def _can_copy(statement: Node, write: Access, dependence: Dependence) -> bool:
    """Whether the element has its name before the statement, and one thread of its own."""
    if statement.type != "if_statement" or statement.parent is None or statement.parent.type != "compound_statement":
        return False
    if dependence.divides(write.node):
        return False
    for inner in walk(write.node):
        variable = dependence.reader.variable(inner) if inner.type == "identifier" else None
        if variable is not None and variable.start > statement.start_byte:
            return False
    return True
