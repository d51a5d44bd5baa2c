"""The macros of a source: those that can stand in Metal as they are, and the others, put in place before parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda
from translator.reach import blank_text

_WORD = re.compile(r"\b[A-Za-z_]\w*")
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
_MOST_ROUNDS = 12


@lru_cache(maxsize=2)
def expand_macros(source: CudaSource) -> CudaSource:
    """Return the source with the macros of GPU code put in place that Metal could not have as they stand.

    A macro of literals, operators, its own parameters and other such macros stays. Lines keep their numbers.
    """
    macros = {name: macro for name, macro in _definitions(source)}
    kept = carried_macros(macros)
    unfit = {name: macro for name, macro in macros.items() if name not in kept}
    if not unfit:
        return _with_nested_loops(source)
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, unfit))})\b")
    parts, end = [], 0
    for function in sorted((*source.kernels, *source.device_functions), key=lambda f: f.span.start):
        if function.span.start >= end:  # not within the one before
            parts += [source.text[end : function.span.start],
                      _expand(source.text[function.span.start : function.span.end], unfit, words)]  # fmt: skip
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


Macro = tuple[tuple[str, ...] | None, str]


def carried_macros(macros: dict[str, Macro]) -> frozenset[str]:
    """Return the names of the macros that mean the same in Metal."""
    fit: set[str] = set()
    while True:
        more = {
            name for name, (parameters, value) in macros.items()
            if name not in fit and value.strip() and not _TOUCHES.search(value)
            and all(word in _PLAIN or word in fit or word in (parameters or ())
                    for word in _WORD.findall(re.sub(r"\b\d[\w.]*(?:[eE][+-]\d+\w*)?", "0", value)))
        }  # fmt: skip
        if not more:
            return frozenset(fit)
        fit |= more


def definitions(source: CudaSource) -> dict[str, Macro]:
    """Return parameters (None for a plain name) and value of each macro of the source."""
    return dict(_definitions(source))


def _definitions(source: CudaSource) -> Iterator[tuple[str, Macro]]:
    for node in source.nodes_of("preproc_def", "preproc_function_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        parameters = node.child_by_field_name("parameters")
        if name is not None:
            text = re.sub(r"\\\r?\n", " ", source.text_of(value)).strip() if value is not None else ""
            text = re.sub(r"//.*|/\*.*?\*/", "", text).strip()
            yield source.text_of(name), (_names(source, parameters) if parameters is not None else None, text)


def _names(source: CudaSource, parameters: Node) -> tuple[str, ...]:
    return tuple(source.text_of(child) for child in parameters.named_children)


def _expand(text: str, macros: dict[str, Macro], words: re.Pattern[str]) -> str:
    at, rounds = 0, 0
    while rounds < _MOST_ROUNDS * 100:
        rounds += 1
        match = words.search(blank_text(text), at)
        if match is None:
            return text
        parameters, value = macros[match.group()]
        end = match.end()
        arguments: tuple[str, ...] = ()
        if parameters is not None:
            end, arguments = _arguments(text, match.end())
            arguments = () if not parameters and arguments == ("",) else arguments
            if len(arguments) != len(parameters):
                at = match.end()
                continue
            given: dict[str, str] = dict(zip(parameters, arguments, strict=True))
            value = _with_arguments(value, given)
        if match.group() in _WORD.findall(value):
            at = match.end()
            continue
        lines = text[match.start() : end].count("\n")
        text = text[: match.start()] + " ".join(value.split()) + "\n" * lines + text[end:]
        at = match.start()
    return text


def _with_arguments(value: str, given: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: given.get(match.group(), match.group()), value)


def _arguments(text: str, at: int) -> tuple[int, tuple[str, ...]]:
    """Return where a macro's arguments end, and what they are."""
    code = blank_text(text)
    while at < len(code) and code[at].isspace():
        at += 1
    if at >= len(code) or code[at] != "(":
        return at, ()
    depth, begin, parts = 0, at + 1, []
    for index in range(at, len(code)):
        character = code[index]
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            parts.append(text[begin:index].strip())
            begin = index + 1
        if depth == 0:
            return index + 1, tuple(parts)
    return len(code), ()
