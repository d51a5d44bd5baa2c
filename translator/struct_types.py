"""The structs of a source: their members in order, with base classes, nested structs and arrays opened up.

A member's path is what stands after the object: ``rows``, ``dims.rows``, ``strides[1]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from translator.cuda_source import CudaSource, declared_name

MOST_MEMBERS = 256
"""The most members of a struct, those of nested structs and arrays counted one by one."""

Extent = Callable[[str], int | None]
"""Turns the text of an array's extent into a number."""

_KINDS = ("struct_specifier", "class_specifier")
_WORDS = re.compile(r"\b(?:const|volatile|struct|typename|mutable)\b|[&]|__restrict__|__grid_constant__")


@dataclass(frozen=True)
class Member:
    """A member as declared; ``extents`` are texts, ``default`` is its initial value."""

    name: str
    type: str
    extents: tuple[str, ...] = ()
    default: Node | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Struct:
    """A struct: its template parameters, its base classes as members without a name, then its own members.

    ``made``: it has a constructor, so that braces needn't fill the members in order.
    """

    name: str
    template: tuple[str, ...]
    members: tuple[Member, ...]
    made: bool


@dataclass(frozen=True)
class Part:
    """A struct, or an array in one, with what it holds in order: names are those of `Struct`, or ``[0]``, ``[1]``."""

    type: str
    parts: tuple[tuple[str, Part], ...] = ()
    default: Node | None = field(default=None, repr=False, compare=False)

    def leaves(self, path: str = "") -> Iterator[tuple[str, Part]]:
        """Yield the numbers and pointers in it with their paths."""
        if not self.parts:
            yield path, self
        for name, part in self.parts:
            yield from part.leaves(joined(path, name))


def joined(path: str, name: str) -> str:
    """Return the path of a member of what a path leads to; members of a base class have no step of their own."""
    return f"{path}.{name}" if path and name and name[0] != "[" else path + name


def read_structs(source: CudaSource) -> dict[str, Struct]:
    """Return the structs and classes that a source defines, by name."""
    found: dict[str, Struct] = {}
    for node in source.nodes:
        body = node.child_by_field_name("body") if node.type in _KINDS else None
        named = node.child_by_field_name("name") if node.type in _KINDS else None
        if body is None:
            continue
        text = source.text_of(named) if named is not None else _alias(source, node)
        if not re.fullmatch(r"\w+", text):
            continue
        outer = node.parent
        parameters = outer.child_by_field_name("parameters") if outer and outer.type == "template_declaration" else None
        template = tuple(
            re.split(r"\s*=", source.text_of(child))[0].split()[-1]
            for child in (parameters.named_children if parameters is not None else ())
            if child.type != "comment"
        )
        bases = [child for child in node.children if child.type == "base_class_clause"]
        members = [Member("", source.text_of(child)) for clause in bases for child in clause.named_children
                   if child.type != "access_specifier"]  # fmt: skip
        for child in body.named_children:
            if child.type == "field_declaration":
                members += _members(source, child)
        made = any(
            re.search(rf"(?<![\w~]){text}\s*\(", source.text_of(child).partition("{")[0])
            for child in body.named_children
            if child.type in ("function_definition", "declaration") and "default" not in source.text_of(child)
        )
        found.setdefault(text, Struct(text, template, tuple(members), made))
    return found


def open_type(type_text: str, structs: Mapping[str, Struct], aliases: Mapping[str, str], extent: Extent) -> Part | None:
    """Return what a value of a type holds; None when it is no struct that could be passed by its members."""
    parts = _open(type_text, structs, aliases, extent, 0)
    return parts if parts is not None and 0 < sum(1 for _ in parts.leaves()) <= MOST_MEMBERS and parts.parts else None


def _open(
    type_text: str, structs: Mapping[str, Struct], aliases: Mapping[str, str], extent: Extent, depth: int
) -> Part | None:
    plain = " ".join(_WORDS.sub(" ", type_text).split())
    plain = aliases.get(plain, plain)
    match = re.fullmatch(r"(?:\w+::)*(\w+)\s*(?:<(.*)>)?", plain)
    struct = structs.get(match[1]) if match and "*" not in plain else None
    if struct is None or match is None:
        return Part(type_text)
    if depth > 6:
        return None
    given = [part.strip() for part in re.split(r",(?![^<>]*>)", match[2])] if match[2] else []
    types = dict(zip(struct.template, given, strict=False))
    parts: list[tuple[str, Part]] = []
    for member in struct.members:
        text = re.sub(r"(?<![\w:])[A-Za-z_]\w*", lambda m: types.get(m[0], m[0]), member.type)
        part = _open(text, structs, aliases, extent, depth + 1)
        for size in reversed(member.extents):
            count = extent(types.get(size, size))
            if part is None or count is None or not 0 < count <= MOST_MEMBERS:
                return None
            part = Part(f"{part.type}[{count}]", tuple((f"[{at}]", part) for at in range(count)))
        if part is None:
            return None
        parts.append((member.name, Part(part.type, part.parts, member.default)))
    return Part(plain, tuple(parts))


def _alias(source: CudaSource, node: Node) -> str:
    """Return the name that a typedef gives to a struct without one."""
    outer = node.parent
    declarator = outer.child_by_field_name("declarator") if outer and outer.type == "type_definition" else None
    return source.text_of(declarator) if declarator is not None else ""


def _members(source: CudaSource, node: Node) -> list[Member]:
    words = [
        source.text_of(child) for child in node.children if child.type in ("type_qualifier", "storage_class_specifier")
    ]
    written = node.child_by_field_name("type")
    if written is None or set(words) & {"static", "constexpr"}:
        return []
    const = "const " if "const" in words else ""
    found: list[Member] = []
    for at, child in enumerate(node.children):
        if node.field_name_for_child(at) == "default_value" and found:
            last = found.pop()
            found.append(Member(last.name, last.type, last.extents, child))
        if node.field_name_for_child(at) != "declarator":
            continue
        extents: list[str] = []
        stars, inner = "", child
        while inner.type in ("array_declarator", "pointer_declarator"):
            if inner.type == "array_declarator":
                size = inner.child_by_field_name("size")
                extents.insert(0, source.text_of(size) if size is not None else "")
            else:
                stars += "*"
            inner = inner.child_by_field_name("declarator") or inner.named_children[-1]
        named = declared_name(inner)
        if named is None or inner.type == "function_declarator":
            continue
        type_text = f"{const}{' '.join(source.text_of(written).split())}{stars}"
        found.append(Member(source.text_of(named), type_text, tuple(extents)))
    return found
