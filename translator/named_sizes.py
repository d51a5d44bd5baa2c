"""What names stand for that are no variables: constants, macros, members that all objects of a struct share.

``Traits::kThreads`` is read where ``Traits`` is a struct of the source or stands for an instance of a struct template:
members may name each other, those of base classes, and the template's parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from translator.c_integers import Scope, read_size, read_text
from translator.c_types import split_types
from translator.cuda_source import CudaSource, shorten
from translator.definitions import Definitions
from translator.sizes import Size, UnreadableSize
from translator.struct_types import Struct

MOST_NAMES = 12
"""How deep names may refer to each other."""
MOST_LOOKUPS = 20_000
"""How many names are looked up while one function is followed; real ones need a few hundred."""

_MOST_ALIASES = 4
_LONGEST_TYPE = 500
_MEMBER_TYPE = re.compile(
    r"(?P<const>(?:const\s+)?)(?:typename\s+)?(?P<owner>.*[\w>])::(?P<name>\w+)(?P<stars>(?:\s*[*&])*)", re.DOTALL
)
_INSTANCE = re.compile(r"(?:typename\s+)?(?:::)?((?:\w+::)*)(\w+)\s*(?:<(.*)>)?", re.DOTALL)


class Naming(Scope, Protocol):
    """A scope of a source.

    ``env`` holds its variables and ``types`` what names of types mean in it; ``instance`` is the struct that it stands
    in, None outside of one; ``named`` counts the names that have led to each other, ``lookups`` all of them.
    """

    source: CudaSource
    definitions: Definitions
    env: Any
    types: dict[str, str]
    instance: Instance | None
    named: int
    lookups: Iterator[int]

    def within(self, text: str) -> Self:
        """Return the same scope for an expression of another text."""


@dataclass(frozen=True)
class Instance:
    """A struct with its template arguments as written, and where those are to be read."""

    struct: Struct
    arguments: Mapping[str, str]
    outside: Naming


def named_size(text: str, scope: Naming) -> Size:
    """Return what a name stands for; raise `UnreadableSize` when the source doesn't say."""
    if scope.named >= MOST_NAMES:
        raise UnreadableSize(f"'{shorten(text, 40)}' is defined by itself, or by too many names in turn")
    owner, _, member = "".join(text.split()).rpartition("::")
    instance = instance_of(owner, scope) if owner else scope.instance
    if instance is not None and (found := _inside(member, instance, scope.named)) is not None:
        return found
    definitions, last = scope.definitions, owner.rpartition("::")[2]
    label = f"{last}::{member}" if last in definitions.enums else member
    if label in definitions.enumerators:
        return read_text(definitions.enumerators[label], _deeper(scope, scope.text, scope.named))
    if member in definitions.constants:
        return read_size(definitions.constants[member], _deeper(scope, scope.source.text, scope.named))
    if text in definitions.macros:
        return read_text(definitions.macros[text], _deeper(scope, scope.text, scope.named))
    holders = [struct for struct in definitions.structs.values() if member in struct.constants]
    if not owner and len(holders) == 1:  # from a function of that struct
        instance = Instance(holders[0], holders[0].defaults, scope)
        return read_size(holders[0].constants[member], _scope_in(instance, scope.named))
    raise UnreadableSize(f"the source doesn't say what '{shorten(text, 40)}' is")


def resolved_type(type_text: str, scope: Naming) -> str:
    """Return a type with the names of template parameters, aliases and members of structs replaced."""
    aliases = scope.definitions.aliases
    for _ in range(_MOST_ALIASES):
        resolved = re.sub(
            r"(?<![\w:])[A-Za-z_]\w*",
            lambda match: scope.types.get(match[0], aliases.get(match[0], match[0])),
            type_text,
        )
        if resolved == type_text or len(resolved) > _LONGEST_TYPE:
            break
        type_text = resolved
    return " ".join(_member_type(type_text, scope).split())


def instance_of(type_text: str, scope: Naming) -> Instance | None:
    """Return the struct of the source that a type names, None when it names none.

    Raises `UnreadableSize` for a template whose specialisations depend on parameters of their own.
    """
    match = _INSTANCE.fullmatch(resolved_type(type_text, scope))
    struct = scope.definitions.structs.get(match[2]) if match else None
    if match is None or struct is None:
        return None
    arguments = split_types(match[3] or "")
    if struct.special:
        special = struct.special.get("".join(f"{match[2]}<{','.join(arguments)}>".split()))
        if special is None and any(other.template for other in struct.special.values()):
            raise UnreadableSize(f"which specialisation '{shorten(match[0], 40)}' is isn't followed")
        struct = special or struct
    given = dict(zip(struct.template, arguments, strict=False))
    return Instance(struct, dict(struct.defaults) | given, scope)


def _inside(name: str, instance: Instance, named: int) -> Size | None:
    """Return what a name means in a struct: a parameter of its template, or a member of it or of a base class."""
    struct, outside = instance.struct, instance.outside
    if name in instance.arguments:
        return read_text(instance.arguments[name], _deeper(outside, outside.text, named))
    inside = _scope_in(instance, named)
    if name in struct.constants:
        return read_size(struct.constants[name], inside)
    for member in struct.members:
        base = instance_of(member.type, inside) if not member.name else None
        if base is not None and (found := _inside(name, base, inside.named)) is not None:
            return found
    return None


def _member_type(text: str, scope: Naming) -> str:
    """Return what ``Traits::input_t`` names where a struct of the source says so, the text as it is elsewhere."""
    match = _MEMBER_TYPE.fullmatch(text)
    if match is None:
        return text
    try:
        instance = instance_of(match["owner"], _deeper(scope, scope.text, scope.named))
        if instance is None or match["name"] not in instance.struct.aliases:
            return text
        inside = _scope_in(instance, scope.named)
    except UnreadableSize:
        return text
    return match["const"] + resolved_type(instance.struct.aliases[match["name"]], inside) + match["stars"]


def _scope_in(instance: Instance, named: int) -> Naming:
    """Return the scope of the members of a struct."""
    outside = instance.outside
    inside = _deeper(outside, outside.source.text, named)
    inside.env, inside.instance = {}, instance
    inside.types = {
        **instance.struct.aliases,
        **{name: resolved_type(text, outside) for name, text in instance.arguments.items() if _names_type(text)},
    }
    return inside


def _names_type(text: str) -> bool:
    return not re.fullmatch(r"[\d\s+*/%()-]+|true|false", text)


def _deeper(scope: Naming, text: str, named: int) -> Naming:
    """Return a scope for what a name stands for; raise `UnreadableSize` when too many names have led to it."""
    if named >= MOST_NAMES or next(scope.lookups) >= MOST_LOOKUPS:
        raise UnreadableSize("too many names lead to each other")
    inner = scope.within(text)
    inner.named = named + 1
    return inner
