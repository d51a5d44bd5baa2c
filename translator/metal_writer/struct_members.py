"""The structs of a source and what they have: members and methods by name, template parameters put in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tree_sitter import Node

from translator.metal_writer.names import template_name
from translator.metal_writer.program import TYPES, Item, Program, alias_of, function_declarator, read_type
from translator.metal_writer.types import CType, canonical

_MOST_ALIASES = 4


def struct_of(program: Program, name: str) -> Item | None:
    """Return the struct that a type's name means, template arguments in it or not."""
    item = program.items.get(name.partition("<")[0].strip())
    return item if item is not None and item.kind == "struct" else None


def member_type(program: Program, item: Item, owner: str, name: str) -> CType | None:
    """Return the type of a member of a struct that is called ``owner`` there, None when it has none of this name."""
    for node in _body(item.node):
        if node.type == "field_declaration":
            for declarator in node.children_by_field_name("declarator"):
                if name in re.findall(r"\w+", program.text(declarator))[:1]:
                    return _put_in(program, item, owner, read_type(program, node, declarator))
    return None


def method_type(
    program: Program, item: Item, owner: str, name: str, arguments: Sequence[CType] | None = None
) -> CType | None:
    """Return what a method gives, or an operator such as ``operator[]``; None when there is none, or several differ.

    ``arguments`` are the types of what it is given: from them C++ deduces the arguments of a method's own template.
    """
    found = set()
    for part in (item, *item.special):
        for node, outer in _functions(part.node):
            if method_name(program, node) != name or not _returns(node):
                continue
            parameters = parameters_of(node)
            if arguments is not None and not _takes(parameters, len(arguments)):
                continue
            given = read_type(program, node, None)
            own = template_names(program, replace(item, outer=outer)) if outer is not node else []
            if given.name not in own:
                found.add(_put_in(program, item, owner, CType(given.name)))
                continue
            same = (argument.name for parameter, argument in zip(parameters, arguments or (), strict=False)
                    if read_type(program, parameter, None).name == given.name)  # fmt: skip
            found.add(CType(next(same, "")))
    return found.pop() if len(found) == 1 else None


def parameters_of(node: Node) -> list[Node]:
    """Return the parameters of a member function."""
    declarator = function_declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return [each for each in listed.named_children if each.type.endswith("parameter_declaration")] if listed else []


def fitting_methods(program: Program, item: Item, name: str, count: int) -> list[Node]:
    """Return the member functions of a name that take so many arguments."""
    return [
        node
        for part in (item, *item.special)
        for node, _ in _functions(part.node)
        if method_name(program, node) == name and _takes(parameters_of(node), count)
    ]


def _takes(parameters: Sequence[Node], count: int) -> bool:
    needed = [each for each in parameters if each.type != "optional_parameter_declaration"]
    return len(needed) <= count <= len(parameters)


def method_name(program: Program, node: Node) -> str:
    """Return the name of a member function; blanks in an operator's go."""
    declarator = function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return "".join(program.text(name).split()) if name is not None else ""


def members(program: Program, item: Item) -> dict[str, CType]:
    """Return the types of a struct's members by name, its template parameters as they are called within it."""
    found = {}
    for node in _body(item.node):
        if node.type == "field_declaration":
            for declarator in node.children_by_field_name("declarator"):
                if words := re.findall(r"\w+", program.text(declarator)):
                    found[words[0]] = read_type(program, node, declarator)
    return found


def nested_type(program: Program, name: str) -> str | None:
    """Return what a type such as ``Vec<float, 4>::Type`` stands for, None where that can't be told."""
    owner, _, alias = name.removeprefix("typename ").rpartition("::")
    item = struct_of(program, owner)
    if item is None:
        return None
    plain = owner.replace(" ", "")
    fitting = [part for part in item.special if part.name.replace(" ", "") == plain]
    for part in fitting or [item]:
        own = (alias_of(node) for node in _body(part.node) if node.type in ("alias_declaration", "type_definition"))
        aliases = {program.text(named): program.text(type_) for named, type_ in own if named and type_}
        if alias in aliases:
            text = aliases[alias]
            for _ in range(_MOST_ALIASES):
                text = _with_words(text, aliases)
            given = dict(zip(template_names(program, part), _arguments(owner), strict=False))
            return canonical(_with_words(text, given))
    return None


def _with_words(text: str, given: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda word: given.get(word[0], word[0]), text)


def methods(program: Program, item: Item) -> frozenset[str]:
    """Return the names of a struct's member functions."""
    return frozenset(method_name(program, node) for node, _ in _functions(item.node))


def is_functor(program: Program, text: str) -> bool:
    """Whether a type is a struct that is there for its functions: it can be called, or holds nothing."""
    item = struct_of(program, text)
    if item is None:
        return False
    names = methods(program, item) - {item.name}
    return "operator()" in names or (bool(names) and not members(program, item))


def template_names(program: Program, item: Item) -> list[str]:
    """Return the names of a struct's template parameters."""
    outer = item.outer
    parameters = outer.child_by_field_name("parameters") if outer is not None else None
    if outer is None or outer.type != "template_declaration" or parameters is None:
        return []
    return [template_name(program.text(each)) for each in parameters.named_children if each.type != "comment"]


def _put_in(program: Program, item: Item, owner: str, type_: CType) -> CType:
    given = dict(zip(template_names(program, item), _arguments(owner), strict=False))
    return replace(type_, name=canonical(given.get(type_.name, type_.name)))


def _arguments(name: str) -> list[str]:
    """Return the template arguments of a type's name."""
    inner = name.partition("<")[2].rpartition(">")[0]
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(inner):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(inner[begin:at].strip())
            begin = at + 1
    return [*parts, inner[begin:].strip()] if inner else []


def _body(node: Node) -> Iterator[Node]:
    body = node.child_by_field_name("body")
    yield from body.named_children if body is not None else ()


def _functions(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield member functions, each with the template that it is, if any."""
    for child in _body(node):
        inner = child.named_children[-1] if child.type == "template_declaration" and child.named_children else child
        if inner.type == "function_definition":
            yield inner, child


def _returns(node: Node) -> bool:
    return any(child.type in TYPES for child in node.children)
