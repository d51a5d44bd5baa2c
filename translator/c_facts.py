"""What follows for sizes when a condition of C++ holds, or doesn't: bounds of expressions."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from translator.c_integers import MOST_DEPTH, NEGATED, Scope, read_size
from translator.sizes import ONE, Size, UnreadableSize

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Fact:
    """``low <= expression <= high`` wherever a condition holds; None where there is no such bound."""

    expression: Size
    low: Size | None
    high: Size | None


def read_facts(node: Node | None, scope: Scope, holds: bool = True, depth: int = 0) -> list[Fact]:
    """Return the bounds that follow when a condition holds (or doesn't): those that can be read, maybe none."""
    if node is None or depth > MOST_DEPTH:
        return []
    kind = node.type
    if kind in ("parenthesized_expression", "condition_clause"):
        inner = node.child_by_field_name("value") or (node.named_children[0] if node.named_child_count == 1 else None)
        return read_facts(inner, scope, holds, depth + 1)
    if kind == "unary_expression" and node.children[0].type == "!":
        return read_facts(node.child_by_field_name("argument"), scope, not holds, depth + 1)
    if kind == "call_expression":
        arguments = node.child_by_field_name("arguments")
        called = scope.text[node.start_byte : arguments.start_byte].strip() if arguments else ""
        if arguments is not None and called in ("likely", "unlikely", "__builtin_expect"):
            return read_facts(arguments.named_children[0], scope, holds, depth + 1)
    if kind == "identifier" and (stored := getattr(scope, "condition", None)) is not None:
        condition: tuple[list[Fact], list[Fact]] | None = stored(scope.text[node.start_byte : node.end_byte])
        if condition is not None:
            return condition[0] if holds else condition[1]
    if kind != "binary_expression":
        return []
    operator = node.children[1].type
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if operator in ("&&", "and", "||", "or"):
        if (operator in ("&&", "and")) == holds:
            return read_facts(left, scope, holds, depth + 1) + read_facts(right, scope, holds, depth + 1)
        return []
    if operator not in NEGATED:
        return []
    if not holds:
        operator = NEGATED[operator]
    try:
        a, b = read_size(left, scope, depth), read_size(right, scope, depth)
    except UnreadableSize:
        return []
    if operator == "!=":
        return []
    facts = [_fact(a, operator, b)]
    if operator != "==":
        facts.append(_fact(b, _FLIPPED[operator], a))
    else:
        facts.append(_fact(b, operator, a))
    return facts


def _fact(a: Size, operator: str, b: Size) -> Fact:
    if operator == "<":
        return Fact(a, None, b - ONE)
    if operator == "<=":
        return Fact(a, None, b)
    if operator == ">":
        return Fact(a, b + ONE, None)
    if operator == ">=":
        return Fact(a, b, None)
    return Fact(a, b, b)
