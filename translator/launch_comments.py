"""Shapes that people write beside parameters: ``const float* q,  // [batch, heads, length, dim]``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tree_sitter import Node

from translator.cuda_source import CudaSource
from translator.definitions import parameter_of
from translator.size_text import parse_size
from translator.sizes import Size, UnreadableSize, names_in, product
from translator.substitution import substitute

_SHAPE = re.compile(r"\[([^\[\]]*)\]((?:\s*\[[^\[\]]*\])*)|\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_BELOW = re.compile(
    r"(?:\b(?:each|all|every|values?|ids?|entries|elements)\b[^<]*|[\])]\s*,?\s*)<\s*([A-Za-z_]\w*(?:\s*[-+*]\s*\w+)?)"
)
_COMMENT_LINE = re.compile(r"\n[ \t]*//([^\n]*)")
_NAMED = re.compile(r"(?m)^[\s/*]*(?:@param\s+)?(?P<name>[A-Za-z_]\w*)\s*(?:[:=]|--?|\s)\s*(?P<shape>[\[(].*)$")


@dataclass(frozen=True)
class Remark:
    """What a comment says of an array: its shape, () when it has none, and what its elements stay below, if it does."""

    shape: tuple[Size, ...]
    below: Size | None


def remarks_beside(source: CudaSource, parameters: Sequence[Node], above: Node | None) -> dict[str, Remark]:
    """Return what comments say of each pointer parameter, by name; what doesn't read as a shape or a bound is left out.

    A comment counts when it stands on the parameter's line after it, or in the block of comments above the function
    as ``name: [rows, cols]``. A shape in parentheses needs at least two sizes.
    """
    found: dict[str, Remark] = {}
    for at, parameter in enumerate(parameters):
        type_text, text = parameter_of(source, parameter)
        if "*" not in type_text:
            continue
        following = parameters[at + 1].start_byte if at + 1 < len(parameters) else len(source.text)
        end = source.text.find("\n", parameter.end_byte)
        line = source.text[parameter.end_byte : end if end >= 0 else len(source.text)]
        if following < end:
            line = source.text[parameter.end_byte : following]
        if (start := _comment(line)) >= 0 and (remark := _remark(line[start:] + _going_on(source, line[start:], end))):
            found[text] = remark
    for match in _NAMED.finditer(_text_above(source, above)) if above is not None else ():
        if match["name"] not in found and (remark := _remark(match["shape"])):
            found[match["name"]] = remark
    return found


def _remark(text: str) -> Remark | None:
    shape = _shape(text)
    below: Size | None = None
    if match := _BELOW.search(text):
        with suppress(UnreadableSize):
            below = parse_size(match[1])
    return Remark(tuple(shape or ()), below) if shape or below is not None else None


def extent_of(shape: Sequence[Size], sizes: Mapping[str, Size]) -> tuple[Size, set[str]]:
    """Return the elements of a shape whose names mean ``sizes``, and the names that mean nothing there."""
    lower = {text.lower(): size for text, size in sizes.items()}
    unknown: set[str] = set()
    total: list[Size] = []
    for size in shape:
        replaced = {}
        for atom in names_in(size):
            if atom.lower() in lower:
                replaced[atom] = sizes.get(atom, lower[atom.lower()])
            else:
                unknown.add(atom)
        total.append(substitute(size, replaced))
    return product(total), unknown


def _going_on(source: CudaSource, comment: str, end: int) -> str:
    """Return what the comments of the next lines add to a shape that isn't closed in its own."""
    added = ""
    while comment.startswith("//") and (comment + added).count("[") > (comment + added).count("]"):
        match = _COMMENT_LINE.match(source.text, end)
        if match is None:
            return ""
        added, end = f"{added} {match[1]}", match.end()
    return added


def _comment(line: str) -> int:
    return next((at for mark in ("//", "/*") if (at := line.find(mark)) >= 0), -1)


def _shape(text: str) -> list[Size] | None:
    match = _SHAPE.search(text)
    if match is None:
        return None
    if match[3] is not None:
        parts = _split(match[3])
        if len(parts) < 2:
            return None
    else:
        parts = _split(match[1]) + [part.strip("[] ") for part in re.findall(r"\[[^\[\]]*\]", match[2])]
    try:
        sizes = [parse_size(part.replace("/", "//")) for part in parts]
    except UnreadableSize:
        return None
    return sizes or None


def _split(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^()]*\))|\s[x×]\s", text) if part.strip()]


def _text_above(source: CudaSource, node: Node) -> str:
    """Return the comments directly above a function (and its template line)."""
    if node.parent is not None and node.parent.type == "template_declaration":
        node = node.parent
    texts: list[str] = []
    before = node.prev_named_sibling
    while before is not None and before.type == "comment" and len(texts) < 60:
        texts.insert(0, source.text_of(before))
        before = before.prev_named_sibling
    return "\n".join(texts)
