"""Whole numbers written as C writes them, read without a parser of C."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

LONGEST = 200
"""Characters of an expression that is read at all."""

_MOST_NAMES = 16
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def whole_number(text: str, names: Mapping[str, str]) -> int | None:
    """Return what an expression of integers, ``+ - * / % ()`` and ``names`` comes to; None for any other.

    ``names`` gives names their own expressions. Nothing below zero is returned.
    """
    for _ in range(_MOST_NAMES):
        if len(text) > LONGEST:
            return None
        replaced = _WORD.sub(lambda match: _written_out(match[0], names), text)
        if replaced == text:
            break
        text = replaced
    try:
        value = _evaluate(ast.parse(_SUFFIX.sub(r"\1", text).strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return value if value >= 0 else None


def _written_out(word: str, names: Mapping[str, str]) -> str:
    return f"({names[word]})" if len(names.get(word, "")) in range(1, LONGEST) else word


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("not a number")
