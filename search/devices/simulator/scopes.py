"""The scopes of a text, and what stands in each: definitions and declarations, found on tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search.devices.simulator.functions import closing_angle
from search.devices.simulator.tokens import Token, following

_CLASSES = frozenset({"struct", "class", "union"})
_ACCESS = frozenset({"public", "private", "protected"})


@dataclass(frozen=True)
class Item:
    """A definition or declaration of one scope: where it begins and ends, and its last braces (-1 for none)."""

    begin: int
    end: int
    body: int


def scopes_in(
    tokens: list[Token], partner: dict[int, int], begin: int, end: int
) -> Iterator[tuple[bool, list[Item | None]]]:
    """Yield the items of each scope in this one, and whether it is a class; None stands for a preprocessor line."""
    for item in items_in(tokens, partner, begin, end):
        if item is not None and item.body >= 0:
            word = tokens[_after_template(tokens, item.begin)].text
            if word in _CLASSES or word == "namespace":
                inside = item.body + 1, partner[item.body]
                yield word in _CLASSES, list(items_in(tokens, partner, *inside))
                yield from scopes_in(tokens, partner, *inside)


def items_in(tokens: list[Token], partner: dict[int, int], at: int, end: int) -> Iterator[Item | None]:
    """Yield what stands between two indices, in order; None stands for a preprocessor line."""
    begin, body = -1, -1
    while at < end:
        token = tokens[at]
        if token.directive:
            yield None
            while at < end and tokens[at].directive:
                at += 1
            begin, body = -1, -1
            continue
        if begin < 0 and not token.blank and token.text != ";":
            begin = at
        if token.text in ("(", "[", "{") and at in partner:
            body = at if token.text == "{" else body
            at = partner[at]
            if token.text == "{" and begin >= 0 and _ends(tokens, begin, at):
                yield Item(begin, at + 1, body)
                begin, body = -1, -1
        elif token.text == ";" and begin >= 0:
            yield Item(begin, at + 1, body)
            begin, body = -1, -1
        elif token.text == ":" and begin >= 0 and tokens[begin].text in _ACCESS:
            begin = -1
        at += 1


def _ends(tokens: list[Token], begin: int, closed: int) -> bool:
    """Return whether the item at ``begin`` ends with the braces that close at ``closed``: a function or namespace."""
    after = following(tokens, closed)
    if after < len(tokens) and tokens[after].text in (",", "{", ";", ")"):
        return False
    return tokens[_after_template(tokens, begin)].text not in (*_CLASSES, "enum")


def _after_template(tokens: list[Token], begin: int) -> int:
    """Return where what follows ``template <...>`` at ``begin`` is, or ``begin``."""
    while tokens[begin].text == "template":
        opened = following(tokens, begin)
        closed = closing_angle(tokens, opened) if opened < len(tokens) and tokens[opened].text == "<" else -1
        after = following(tokens, closed) if closed >= 0 else len(tokens)
        if after >= len(tokens):
            return begin
        begin = after
    return begin
