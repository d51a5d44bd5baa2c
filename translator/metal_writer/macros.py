"""The macros of a source: those that can stand in Metal as they are, and the others, put in place before parsing."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from translator.cuda_source import CudaSource, parse_cuda
from translator.macro_text import WORD, Macro, expand, macros_in, words_of

_PLAIN = frozenset(
    [
        "float",
        "int",
        "unsigned",
        "long",
        "short",
        "char",
        "bool",
        "size_t",
        "sizeof",
        "true",
        "false",
        "uint32_t",
        "int32_t",
        "uint64_t",
        "int64_t",
    ]
)
_TOUCHES = re.compile(r'[#"\[]|\+\+|--|->|(?<![=!<>])=(?!=)|(?:^|[(,+\-*/%&|!~?:<>])\s*[*&](?![&=])')
"""What a macro that reads or writes memory has; such a one is put in place, so that it is seen what it touches."""


@lru_cache(maxsize=2)
def expand_macros(source: CudaSource) -> CudaSource:
    """Return the source with the macros of GPU code put in place that Metal could not have as they stand.

    A macro of literals, operators, its own parameters and other such macros stays. Lines keep their numbers.
    """
    macros = definitions(source)
    kept = carried_macros(macros)
    unfit = {name: macro for name, macro in macros.items() if name not in kept}
    if not unfit:
        return _with_nested_loops(source)
    words = words_of(unfit)
    parts, end = [], 0
    for function in sorted((*source.kernels, *source.device_functions), key=lambda f: f.span.start):
        if function.span.start >= end:  # not within the one before
            parts += [source.text[end : function.span.start],
                      expand(source.text[function.span.start : function.span.end], unfit, words)]  # fmt: skip
            end = function.span.end
    text = "".join([*parts, source.text[end:]])
    return _with_nested_loops(parse_cuda(text, source.path) if text != source.text else source)


def _with_nested_loops(source: CudaSource) -> CudaSource:
    """Return the source parsed without the pragmas that stand between a loop and its only statement.

    The grammar takes such a pragma for the end of the loop. The text keeps it.
    """
    text = source.text
    for node in source.nodes_of("for_statement", "while_statement"):
        body, after = node.child_by_field_name("body"), node.next_sibling
        if body is not None and body.start_byte == body.end_byte and after is not None and after.type == "preproc_call":
            pragma = source.text_of(after).rstrip()
            text = text[: after.start_byte] + " " * len(pragma) + text[after.start_byte + len(pragma) :]
    return replace(parse_cuda(text, source.path), text=source.text) if text != source.text else source


def carried_macros(macros: dict[str, Macro]) -> frozenset[str]:
    """Return the names of the macros that mean the same in Metal."""
    fit: set[str] = set()
    while True:
        more = {
            name for name, (parameters, value) in macros.items()
            if name not in fit and value.strip() and not _TOUCHES.search(value)
            and all(word in _PLAIN or word in fit or word in (parameters or ())
                    for word in WORD.findall(re.sub(r"\b\d[\w.]*(?:[eE][+-]\d+\w*)?", "0", value)))
        }  # fmt: skip
        if not more:
            return frozenset(fit)
        fit |= more


def definitions(source: CudaSource) -> dict[str, Macro]:
    """Return parameters (None for a plain name) and value of each macro of the source."""
    return {name: macro for name, macro, _ in macros_in(source)}
