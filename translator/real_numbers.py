"""The value of a floating-point constant of C++: literals, arithmetic, square roots; nothing that depends on sizes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping

_LONGEST = 300
_MOST_NESTED = 5
_LITERAL = re.compile(r"(?<![\w.])((?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)[fFlL]?(?![\w.])")
_RUN_TOGETHER = re.compile(r"(?<![\w.])[\d.]+(?![eE][-+]?\d)[A-Za-z_]")
_CAST = re.compile(
    r"\(\s*(?:const\s+)?(?:float|double|int)\s*\)|\b(?:static_cast\s*<\s*(?:float|double)\s*>|float|double)(?=\s*\()"
)
_CALLS: Mapping[str, Callable[..., float]] = {
    "sqrt": math.sqrt, "sqrtf": math.sqrt, "rsqrtf": lambda x: 1 / math.sqrt(x), "exp": math.exp, "expf": math.exp,
    "log": math.log, "logf": math.log, "log2f": math.log2, "pow": math.pow, "powf": math.pow,
}  # fmt: skip


def real_value(text: str, constants: Mapping[str, str]) -> str:
    """Return the number that an expression comes to, as Python writes it, "" when it isn't a constant."""
    found = _value(text, constants, 0)
    return "" if found is None else repr(found)


def _value(text: str, constants: Mapping[str, str], nested: int) -> float | None:
    if not text.strip() or len(text) > _LONGEST or nested > _MOST_NESTED:
        return None
    plain = _LITERAL.sub(r"\1", _CAST.sub("", text.replace("std::", ""))).strip()
    if _RUN_TOGETHER.search(plain):
        return None
    try:
        return _evaluate(ast.parse(plain, mode="eval").body, constants, nested)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError, TypeError):
        return None


def _evaluate(tree: ast.expr, constants: Mapping[str, str], nested: int) -> float | None:
    match tree:
        case ast.Constant(value=int(value) | float(value)):
            return float(value)
        case ast.Name(id=text) if text in constants:
            return _value(constants[text], constants, nested + 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = _evaluate(operand, constants, nested)
            return None if found is None else -found
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as operator, right=right):
            a, b = _evaluate(left, constants, nested), _evaluate(right, constants, nested)
            if a is None or b is None:
                return None
            if isinstance(operator, ast.Add):
                return a + b
            if isinstance(operator, ast.Sub):
                return a - b
            return a * b if isinstance(operator, ast.Mult) else a / b
        case ast.Call(func=ast.Name(id=called), args=arguments, keywords=[]) if called in _CALLS:
            values = [_evaluate(argument, constants, nested) for argument in arguments]
            known = [value for value in values if value is not None]
            return float(_CALLS[called](*known)) if len(known) == len(values) else None
    return None
