"""Macros of a source as text: what they are, and what a text is with their values in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from translator.cuda_source import CudaSource
from translator.reach import blank_text

Macro = tuple[tuple[str, ...] | None, str]
"""Parameters (None for a plain name; the last may be ``...``) and value."""

WORD = re.compile(r"\b[A-Za-z_]\w*")
_PARAMETER = re.compile(r"#?\s*\b[A-Za-z_]\w*")
_PASTE = re.compile(r"\s*##\s*")
_MOST_ROUNDS = 1200


def macros_in(source: CudaSource) -> Iterator[tuple[str, Macro, Node]]:
    """Yield the name, the macro and the directive of each ``#define``, in the order of the text."""
    for node in source.nodes_of("preproc_def", "preproc_function_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        parameters = node.child_by_field_name("parameters")
        if name is not None:
            text = re.sub(r"\\\r?\n", " ", source.text_of(value)).strip() if value is not None else ""
            text = re.sub(r"//.*|/\*.*?\*/", "", text).strip()
            yield source.text_of(name), (_names(source, parameters) if parameters is not None else None, text), node


def words_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds any of some names in a text."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")


def expand(text: str, macros: Mapping[str, Macro], words: re.Pattern[str]) -> str:
    """Return a text with the ``macros`` (found by ``words``) put in place; lines keep their numbers."""
    at, rounds = 0, 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        match = words.search(blank_text(text), at)
        if match is None:
            return text
        parameters, value = macros[match.group()]
        end = match.end()
        if parameters is not None:
            end, arguments = _arguments(text, match.end())
            given = _given(parameters, arguments)
            if given is None:
                at = match.end()
                continue
            value = _with_arguments(value, given)
        if match.group() in WORD.findall(value):
            at = match.end()
            continue
        lines = text[match.start() : end].count("\n")
        text = text[: match.start()] + " ".join(value.split()) + "\n" * lines + text[end:]
        at = match.start()
    return text


def _names(source: CudaSource, parameters: Node) -> tuple[str, ...]:
    return tuple(source.text_of(child) for child in parameters.children if child.type in ("identifier", "..."))


def _given(parameters: tuple[str, ...], arguments: tuple[str, ...]) -> dict[str, str] | None:
    """Return the arguments by the names of the parameters, None where their number doesn't fit."""
    arguments = () if not parameters and arguments == ("",) else arguments
    if parameters[-1:] == ("...",):
        named = parameters[:-1]
        if len(arguments) < len(named):
            return None
        return {**dict(zip(named, arguments, strict=False)), "__VA_ARGS__": ", ".join(arguments[len(named) :])}
    return dict(zip(parameters, arguments, strict=True)) if len(arguments) == len(parameters) else None


def _with_arguments(value: str, given: Mapping[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        name = match[0].lstrip("# \t")
        if name not in given:
            return match[0]
        quoted = match[0][0] == "#" and value[max(match.start() - 1, 0)] != "#"
        if quoted:
            return '"' + given[name].replace("\\", "\\\\").replace('"', '\\"') + '"'
        return match[0][: len(match[0]) - len(name)] + given[name]

    return _PASTE.sub("", _PARAMETER.sub(put, value))


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
