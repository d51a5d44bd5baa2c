"""Sizes as texts: what people answer and plans hold, ``ceildiv(n, 256) * 4``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from translator.size_order import maximum, minimum
from translator.sizes import ZERO, Size, UnreadableSize, ceildiv, floordiv, modulo, name, number

_LONGEST_TEXT = 400
_RUN_TOGETHER = re.compile(r"(?<!\w)\d+[A-Za-z_]")
_GRAMMAR = "use integers, names, + - * // %, min, max, ceildiv"


def parse_size(text: str) -> Size:
    """Return the size that a text in the grammar of launch plans says; raise `UnreadableSize` with the reason."""
    if len(text) > _LONGEST_TEXT:
        raise UnreadableSize(f"this size is longer than {_LONGEST_TEXT} characters")
    if _RUN_TOGETHER.search(text):
        raise UnreadableSize(f"'{text.strip()}' is no size: {_GRAMMAR}")
    try:
        return _from_tree(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UnreadableSize):
            raise
        raise UnreadableSize(f"'{text.strip()}' is no size: {_GRAMMAR}") from None


_BINARY: dict[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: floordiv,
    ast.Mod: modulo,
}
_CALLS: dict[str, Callable[..., Size]] = {"min": minimum, "max": maximum, "ceildiv": ceildiv}


def _from_tree(tree: ast.expr) -> Size:
    match tree:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return number(value)
        case ast.Name(id=text):
            return name(text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ZERO - _from_tree(operand)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return _BINARY[type(operator)](_from_tree(left), _from_tree(right))
        case ast.Call(func=ast.Name(id=called), args=arguments, keywords=[]) if called in _CALLS and len(arguments) > 1:
            if called == "ceildiv" and len(arguments) != 2:
                raise UnreadableSize("ceildiv takes two arguments")
            return _CALLS[called](*map(_from_tree, arguments))
    raise UnreadableSize(f"'{ast.unparse(tree)}' can't stand in a size: {_GRAMMAR}")
