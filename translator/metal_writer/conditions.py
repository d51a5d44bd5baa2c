"""Conditional compilation: only what the compiler would see is translated."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from translator.cuda_source import CudaSource, parse_cuda
from translator.reach import blank_text

PREDEFINED: Mapping[str, str] = {
    "__CUDACC__": "1", "__CUDA_ARCH__": "900", "__CUDACC_VER_MAJOR__": "12", "__CUDACC_VER_MINOR__": "4",
    "CUDART_VERSION": "12040", "CUDA_VERSION": "12040", "__cplusplus": "202002",
}  # fmt: skip
"""What nvcc defines; the simulator runs the original with the same (``headers/cuda.h``)."""

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|define|undef)\b[ \t]*(.*)")
_COMPARE: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_COMPUTE: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
_MOST_ROUNDS = 8


def active_source(source: CudaSource) -> CudaSource:
    """Return the source with the branches that are left out blanked, and the directives around those that stay.

    Where a condition can't be worked out, its branches stay as they are. Places keep their offsets.
    """
    if not re.search(r"^[ \t]*#[ \t]*if", source.text, re.MULTILINE):
        return source
    macros = dict(PREDEFINED)
    lines, code = source.text.split("\n"), blank_text(source.text).split("\n")
    kept: list[str] = []
    stack: list[list[bool | None]] = []  # of each open #if: is its branch active, was one; None: not known
    for line, plain in zip(lines, code, strict=True):
        match = _DIRECTIVE.match(plain)
        word, rest = (match[1], match[2].strip()) if match is not None else ("", "")
        seen = all(active is not False for active, _ in stack)
        if word in ("if", "ifdef", "ifndef"):
            holds = _holds(word, rest, macros) if seen and not line.endswith("\\") else (None if seen else False)
            stack.append([holds, holds])
        elif word in ("elif", "else") and stack:
            active, done = stack[-1]
            if active is not None or done is not None:
                holds = not done if word == "else" else (False if done else _holds("if", rest, macros))
                if holds is None:
                    return source
                stack[-1] = [holds, bool(done) or holds]
        elif word == "endif" and stack:
            ended = stack.pop()
            kept.append(_blank(line) if ended != [None, None] or not seen else line)
            continue
        elif seen and word == "define" and None not in (active for active, _ in stack):
            name, _, value = rest.partition(" ")
            macros[name] = value.strip() or "1"
        elif seen and word == "undef":
            macros.pop(rest, None)
        visible = all(active is not False for active, _ in stack)
        directive = word in ("if", "ifdef", "ifndef", "elif", "else") and stack and stack[-1] != [None, None]
        kept.append(line if visible and not directive else _blank(line))
    text = "\n".join(kept)
    return parse_cuda(text, source.path) if text != source.text else source


def _blank(line: str) -> str:
    return " " * len(line)


def _holds(word: str, text: str, macros: Mapping[str, str]) -> bool | None:
    """Return whether a condition holds, None where that can't be worked out."""
    if word != "if":
        return (text.split()[0] in macros) == (word == "ifdef") if text else None
    if "__has" in text:
        return None
    text = re.sub(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", lambda m: str(int((m[1] or m[2]) in macros)), text)
    for _ in range(_MOST_ROUNDS):
        text = re.sub(r"\b[A-Za-z_]\w*\b(?!\s*\()", lambda m: f"({macros.get(m[0], '0')})", text)
    text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b", lambda m: str(int(m[1], 0)), text)
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    try:
        return bool(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(each)) for each in node.values]
        return int(all(values) if isinstance(node.op, ast.And) else any(values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return int(not _value(node.operand))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTE:
        return _COMPUTE[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return int(_COMPARE[type(node.ops[0])](_value(node.left), _value(node.comparators[0])))
    raise ValueError("not a condition of integers")
