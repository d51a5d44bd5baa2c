"""The structs of a source: their members in order, with base classes, nested structs and arrays opened up.

A member's path is what stands after the object: ``rows``, ``dims.rows``, ``strides[1]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from translator.c_types import split_types
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

    ``defaults`` are those of template parameters, as written. ``made``: it has a constructor, so that braces needn't
    fill the members in order. ``constants`` have a value for all objects of the struct, ``aliases`` are the types that
    it names. ``special`` are the specialisations of its template, by their name without blanks: ``Traits<float>``.
    ``constructors`` are those with a body, ``methods`` the other functions that kernels can call.
    """

    name: str
    template: tuple[str, ...]
    members: tuple[Member, ...]
    made: bool
    defaults: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Node] = field(default_factory=dict, repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[str, Struct] = field(default_factory=dict)
    constructors: tuple[Node, ...] = field(default=(), repr=False, compare=False)
    methods: tuple[Node, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Part:
    """A struct, or an array in one, with what it holds in order: names are those of `Struct`, or ``[0]``, ``[1]``.

    ``whole``: a number or pointer, which holds nothing; a struct may be empty.
    """

    type: str
    parts: tuple[tuple[str, Part], ...] = ()
    default: Node | None = field(default=None, repr=False, compare=False)
    whole: bool = True

    def leaves(self, path: str = "") -> Iterator[tuple[str, Part]]:
        """Yield the numbers and pointers in it with their paths."""
        if self.whole:
            yield path, self
        for name, part in self.parts:
            yield from part.leaves(joined(path, name))


def joined(path: str, name: str) -> str:
    """Return the path of a member of what a path leads to; members of a base class have no step of their own."""
    return f"{path}.{name}" if path and name and name[0] != "[" else path + name


def read_structs(source: CudaSource) -> dict[str, Struct]:
    """Return the structs and classes that a source defines, by name."""
    found: dict[str, Struct] = {}
    special: dict[str, dict[str, Struct]] = {}
    for node in source.nodes_of(*_KINDS):
        body, named = node.child_by_field_name("body"), node.child_by_field_name("name")
        if body is None:
            continue
        text = "".join((source.text_of(named) if named is not None else _alias(source, node)).split())
        primary = text.partition("<")[0]
        if not re.fullmatch(r"\w+", primary):
            continue
        struct = _struct(source, node, body, text)
        if primary != text:
            special.setdefault(primary, {})[text] = struct
        else:
            found.setdefault(text, struct)
    return {name: replace(struct, special=special.get(name, {})) for name, struct in found.items()}


def _struct(source: CudaSource, node: Node, body: Node, name: str) -> Struct:
    outer = node.parent
    parameters = outer.child_by_field_name("parameters") if outer and outer.type == "template_declaration" else None
    written = [
        [part.strip() for part in source.text_of(child).partition("=")[::2]]
        for child in (parameters.named_children if parameters is not None else ())
        if child.type != "comment"
    ]
    template = tuple(text.split()[-1] for text, _ in written)
    defaults = {text: default for text, (_, default) in zip(template, written, strict=True) if default}
    bases = [child for child in node.children if child.type == "base_class_clause"]
    members = [Member("", source.text_of(child)) for clause in bases for child in clause.named_children
               if child.type != "access_specifier"]  # fmt: skip
    constants: dict[str, Node] = {}
    aliases: dict[str, str] = {}
    for child in body.named_children:
        if child.type == "field_declaration":
            members += _members(source, child)
            constants |= constants_of(source, child)
        elif child.type in ("alias_declaration", "type_definition"):
            aliases |= aliases_of(source.text_of, child)
    maker = re.compile(rf"(?<![\w~]){name.partition('<')[0]}\s*\(")
    makers = [
        child
        for child in body.named_children
        if child.type in ("function_definition", "declaration") and "default" not in source.text_of(child)
        if maker.search(source.text_of(child).partition("{")[0])
    ]
    bodies = tuple(child for child in makers if child.type == "function_definition")
    methods = tuple(
        child
        for child in body.named_children
        if child.type in ("function_definition", "template_declaration") and _runs_on_device(source, child)
        if not maker.search(source.text_of(child).partition("{")[0])
    )
    return Struct(
        name, template, tuple(members), bool(makers), defaults, constants, aliases, constructors=bodies, methods=methods
    )


def _runs_on_device(source: CudaSource, node: Node) -> bool:
    """Whether a member function is marked as one for kernels, by its words or by a macro."""
    before = node.prev_sibling  # a macro without a meaning to the parser stands before the node
    written = source.text[before.end_byte if before is not None else node.start_byte : node.end_byte]
    words = re.sub(r"//[^\n]*|/\*.*?\*/", "", written, flags=re.DOTALL).partition("(")[0]
    return re.search(r"\b(?:__device__|constexpr|[A-Z][A-Z\d_]+)\b", words) is not None


def constants_of(source: CudaSource, declaration: Node) -> dict[str, Node]:
    """Return the names that a declaration gives a constant value, with that."""
    words = {
        source.text_of(child)
        for child in declaration.children
        if child.type in ("type_qualifier", "storage_class_specifier")
    }
    if not words & {"const", "constexpr"}:
        return {}
    found: dict[str, Node] = {}
    last: Node | None = None
    for at, child in enumerate(declaration.children):
        role, value = declaration.field_name_for_child(at), None
        if role == "declarator":
            last = child.child_by_field_name("declarator") if child.type == "init_declarator" else child
            value = child.child_by_field_name("value") if child.type == "init_declarator" else None
        elif role == "default_value":  # that of a member
            value = child
        name = declared_name(last) if last is not None and value is not None else None
        if name is not None and value is not None:
            found[source.text_of(name)] = value
    return found


def aliases_of(text_of: Callable[[Node], str], node: Node) -> dict[str, str]:
    """Return the name that a ``using`` or ``typedef`` gives, with the type that it stands for."""
    name = node.child_by_field_name("name" if node.type == "alias_declaration" else "declarator")
    target = node.child_by_field_name("type")
    return {text_of(name): " ".join(text_of(target).split())} if name is not None and target is not None else {}


def open_type(type_text: str, structs: Mapping[str, Struct], aliases: Mapping[str, str], extent: Extent) -> Part | None:
    """Return what a value of a type holds; None when it is no struct that could be passed by its members."""
    parts = _open(type_text, structs, aliases, extent, 0)
    fits = parts is not None and not parts.whole and sum(1 for _ in parts.leaves()) <= MOST_MEMBERS
    return parts if fits else None


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
    types = dict(zip(struct.template, split_types(match[2] or ""), strict=False))
    parts: list[tuple[str, Part]] = []
    for member in struct.members:
        text = re.sub(r"(?<![\w:])[A-Za-z_]\w*", lambda m: types.get(m[0], m[0]), member.type)
        part = _open(text, structs, aliases, extent, depth + 1)
        for size in reversed(member.extents):
            count = extent(types.get(size, size))
            if part is None or count is None or not 0 < count <= MOST_MEMBERS:
                return None
            part = Part(f"{part.type}[{count}]", tuple((f"[{at}]", part) for at in range(count)), whole=False)
        if part is None:
            return None
        parts.append((member.name, replace(part, default=member.default)))
    return Part(plain, tuple(parts), whole=False)


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
