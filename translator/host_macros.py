"""Macros of host code that launch: put in place before the host is followed, as the preprocessor would."""

from __future__ import annotations

import re
from functools import lru_cache

from translator.cuda_source import CudaSource, parse_cuda
from translator.macro_text import Macro, expand, macros_in, words_of
from translator.span import Span

_DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:[^\n\\]|\\[\s\S])*")
_CALLS = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*\(")
_FUNCTION_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")


@lru_cache(maxsize=2)
def with_launches_in_place(source: CudaSource) -> CudaSource:
    """Return the source with the macros of its host functions put in place that launch, or call what launches.

    Lines keep their numbers; offsets do not.
    """
    macros = [(name, macro, node.start_byte) for name, macro, node in macros_in(source) if macro[0] is not None]
    launching = _launching(source, {name: macro for name, macro, _ in macros})
    if not launching:
        return source
    parts, end = [], 0
    for span in source.host_functions:
        if span.start < end:
            continue
        # The last definition that is known there: a name may be defined anew for each function.
        known = {name: macro for name, macro, at in macros if name in launching and at < span.end}
        text = source.text[span.start : span.end]
        if known and words_of(known).search(text):
            text = expand(_DIRECTIVE.sub(_blank, text), known, words_of(known))
        parts += [source.text[end : span.start], text]
        end = span.end
    text = "".join([*parts, source.text[end:]])
    return parse_cuda(text, source.path) if text != source.text else source


def _blank(directive: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", directive[0])


def _launching(source: CudaSource, macros: dict[str, Macro]) -> frozenset[str]:
    """Return the names of the macros that launch: themselves, by a function or a macro that they call or are given."""
    bodies = {_name_of(source, span): source.text[span.start : span.end] for span in source.host_functions}
    values = {name: value for name, (_, value) in macros.items()}
    given = {name for name, (parameters, value) in macros.items() if set(_CALLS.findall(value)) & set(parameters or ())}
    found = {name for name, text in {**bodies, **values}.items() if "<<<" in text}
    while True:
        more = {
            name for name, text in {**bodies, **values}.items()
            if name not in found and set(_CALLS.findall(text)) & found
        }  # fmt: skip
        if not more:
            break
        found |= more
    launching = found & set(values)
    return frozenset(launching | given if found else launching)


def _name_of(source: CudaSource, span: Span) -> str:
    match = _FUNCTION_NAME.search(source.text, span.start, span.end)
    return match[1] if match else ""
