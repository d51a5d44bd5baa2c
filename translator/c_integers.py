"""The integer expressions of C++ as sizes: literals, arithmetic, shifts, ternaries, ceil-division by any name.

What a name, a call or a member stands for differs between host code and kernels, so that a `Scope` answers for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from tree_sitter import Node

from translator.c_types import cast_target, is_integer, is_real
from translator.cuda_source import parse_expression
from translator.size_order import at_least, maximum, minimum
from translator.sizes import ONE, ZERO, Size, UnreadableSize, ceildiv, floordiv, modulo, nonzero, number

MOST_DEPTH = 60
LONGEST_MACRO = 2000


CEILDIV_NAMES = frozenset(
    ("ceildiv", "cdiv", "divup", "divceil", "idivup", "updiv", "divideup", "divroundup", "ceildivide", "thcceildiv",
     "atenceildiv", "divideandroundup", "divideroundup")
)  # fmt: skip
"""How ceil-division is called, without underscores and in small letters."""

_BINARY: dict[str, Callable[[Size, Size], Size]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": floordiv,
    "%": modulo,
}
NEGATED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


class Scope(Protocol):
    """What the code around an expression knows."""

    text: str

    def name(self, text: str) -> Size:
        """Return what a name stands for; raise `UnreadableSize` when that isn't known."""

    def call(self, called: str, arguments: Sequence[Node], node: Node) -> Size:
        """Return what a call gives that isn't known in every scope."""

    def member(self, node: Node) -> Size:
        """Return what ``a.b``, ``a[b]``, ``*a`` stand for."""

    def macro(self, called: str, arguments: Sequence[str]) -> str | None:
        """Return the text that a macro with arguments stands for, None when there is no such macro."""

    def type_bytes(self, text: str) -> Size:
        """Return how many bytes a type has."""

    def within(self, text: str) -> Scope:
        """Return the same scope for an expression of another text."""


def read_size(node: Node | None, scope: Scope, depth: int = 0) -> Size:
    """Return what a C++ expression stands for; raise `UnreadableSize` with the reason when it can't be told."""
    if node is None:
        raise UnreadableSize("nothing stands here")
    if depth > MOST_DEPTH:
        raise UnreadableSize("this expression is nested too deeply")
    reader = _READERS.get(node.type)
    if reader is None:
        raise UnreadableSize(f"'{_shown(node, scope)}' is no integer that can be read off the source")
    return reader(node, scope, depth + 1)


def read_text(text: str, scope: Scope, depth: int = 0) -> Size:
    """Return what an expression given as text stands for."""
    parsed = parse_expression(text) if depth < MOST_DEPTH and len(text) < LONGEST_MACRO else None
    if parsed is None:
        raise UnreadableSize(f"'{text[:40]}' is no expression that can be read")
    node, padded = parsed
    return read_size(node, scope.within(padded), depth + 5)


def truth(node: Node | None, scope: Scope) -> bool | None:
    """Return whether a condition holds, None when that depends on what isn't known."""
    try:
        size = read_size(node, scope)
    except UnreadableSize:
        return None
    return None if size.constant is None else bool(size.constant)


def _shown(node: Node, scope: Scope) -> str:
    text = " ".join(scope.text[node.start_byte : min(node.end_byte, node.start_byte + 60)].split())
    return text if len(text) < 50 else text[:49] + "…"


def _literal(node: Node, scope: Scope, depth: int) -> Size:
    text = scope.text[node.start_byte : node.end_byte].replace("'", "")
    match = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*", text)
    if match is None or len(text) > 40:
        raise UnreadableSize(f"'{text[:40]}' is no integer")
    digits = match[2]
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        value = int(digits, 8) if octal else int(digits, 0)
        return number(-value if match[1] else value)
    except ValueError:
        raise UnreadableSize(f"'{text}' is no integer") from None


def _inner(node: Node, scope: Scope, depth: int) -> Size:
    inner = node.child_by_field_name("value") or (node.named_children[0] if node.named_child_count == 1 else None)
    return read_size(inner, scope, depth)


def _cast(node: Node, scope: Scope, depth: int) -> Size:
    target = node.child_by_field_name("type")
    text = scope.text[target.start_byte : target.end_byte] if target is not None else ""
    if is_real(text):
        raise UnreadableSize(f"'{_shown(node, scope)}' is a floating-point number")
    return read_size(node.child_by_field_name("value"), scope, depth)


def _unary(node: Node, scope: Scope, depth: int) -> Size:
    operator = node.children[0].type
    argument = node.child_by_field_name("argument")
    value = read_size(argument, scope, depth)
    if operator == "-":
        return ZERO - value
    if operator == "+":
        return value
    if operator == "!" and value.constant is not None:
        return number(int(not value.constant))
    raise UnreadableSize(f"'{_shown(node, scope)}' isn't one of the sizes that can be written")


def _binary(node: Node, scope: Scope, depth: int) -> Size:
    operator = node.children[1].type
    left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
    if operator in ("&&", "||", "and", "or"):
        return _logical(operator in ("&&", "and"), left_node, right_node, scope, depth)
    if operator == "&" and right_node is not None and (inverted := _inverted(right_node)) is not None:
        left, mask = read_size(left_node, scope, depth), read_size(inverted, scope, depth) + ONE
        return floordiv(left, mask) * mask
    left, right = read_size(left_node, scope, depth), read_size(right_node, scope, depth)
    if operator in _BINARY:
        return _BINARY[operator](left, right)
    if operator in ("<<", ">>") and right.constant is not None and 0 <= right.constant < 62:
        power = number(1 << right.constant)
        return left * power if operator == "<<" else floordiv(left, power)
    if operator == "&" and right.constant is not None and right.constant & (right.constant + 1) == 0:
        return modulo(left, right + ONE)
    if operator in NEGATED:
        return _compare(left, operator, right)
    if left.constant is not None and right.constant is not None and operator in ("&", "|", "^"):
        a, b = left.constant, right.constant
        return number(a & b if operator == "&" else a | b if operator == "|" else a ^ b)
    raise UnreadableSize(f"'{_shown(node, scope)}' isn't one of the sizes that can be written")


def _inverted(node: Node) -> Node | None:
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return (
        node.child_by_field_name("argument")
        if node.type == "unary_expression" and node.children[0].type == "~"
        else None
    )


def _logical(both: bool, left: Node | None, right: Node | None, scope: Scope, depth: int) -> Size:
    values: list[int | None] = []
    for side in (left, right):
        try:
            values.append(read_size(side, scope, depth).constant)
        except UnreadableSize:
            values.append(None)
    for value in values:
        if value is not None and bool(value) != both:
            return number(int(not both))
    if None in values:
        raise UnreadableSize("this condition isn't known")
    return number(int(both))


def _compare(left: Size, operator: str, right: Size) -> Size:
    difference = left - right
    if difference.constant is not None:
        value = difference.constant
        known = {"<": value < 0, ">": value > 0, "<=": value <= 0, ">=": value >= 0, "==": value == 0, "!=": value != 0}
        return number(int(known[operator]))
    if operator in ("<", ">="):
        left, right, operator = right, left, {"<": ">", ">=": "<="}[operator]
    if operator == "<=" and at_least(right, left):
        return ONE
    if operator == "<=" and at_least(left, right + ONE):
        return ZERO
    if operator == ">" and at_least(left, right + ONE):
        return ONE
    if operator == ">" and at_least(right, left):
        return ZERO
    if operator in (">", "!=") and right == ZERO:
        return nonzero(left)
    raise UnreadableSize("this condition isn't known")


def _conditional(node: Node, scope: Scope, depth: int) -> Size:
    condition = node.child_by_field_name("condition")
    chosen = truth(condition, scope)
    yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    if chosen is not None:
        return read_size(yes if chosen else no, scope, depth)
    a, b = read_size(yes, scope, depth), read_size(no, scope, depth)
    if a == b:
        return a
    return choose(condition, a, b, scope, depth)


def choose(condition: Node | None, yes: Size, no: Size, scope: Scope, depth: int = 0) -> Size:
    """Return ``condition ? yes : no`` where that is a minimum, a maximum or a rounding up."""
    while condition is not None and condition.type in ("parenthesized_expression", "condition_clause"):
        condition = condition.child_by_field_name("value") or condition.named_children[0]
    if condition is not None and condition.type == "binary_expression" and condition.children[1].type in NEGATED:
        left = read_size(condition.child_by_field_name("left"), scope, depth)
        right = read_size(condition.child_by_field_name("right"), scope, depth)
        operator = condition.children[1].type
        if operator in ("<", "<=") and (yes, no) == (left, right):
            return minimum(yes, no)
        if operator in (">", ">=") and (yes, no) == (left, right):
            return maximum(yes, no)
        if operator in ("<", "<=") and (no, yes) == (left, right):
            return maximum(yes, no)
        if operator in (">", ">=") and (no, yes) == (left, right):
            return minimum(yes, no)
        if right == ZERO and (operator in (">", "!=") or (operator == "==" and yes - no == number(-1))):
            if operator == "==":
                yes, no = no, yes
            if yes - no == ONE:
                return no + nonzero(left)
    elif condition is not None and yes - no == ONE:
        return no + nonzero(read_size(condition, scope, depth))
    raise UnreadableSize("which of two values this takes isn't known")


def _call(node: Node, scope: Scope, depth: int) -> Size:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        raise UnreadableSize(f"'{_shown(node, scope)}' is no integer that can be read off the source")
    values = [child for child in arguments.named_children if child.type != "comment"]
    called = "".join(scope.text[function.start_byte : function.end_byte].split())
    plain = re.sub(r"<.*>$", "", called).rpartition("::")[2]
    if (target := cast_target(scope.text[function.start_byte : function.end_byte])) and len(values) == 1:
        if is_real(target):
            raise UnreadableSize(f"'{_shown(node, scope)}' is a floating-point number")
        return read_size(values[0], scope, depth)
    if is_integer(called) and len(values) == 1:
        return read_size(values[0], scope, depth)
    if (expanded := scope.macro(called, [scope.text[v.start_byte : v.end_byte] for v in values])) is not None:
        return read_text(expanded, scope, depth)
    if plain in ("min", "max", "MIN", "MAX") and len(values) == 2:
        a, b = (read_size(value, scope, depth) for value in values)
        return minimum(a, b) if plain.lower() == "min" else maximum(a, b)
    if plain in ("ceil", "ceilf") and len(values) == 1:
        return _rounded_up(values[0], scope, depth)
    try:
        return scope.call(called, values, node)
    except UnreadableSize:
        if plain.replace("_", "").lower() in CEILDIV_NAMES and len(values) == 2:
            return ceildiv(read_size(values[0], scope, depth), read_size(values[1], scope, depth))
        raise


def _rounded_up(node: Node, scope: Scope, depth: int) -> Size:
    """Return ``ceil(a / b)`` where the division is one of floating-point numbers."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    if node.type != "binary_expression" or node.children[1].type != "/":
        return read_size(node, scope, depth)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    sides = [_whole(side, scope, depth) for side in (left, right)]
    if not any(real for _, real in sides):
        return floordiv(sides[0][0], sides[1][0])  # an integer division has rounded down before ceil sees it
    return ceildiv(sides[0][0], sides[1][0])


def _whole(node: Node | None, scope: Scope, depth: int) -> tuple[Size, bool]:
    """Return the integer that a floating-point expression is made of, and whether it is floating-point."""
    while node is not None and node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    if node is None:
        raise UnreadableSize("nothing stands here")
    text = scope.text[node.start_byte : node.end_byte]
    if node.type == "number_literal" and (match := re.fullmatch(r"(\d+)\.0*[fF]?", text)):
        return number(int(match[1])), True
    if node.type == "cast_expression":
        target = node.child_by_field_name("type")
        if target is not None and is_real(scope.text[target.start_byte : target.end_byte]):
            return _whole(node.child_by_field_name("value"), scope, depth)[0], True
    if node.type == "call_expression" and (match := re.match(r"(?:static_cast\s*<\s*)?(\w+)\s*>?\s*\(", text)):
        arguments = node.child_by_field_name("arguments")
        if is_real(match[1]) and arguments is not None and arguments.named_child_count == 1:
            return _whole(arguments.named_children[0], scope, depth)[0], True
    if node.type == "binary_expression" and node.children[1].type == "*":
        parts = [_whole(node.child_by_field_name(side), scope, depth) for side in ("left", "right")]
        return parts[0][0] * parts[1][0], parts[0][1] or parts[1][1]
    return read_size(node, scope, depth), False


def _identifier(node: Node, scope: Scope, depth: int) -> Size:
    return scope.name(scope.text[node.start_byte : node.end_byte])


def _sizeof(node: Node, scope: Scope, depth: int) -> Size:
    inner = node.child_by_field_name("type") or node.child_by_field_name("value")
    if inner is None:
        raise UnreadableSize(f"'{_shown(node, scope)}' has no type")
    return scope.type_bytes(scope.text[inner.start_byte : inner.end_byte].strip("() "))


_READERS: dict[str, Callable[[Node, Scope, int], Size]] = {
    "number_literal": _literal,
    "true": lambda node, scope, depth: ONE,
    "false": lambda node, scope, depth: ZERO,
    "parenthesized_expression": _inner,
    "condition_clause": _inner,
    "cast_expression": _cast,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "call_expression": _call,
    "identifier": _identifier,
    "qualified_identifier": _identifier,
    "sizeof_expression": _sizeof,
    "field_expression": lambda node, scope, depth: scope.member(node),
    "subscript_expression": lambda node, scope, depth: scope.member(node),
    "pointer_expression": lambda node, scope, depth: scope.member(node),
}
