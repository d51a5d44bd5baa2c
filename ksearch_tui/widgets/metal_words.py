"""The words of Metal that a CUDA primitive or pattern leads to: what a line of any kernel can have in common with it.

A word counts when it stands in the Metal code of the table's row or pattern and belongs to Metal: a built-in, an
address space that matters (``threadgroup``), a vector type, a function that is called. Scalar types and the words of
plain C++ don't: every kernel has them.
"""

from __future__ import annotations

import re
from functools import cache

from translator.pattern_table import load_patterns
from translator.primitives import load_primitives

WORD = re.compile(r"[A-Za-z_]\w*")
_BUILT_IN = re.compile(
    r"(?:simd|simdgroup|threadgroup|threadgroups|thread|threads|quad|dispatch|atomic|mem)_\w+|"
    r"(?:float|half|bfloat|u?int|u?short|u?char)[234]|as_type|INFINITY|popcount|clz|ctz"
)
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_SHARED = re.compile(r"\bthreadgroup\s+\w+\s+\w+\[")
_COMMON = frozenset(
    (
        "alignas", "bfloat", "bfloat16_t", "bool", "char", "float", "for", "half", "if", "int", "long", "max", "min",
        "mem_device", "mem_flags", "mem_none", "mem_threadgroup", "return", "short", "size_t", "sizeof",
        "static_assert", "switch", "uchar", "uint", "ulong", "ushort", "while",
    )
)  # fmt: skip


def words_of(text: str) -> frozenset[str]:
    """Return the identifiers of a text."""
    return frozenset(WORD.findall(text))


@cache
def primitive_words() -> dict[str, frozenset[str]]:
    """Return the words of Metal of each row of the table, by its id."""
    found = {}
    for primitive in load_primitives():
        code = primitive.example
        if primitive.kind in ("direct", "idiom") and not primitive.prose:
            code += f"\n{primitive.metal}"
        found[primitive.id] = _metal_words(code, primitive.metal)
    return found


@cache
def pattern_words() -> dict[str, frozenset[str]]:
    """Return the words of Metal of each pattern, by its name; ``when`` and ``trap`` name what does the same."""
    return {pattern.name: _metal_words(pattern.metal, f"{pattern.when} {pattern.trap}") for pattern in load_patterns()}


def _metal_words(code: str, prose: str) -> frozenset[str]:
    """Return Metal's words in code, and in prose those that can't be English."""
    return metal_words(code) | {word for word in WORD.findall(prose) if "_" in word and _BUILT_IN.fullmatch(word)}


def metal_words(code: str) -> frozenset[str]:
    """Return the words of Metal in some code: built-ins wherever they stand, functions where they are called."""
    words = {word for word in WORD.findall(code) if _BUILT_IN.fullmatch(word)} | set(_CALLED.findall(code))
    if _SHARED.search(code):
        words.add("threadgroup")
    return frozenset(words - _COMMON)
