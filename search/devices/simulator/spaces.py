"""Pointers into one address space given where another is meant: an error in Metal that plain C++ has no words for.

Only what the text says outright is judged: a name that is declared once, by itself, with something added, or as
``&name[i]``, where it is handed to a helper's parameter or becomes the value of a pointer, both with a space of their
own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from search.devices.simulator.functions import Function, closing_angle, functions_in
from search.devices.simulator.tokens import Token, following, pairs, preceding, tokenize

SPACES = frozenset({"device", "constant", "threadgroup", "thread"})
_NO_TYPE = frozenset({"return", "else", "case", "goto", "sizeof", "new", "delete", "typedef", "using", "operator"})
_AFTER_NAME = frozenset({";", "=", ",", ")", "[", "{", ":"})
_POINTER, _OBJECT = "pointer", "object"
_LONGEST_TYPE = 64  # tokens of template arguments


@dataclass(frozen=True)
class _Place:
    """What a name stands for: a pointer into (or array in) ``space``, or an object there."""

    space: str
    kind: str


@dataclass(frozen=True)
class _Piece:
    """Tokens with their brackets paired, and the line of a text that the first stands in."""

    tokens: list[Token]
    partner: dict[int, int]

    def words(self, begin: int, end: int) -> list[int]:
        """Return the indices of what is not blank."""
        return [at for at in range(begin, end) if not self.tokens[at].blank]

    def arguments(self, opened: int) -> list[list[int]]:
        """Return the tokens between the commas within the brackets at ``opened``."""
        found: list[list[int]] = [[]]
        at, closed, angles = opened + 1, self.partner[opened], 0
        while at < closed:
            token = self.tokens[at]
            angles += (token.text == "<") - (token.text == ">")
            if token.text == "," and angles <= 0:
                found.append([])
            elif not token.blank:
                inner = self.partner.get(at, at)
                found[-1] += self.words(at, max(at, inner) + 1)
                at = max(at, inner)
            at += 1
        return [argument for argument in found if argument]


def foreign_pointer(header: str, source: str, arrays: Mapping[str, str]) -> tuple[int, bool, str] | None:
    """Return the first pointer into a foreign space: its line, whether that is the header's, and what is wrong.

    ``arrays`` are the kernel's own, each with its space.
    """
    pieces = [_piece(header), _piece(source)]
    functions = [functions_in(piece.tokens) for piece in pieces]
    takes = _parameters(pieces, functions)
    shared = _declared(pieces[0], _outside(pieces[0], functions[0]))
    for function in functions[0]:
        if function.body >= 0 and function.opened >= 0:
            within = range(function.opened, function.end)
            for at, words in _mismatches(pieces[0], within, shared | _declared(pieces[0], within), takes):
                return pieces[0].tokens[at].line, True, words
    whole = range(len(pieces[1].tokens))
    kernel = {name: _Place(space, _POINTER) for name, space in arrays.items()}
    for at, words in _mismatches(pieces[1], whole, shared | kernel | _declared(pieces[1], whole), takes):
        return pieces[1].tokens[at].line, False, words
    return None


def _piece(text: str) -> _Piece:
    tokens = tokenize(text)
    return _Piece(tokens, pairs(tokens))


def _outside(piece: _Piece, functions: list[Function]) -> list[int]:
    inside = {at for function in functions for at in range(max(function.opened, 0), max(function.end, function.closed))}
    return [at for at in range(len(piece.tokens)) if at not in inside]


def _parameters(pieces: list[_Piece], functions: list[list[Function]]) -> dict[str, list[list[str | None]]]:
    """Return for each function the spaces of its parameters, None where none is written, once for each overload."""
    found: dict[str, list[list[str | None]]] = defaultdict(list)
    for piece, defined in zip(pieces, functions, strict=True):
        for function in defined:
            if function.name and function.opened >= 0:
                found[function.name].append(
                    [_space_of(piece, parameter) for parameter in piece.arguments(function.opened)]
                )
    return found


def _space_of(piece: _Piece, words: list[int]) -> str | None:
    """Return the space of the pointer or array that ``words`` declare."""
    texts = [piece.tokens[at].text for at in words]
    spaces = [text for text in texts if text in SPACES]
    return spaces[0] if len(spaces) == 1 and texts.count("*") == 1 else None


def _declared(piece: _Piece, within: range | list[int]) -> dict[str, _Place]:
    """Return the names that are declared once with a space, or as a private array."""
    found: dict[str, _Place] = {}
    times: Counter[str] = Counter()
    for at in within:
        if piece.tokens[at].kind == "name" and (before := _before_name(piece, at)):
            times[piece.tokens[at].text] += 1
            if place := _place(piece, at, before):
                found[piece.tokens[at].text] = place
    return {name: place for name, place in found.items() if times[name] == 1}


def _before_name(piece: _Piece, at: int) -> list[str]:
    """Return what stands before the name at ``at`` if it may be declared there: its type, with what belongs to it."""
    before, after = preceding(piece.tokens, at), following(piece.tokens, at)
    if before < 0 or after >= len(piece.tokens) or piece.tokens[after].text not in _AFTER_NAME:
        return []
    token = piece.tokens[before]
    if token.text not in (">", "*", "&") and (token.kind != "name" or token.text in _NO_TYPE):
        return []
    texts = [piece.tokens[index].text for index in piece.words(_begin(piece, at), at)]
    typed = texts[0].isidentifier() and not {"=", "[", ".", "->", "return", "+", "-"} & set(texts)
    return texts if typed else []


def _begin(piece: _Piece, at: int) -> int:
    """Return where the declaration (or parameter) that the name at ``at`` stands in begins."""
    while at > 0:
        text = piece.tokens[at - 1].text
        opened = preceding(piece.tokens, piece.partner.get(at - 1, 0)) if text == ")" else -1
        angle = _opening_angle(piece.tokens, at - 1) if text == ">" else -1
        if opened >= 0 and piece.tokens[opened].text == "alignas":
            at = opened
        elif angle >= 0:
            at = angle
        elif text in (";", "{", "}", "(", ",", ")"):
            break
        else:
            at -= 1
    return at


def _opening_angle(tokens: list[Token], closed: int) -> int:
    """Return where the template arguments that end at ``closed`` begin, or -1 when it is a comparison."""
    depth = 0
    for at in range(closed, max(closed - _LONGEST_TYPE, -1), -1):
        text = tokens[at].text
        depth += (text == ">") - (text == "<")
        if depth == 0:
            return at
        if text in (";", "{", "}", "(", ")"):
            break
    return -1


def _place(piece: _Piece, at: int, before: list[str]) -> _Place | None:
    """Return what a declaration of the name at ``at``, with ``before`` before it, says of it."""
    spaces = [text for text in before if text in SPACES]
    array = piece.tokens[following(piece.tokens, at)].text == "["
    if len(spaces) > 1 or before.count("*") > 1 or "auto" in before:
        return None
    if "*" in before:
        return _Place(spaces[0], _POINTER) if spaces and not array else None
    if spaces:
        return _Place(spaces[0], _POINTER if array else _OBJECT)
    return _Place("thread", _POINTER) if array and "&" not in before else None


def _mismatches(
    piece: _Piece, within: range, known: Mapping[str, _Place], takes: Mapping[str, list[list[str | None]]]
) -> Iterator[tuple[int, str]]:
    for at in within:
        token = piece.tokens[at]
        if token.kind != "name" or token.directive:
            continue
        after = following(piece.tokens, at)
        if after < len(piece.tokens) and piece.tokens[after].text == "<" and token.text in takes:
            after = following(piece.tokens, closing_angle(piece.tokens, after))
        follows = piece.tokens[after].text if after < len(piece.tokens) else ""
        before = preceding(piece.tokens, at)
        if before >= 0 and piece.tokens[before].text in (".", "->", "::"):
            continue
        if follows == "(" and token.text in takes and after in piece.partner:
            yield from _of_call(piece, at, after, known, takes[token.text])
        elif follows == "=" and (place := known.get(token.text)) and place.kind == _POINTER and before >= 0:
            end = next((to for to in range(after, len(piece.tokens)) if piece.tokens[to].text in (";", ",")), after)
            given = _given(piece, piece.words(after + 1, end), known)
            if given and given[1] != place.space and piece.tokens[before].text in ("*", ";", "{", "}"):
                words = f"'{given[0]}' is in {given[1]} memory, but '{token.text}' points into {place.space} memory"
                yield at, f"{words}: declare the pointer with '{given[1]}'"


def _of_call(
    piece: _Piece, name: int, opened: int, known: Mapping[str, _Place], overloads: list[list[str | None]]
) -> Iterator[tuple[int, str]]:
    arguments = piece.arguments(opened)
    for number, argument in enumerate(arguments):
        given = _given(piece, argument, known)
        taken = {spaces[number] if number < len(spaces) else None for spaces in overloads}
        if given and None not in taken and given[1] not in taken:
            wanted = " or ".join(sorted(filter(None, taken)))
            what = f"parameter {number + 1} of '{piece.tokens[name].text}' points into {wanted} memory"
            yield argument[0], f"'{given[0]}' is in {given[1]} memory, but {what}: add a version for {given[1]} memory"


def _given(piece: _Piece, words: list[int], known: Mapping[str, _Place]) -> tuple[str, str] | None:
    """Return the name and the space of the pointer that ``words`` are, where that is plain to see."""
    texts = [piece.tokens[at].text for at in words]
    if not texts:
        return None
    if texts[0] == "&" and len(texts) > 1 and (place := known.get(texts[1])):
        indexed = len(texts) > 2 and texts[2] == "[" and piece.partner.get(words[2]) == words[-1]
        if (place.kind == _POINTER and indexed) or (place.kind == _OBJECT and len(texts) == 2):
            return texts[1], place.space
        return None
    place = known.get(texts[0])
    if place is None or place.kind != _POINTER or (len(texts) > 1 and texts[1] != "+"):
        return None
    if any(text in ("?", "<", ">", "==", "!=", "&&", "||", "<=", ">=") for text in texts[2:]):
        return None
    return texts[0], place.space
