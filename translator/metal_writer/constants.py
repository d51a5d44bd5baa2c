"""Integers that a source fixes by name: macros, constants, template arguments, and arithmetic of them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping

from translator.metal_writer.program import Program

_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip

_ARITHMETIC = re.compile(r"[\d\s+\-*/%<>()]{1,200}")


def integer(program: Program, text: str, given: Mapping[str, str]) -> int | None:
    """Return the value of an integer expression; ``given`` has the values of template parameters. None: not known."""
    for _ in range(16):
        replaced = re.sub(r"\b[A-Za-z_]\w*", lambda m: f"({_value(program, m[0], given)})", text)
        if replaced == text or "?" in replaced or len(replaced) > 1000:
            break
        text = replaced
    try:
        text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b", lambda m: str(int(m[1], 0)), text)
        if not _ARITHMETIC.fullmatch(text):
            return None
        return _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(program: Program, name: str, given: Mapping[str, str]) -> str:
    if name in given:
        return given[name]
    if name in program.macros and (value := program.macros[name].child_by_field_name("value")) is not None:
        return program.source.text_of(value).split("//")[0].strip()
    item = program.items.get(name)
    if item is not None and item.kind == "constant":
        for declarator in item.node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            declared = declarator.child_by_field_name("declarator")
            if value is not None and declared is not None and program.text(declared) == name:
                return program.text(value)
    return "?"


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.LShift) and not 0 <= right < 64:
            raise ValueError("shift")
        return int(_OPERATORS[type(node.op)](left, right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    raise ValueError("not an integer expression")
