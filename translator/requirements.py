"""What a condition of the host asks of sizes, in the few forms that a plan can hold."""

from __future__ import annotations

from tree_sitter import Node

from translator.c_integers import Scope, read_size
from translator.size_order import at_least
from translator.sizes import ONE, ZERO, Operation, Size, UnreadableSize, number, renders

Requirement = tuple[str, Size, Size]
"""A kind of `LaunchPlan.requires`, what it is about, and the other side."""
_MOST_DEPTH = 20
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def requirements(
    condition: Node | None, scope: Scope, holds: bool, partly: bool = False, depth: int = 0
) -> list[Requirement] | None:
    """Return what must be true of sizes for a condition to hold (or not to): () when it always does, None if unsayable.

    ``partly``: leave out what can't be said instead.
    """
    if condition is None or depth > _MOST_DEPTH:
        return [] if partly else None
    kind = condition.type
    if kind in ("parenthesized_expression", "condition_clause"):
        inner = condition.child_by_field_name("value") or next(iter(condition.named_children), None)
        return requirements(inner, scope, holds, partly, depth + 1)
    if kind == "unary_expression" and condition.children[0].type == "!":
        return requirements(condition.child_by_field_name("argument"), scope, not holds, partly, depth + 1)
    if kind == "binary_expression" and condition.children[1].type in ("&&", "||"):
        if (condition.children[1].type == "&&") != holds:
            return [] if partly else None
        sides = [
            requirements(condition.child_by_field_name(side), scope, holds, partly, depth + 1)
            for side in ("left", "right")
        ]
        return None if None in sides else [found for side in sides if side is not None for found in side]
    try:
        found = _single(condition, scope, holds)
    except UnreadableSize:
        found = None
    return [] if found is None and partly else found


def _single(condition: Node, scope: Scope, holds: bool) -> list[Requirement] | None:
    if condition.type != "binary_expression" or condition.children[1].type not in _OPPOSITE:
        size = read_size(condition, scope)
        if (multiple := _multiple(size)) is not None and not holds:
            return [multiple]
        if condition.type in ("identifier", "field_expression") and renders(size):
            return [("equal", size, number(int(holds)))]
        return None
    operator = condition.children[1].type
    operator = operator if holds else _OPPOSITE[operator]
    left = read_size(condition.child_by_field_name("left"), scope)
    right = read_size(condition.child_by_field_name("right"), scope)
    if not (renders(left) and renders(right)):
        return None
    if operator in ("<", ">"):
        left, right = (left, right - ONE) if operator == "<" else (left, right + ONE)
        operator += "="
    if operator == "<=" and left.constant is not None:
        left, right, operator = right, left, ">="
    elif operator == ">=" and left.constant is not None:
        left, right, operator = right, left, "<="
    if operator == "==" and right == ZERO and (multiple := _multiple(left)) is not None:
        return [multiple]
    if operator == "==" and left.constant is not None:
        left, right = right, left
    if operator == "==" and (right != ZERO or left.constant is not None):
        return [] if left == right else None if left.constant is not None else [("equal", left, right)]
    if operator == "<=":
        return [] if at_least(right, left) else [("most", left, right)] if right != ZERO else None
    if operator == ">=":
        return [] if at_least(left, right) else [("least", left, right)]
    if operator == "!=" and right == ZERO and at_least(left, number(1)):
        return []
    return None


def _multiple(size: Size) -> Requirement | None:
    """Return what ``a % b`` being 0 asks."""
    atom = next(iter(size.atoms), "") if len(size.terms) == 1 and size.terms[0][1] == 1 else ""
    if isinstance(atom, Operation) and atom.kind == "nonzero":
        return _multiple(atom.operands[0])
    if isinstance(atom, Operation) and atom.kind == "%" and renders(size):
        return ("multiple", atom.operands[0], atom.operands[1])
    return None
