"""Definitions that differ in address space alone: in Metal each stands for itself, in C++ all but one are too many.

Where their text is the same but for the words of address spaces, the first stands for all of them. What differs in more
is left for the compiler to refuse.
"""

from __future__ import annotations

from collections import defaultdict

from search.devices.simulator.scopes import Item, items_in, scopes_in
from search.devices.simulator.tokens import Token, pairs

SPACES = frozenset({"device", "thread", "threadgroup"})


def drop_doubles(tokens: list[Token], *, whole: bool) -> None:
    """Blank what is defined once more for another address space; not ``whole``: only in the classes of ``tokens``."""
    partner = pairs(tokens)
    if whole:
        _drop_within(tokens, list(items_in(tokens, partner, 0, len(tokens))))
    for within_class, items in list(scopes_in(tokens, partner, 0, len(tokens))):
        _drop_within(tokens, items)
        for item in filter(None, items if within_class else ()):
            _free_operator(tokens, item)


def _free_operator(tokens: list[Token], item: Item) -> None:
    """Make an operator that is specialized within its class one of its own: GCC takes no specialization there."""
    words = [at for at in range(item.begin, item.end) if not tokens[at].blank]
    texts = [tokens[at].text for at in words]
    end = next((at for at, text in enumerate(texts) if text in ("(", "{")), 0)
    if texts[:3] == ["template", "<", ">"] and "operator" in texts[:end]:
        for at in words[:3]:
            tokens[at].text = " "


def _drop_within(tokens: list[Token], items: list[Item | None]) -> None:
    seen: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for item in items:
        if item is None:  # what stands in another branch of an #if is none too many
            seen.clear()
            continue
        words = tuple(tokens[at].text for at in range(item.begin, item.end) if not tokens[at].blank)
        if "(" not in words and item.body < 0:
            continue
        written = seen[_without_spaces(words)]
        if written and words not in written:
            for at in range(item.begin, item.end):
                tokens[at].text, tokens[at].kind = "\n" * tokens[at].text.count("\n") or " ", "space"
        written.add(words)


def _without_spaces(words: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    for at, word in enumerate(words):
        builds = words[at - 1 : at + 2] == (")", "constant", ":")  # of a constructor, no const
        plain = "const" if word == "constant" else word
        if plain not in SPACES and not builds and not (plain == "const" and kept and kept[-1] == "const"):
            kept.append(plain)
    return tuple(kept)
