"""Address spaces: pointers and references that name none, or are given memory of another.

Where a space can't be told (``auto``, templates, an input that may be ``device`` or ``constant``) nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from translator.metal_rule import Rule
from translator.metal_tokens import SPACES, Declared, Function, Tokens, close_of, members_of, split, variables_of

Finding = tuple[int, Rule, str]
"""Where in the text, the rule, and what is wrong and to do."""

POINTER, ARRAY, VALUE = "pointer", "array", "value"

MOST_OVERLOADS = 32
"""Functions of one name that a call is held against; a text with more is not made by a person."""

_OWN_TYPE = re.compile(
    r"(?:bool|u?(?:char|short|int|long)|half|b?float)[234]?|packed_\w+|(?:u?int(?:8|16|32|64)|b?float16)_t|size_t|void"
)
_CASTS = ("reinterpret_cast", "static_cast", "const_cast")


@dataclass(frozen=True)
class Memory:
    """What a name stands for: a pointer to memory of an address space, or an array or value that lies in it."""

    space: str
    how: str


Names = Mapping[str, Memory]
Overloads = Mapping[str, tuple[Function, ...]]


def missing_spaces(functions: Iterable[Function], header: Tokens, body: Tokens) -> Iterator[Finding]:
    """Yield the parameters, variables and members that are pointers or references without an address space.

    ``body`` is the kernel's own, empty for a header. A type that is a template parameter may bring its space.
    """
    for member in members_of(header):
        if _needs_space(member) and _OWN_TYPE.fullmatch(member.type[-1]):
            yield member.at, Rule.MISSING_ADDRESS_SPACE, _missing(member, "member")
    for function in functions:
        for parameter in function.parameters:
            points = parameter.how in ("*", "&") or (parameter.how == "" and parameter.extents)
            if points and not parameter.space and not function.template & set(parameter.type):
                yield parameter.at, Rule.MISSING_ADDRESS_SPACE, _missing(parameter, "parameter")
        for local in variables_of(function.body):
            if _needs_space(local) and not function.template & set(local.type):
                yield local.at, Rule.MISSING_ADDRESS_SPACE, _missing(local, "variable")
    for local in variables_of(body):
        if _needs_space(local):
            yield local.at, Rule.MISSING_ADDRESS_SPACE, _missing(local, "variable")


def _needs_space(local: Declared) -> bool:
    return local.how in ("*", "&") and not local.space and "auto" not in local.type


def _missing(declared: Declared, what: str) -> str:
    shown = f"the {what} '{declared.name}'" if declared.name else f"a {what}"
    kind = "reference" if declared.how == "&" else "pointer"
    return (
        f"{shown} is a {kind} without an address space: write device, threadgroup, constant or thread before its type"
    )


def mixed_spaces(functions: Overloads, body: Tokens, known: Names) -> Iterator[Finding]:
    """Yield where a pointer or reference gets memory of another address space, in one function's body.

    ``functions`` are those that it can call, ``known`` its parameters and what stands outside of it.
    """
    locals_ = list(variables_of(body))
    names = {**known, **memory_of(locals_, outside=known)}
    for local in locals_:
        if local.how == "*" and local.space and local.value and not local.extents:
            yield from _given(local.at, f"'{local.name}'", local.space, points_to(local.value, names))
        elif local.how == "&" and local.space and local.value and "const" not in local.type:
            yield from _given(local.at, f"'{local.name}'", local.space, _lies_in(local.value, names))
    for index, token in enumerate(body):
        before = body[index - 1].text if index else ";"
        after = body[index + 1].text if index + 1 < len(body) else ""
        own = names.get(token.text)
        if after == "=" and before in (";", "{", "}") and own and own.how == POINTER:
            end = next((at for at in range(index, len(body)) if body[at].text == ";"), len(body))
            yield from _given(token.at, f"'{token.text}'", own.space, points_to(body[index + 2 : end], names))
        elif after == "(" and before not in (".", "->", "::") and token.text in functions:
            yield from _call(functions[token.text], body, index, names)
        elif cast := _cast(body, index):
            space, begin = cast
            yield from _given(token.at, "this cast", space, points_to(_operand(body, begin), names))


def memory_of(declared: Iterable[Declared], *, outside: Names | None = None) -> dict[str, Memory]:
    """Return what names stand for.

    One that is declared in two ways in different blocks, or anew for something outside, or can't be told, is left out.
    """
    found: dict[str, Memory | None] = {}
    for one in declared:
        memory: Memory | None = None
        if one.how in ("*", "&") and one.space and not one.extents:
            memory = Memory(one.space, POINTER if one.how == "*" else VALUE)
        elif not one.how and "auto" not in one.type:
            memory = Memory(one.space or "thread", ARRAY if one.extents else VALUE)
        unsure = one.name in (outside or {}) or found.get(one.name, memory) != memory
        found[one.name] = None if unsure else memory
    return {name: memory for name, memory in found.items() if memory is not None}


def points_to(value: Tokens, names: Names) -> str:
    """Return the address space that a pointer's value points to, "" where that can't be told.

    Told are a cast, ``name``, ``name + offset``, ``&name[...]`` and ``&name``.
    """
    while value and value[0].text == "(" and close_of(value, 0) == len(value) - 1:
        value = value[1:-1]
    if not value or any(token.text == "?" for token in value):
        return ""
    if cast := _cast(value, 0):
        return cast[0]
    if value[0].text == "&":
        return _lies_in(value[1:], names)
    memory = names.get(value[0].text)
    whole = len(value) == 1 or value[1].text in ("+", "-")
    return memory.space if memory and memory.how != VALUE and whole else ""


def _lies_in(place: Tokens, names: Names) -> str:
    """Return the address space of ``name`` or ``name[...]``, "" where that can't be told."""
    memory = names.get(place[0].text) if place else None
    if memory is None:
        return ""
    if len(place) == 1:
        return memory.space if memory.how != POINTER else ""
    indexed = place[1].text == "[" and close_of(place, 1) == len(place) - 1
    return memory.space if indexed and memory.how != VALUE else ""


def _cast(tokens: Tokens, at: int) -> tuple[str, int] | None:
    """Return the space of a cast at ``at``, ``(device T*)`` or by its keyword, and where its operand begins."""
    if tokens[at].text == "(":
        closed = close_of(tokens, at)
        inner, begin = tokens[at + 1 : closed], closed + 1
    elif tokens[at].text in _CASTS:
        begin = next((index for index in range(at, len(tokens)) if tokens[index].text == "("), at)
        inner = tokens[at + 2 : begin - 1]
    else:
        return None
    if not inner or inner[-1].text != "*" or any(token.text in "(),;=+-" for token in inner):
        return None
    space = next((token.text for token in inner if token.text in SPACES), "")
    return (space, begin) if space else None


def _operand(body: Tokens, begin: int) -> Tokens:
    """Return what a cast applies to, if it is a name, ``&name[...]`` or stands in brackets."""
    if begin < len(body) and body[begin].text == "(":
        return body[begin + 1 : close_of(body, begin)]
    end = begin + 1 + (begin < len(body) and body[begin].text == "&")
    follows = body[end].text if end < len(body) else ";"
    if follows == "[" and body[begin].text == "&":
        return body[begin : close_of(body, end) + 1]
    return () if follows in ("[", "(", ".", "->", "::", "<") else body[begin:end]


def _call(overloads: tuple[Function, ...], body: Tokens, index: int, names: Names) -> Iterator[Finding]:
    """Yield an argument that no function of that name takes, for its address space."""
    arguments = split(body[index + 2 : close_of(body, index + 1)])
    if len(overloads) > MOST_OVERLOADS or not all(
        _least(function) <= len(arguments) <= len(function.parameters) for function in overloads
    ):
        return
    for number, argument in enumerate(arguments):
        refused = [pair for function in overloads if (pair := _refused(function.parameters[number], argument, names))]
        if len(refused) == len(overloads):
            wanted, found = refused[0]
            yield from _given(argument[0].at, f"argument {number + 1} of '{body[index].text}'", wanted, found)


def _least(function: Function) -> int:
    return sum(parameter.value is None for parameter in function.parameters)


def _refused(parameter: Declared, argument: Tokens, names: Names) -> tuple[str, str] | None:
    """Return the space that a parameter wants and that of its argument, None where they may fit."""
    if parameter.how == "*":
        found = points_to(argument, names)
    elif parameter.how == "&" and "const" not in parameter.type:  # a const reference may be of a copy
        found = _lies_in(argument, names)
    else:
        return None
    return (parameter.space, found) if found and parameter.space and found != parameter.space else None


def _given(at: int, what: str, wanted: str, found: str) -> Iterator[Finding]:
    if found and found != wanted:
        yield (
            at,
            Rule.MIXED_ADDRESS_SPACE,
            f"{what} is of address space '{wanted}' and gets memory of '{found}': "
            "no pointer goes from one to the other; change its type, or copy the values",
        )
