"""What stands at file scope as a Metal header has it: macros, constants, structs, enums and aliases."""

from __future__ import annotations

import re

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer import declarations
from translator.metal_writer.expressions import Expressions
from translator.metal_writer.flow import calls_in
from translator.metal_writer.functions import FunctionRenderer, comment_before, parameter_text
from translator.metal_writer.names import KEYWORDS, local_names, renamed, template_name
from translator.metal_writer.passes import Pass
from translator.metal_writer.program import (
    TYPES,
    Item,
    Program,
    Routine,
    Variable,
    alias_of,
    function_declarator,
    read_function,
)
from translator.metal_writer.refused import Refused
from translator.metal_writer.renderer import Renderer
from translator.metal_writer.struct_members import members, methods
from translator.metal_writer.types import SCALARS, vector_parts


def file_scope(program: Program) -> Routine:
    """Return a function of nothing, for expressions at file scope."""
    root = program.source.root
    return Routine("", root, root, root, False, ())


def write_item(shared: Pass, name: str) -> str:
    """Return a macro, constant, struct, enum or alias of the source for the header; raise `Refused` if it can't be."""
    program = shared.program
    scope = file_scope(program)
    shared.readers.setdefault(scope, Expressions(program, scope, {}))
    renderer = ItemRenderer(shared, scope, {})
    if name in program.macros and name not in program.items:
        return _macro(renderer, program.macros[name])
    item = program.items[name]
    outer = item.outer or item.node
    if name in program.repeated:
        raise Refused(item.node, f"several namespaces have a '{name}'", "give them different names")
    comment = comment_before(renderer, outer)
    if item.kind in ("constant", "memory"):
        return comment + _constant(renderer, item)
    if item.kind == "struct":
        return comment + "\n\n".join(renderer.struct(part) + ";" for part in (item, *item.special))
    return comment + renderer.leaf(item.node, _respelled(renderer, item)) + ("" if item.kind == "alias" else ";")


def _respelled(renderer: Renderer, item: Item) -> str:
    text = renderer.source.text_of(item.node)
    for node in walk(item.node):
        named = node.type in ("primitive_type", "sized_type_specifier", "type_identifier")
        if named and renderer.text(node) != item.name:
            text = text.replace(renderer.text(node), declarations.type_name(renderer, node))
    return text


def _macro(renderer: Renderer, node: Node) -> str:
    text = renderer.source.text_of(node).rstrip().encode("ascii", "replace").decode()
    value = node.child_by_field_name("value")
    for word in re.findall(r"[A-Za-z_]\w*", renderer.source.text_of(value)) if value is not None else []:
        if word in renderer.program.macros and word != renderer.text(node.child_by_field_name("name") or node):
            renderer.shared.used[word] = None
    return renderer.leaf(node, re.sub(r"(?i)(?<=\d)u?ll\b", lambda m: "ul" if "u" in m[0].lower() else "l", text))


def _constant(renderer: Renderer, item: Item) -> str:
    node = item.node
    words, _, alignment = declarations.specifiers(renderer, node)
    text = [renderer.text(child) for child in node.children]
    constexpr = "constexpr" in text
    if not constexpr and "const" not in text and "__constant__" not in text:
        raise Refused(node, f"'{item.name}' is a variable of the host", "make it constexpr, or pass it to the kernel")
    kind = words[-1]
    place = f"{alignment} " if alignment else ""
    place += "constexpr constant" if constexpr else "constant"
    first = node.children_by_field_name("declarator")[0]
    return f"{renderer.leaf(node, place)} {kind} " + declarations.rest(renderer, node, first)


class ItemRenderer(FunctionRenderer):
    """Writes what stands at file scope; ``fields`` are the members that a member function can name."""

    fields: frozenset[str] = frozenset()

    def struct(self, item: Item) -> str:
        """Return a struct: plain members, and methods that Metal can have."""
        node = item.node
        outer = item.outer or node
        body = node.child_by_field_name("body")
        if body is None and item.special:
            return self.leaf(outer, f"template {self.text(outer.named_children[0])} struct {item.name}")
        if body is None:
            raise Refused(node, f"'{item.name}' is only declared", "define it in this file")
        if any(child.type == "base_class_clause" for child in node.children):
            raise Refused(node, f"'{item.name}' has a base class", "write its members into it")
        template = ""
        if outer.type == "template_declaration":
            template = self.leaf(outer, f"template {self.text(outer.named_children[0])}") + "\n"
            self.template = tuple(child for child in outer.named_children[0].named_children if child.type != "comment")
        self.fields, self.methods = frozenset(members(self.program, item)), methods(self.program, item)
        name_node = node.child_by_field_name("name")
        name = (
            self._special_name(name_node) if name_node is not None and name_node.type == "template_type" else item.name
        )
        out, at = [self.gap(node.start_byte, node.start_byte)], body.start_byte
        for child in body.children:
            out.append(self.gap(at, child.start_byte))
            at = child.end_byte
            out.append(self._member(child, item))
        written = self.source.text[node.start_byte : body.start_byte]
        alignment = re.search(r"(?:alignas|__(?:builtin_)?align__)\s*\((.*)\)", written)
        aligned = f"alignas({alignment[1]}) " if alignment else ""
        word = "union" if node.type == "union_specifier" else "struct"
        return template + self.leaf(node, f"{word} {aligned}{name} ") + "".join(out)

    def _special_name(self, node: Node) -> str:
        given = node.child_by_field_name("arguments")
        return self.text(node.named_children[0]) + (self.render(given) if given is not None else "")

    def _member(self, node: Node, item: Item) -> str:
        if node.type == "field_declaration":
            if any(inner.type in ("pointer_declarator", "reference_declarator") for inner in walk(node)):
                raise Refused(node, "a struct holds a pointer", "pass the pointer by itself: its memory must be named")
            words, _, _ = declarations.specifiers(self, node)
            if any(self.text(child) == "static" for child in node.children):
                words = [self.leaf(node, "static constexpr constant"), words[-1]]
            first = next(iter(node.children_by_field_name("declarator")), None)
            return " ".join(words) + (" " + declarations.rest(self, node, first) if first is not None else ";")
        if node.type == "function_definition":
            return self._method(node, node, item)
        if node.type == "template_declaration" and node.named_children[-1].type == "function_definition":
            template = self.leaf(node, f"template {self.text(node.named_children[0])} ")
            return template + self._method(node.named_children[-1], node, item)
        if node.type == "alias_declaration":
            name, type_ = alias_of(node)
            if name is not None and type_ is not None:
                self.routine.aliases[self.text(name)] = type_
        if node.type in ("comment", "alias_declaration", "static_assert_declaration"):
            return self.render(node)
        if not node.is_named or node.type == "access_specifier":
            return self.leaf(node)
        raise Refused(node, f"'{self.text(node)[:40]}' in a struct is not known", "make it plain data")

    def _method(self, node: Node, outer: Node, item: Item) -> str:
        if any(child.type == "default_method_clause" for child in node.children):
            return self.leaf(node, re.sub(r"__\w+__\s*", "", self.text(node)))
        shared, program = self.shared, self.program
        routine = read_function(program, node, outer)
        routine.aliases = self.routine.aliases | routine.aliases
        for parameter in routine.parameters:
            if parameter.type.reference:
                parameter.origins.add(("thread", ""))
        shared.readers[routine] = Expressions(program, routine, {}, fields=members(program, item))
        called = local_names((v.name for v in routine.all_variables()), KEYWORDS, self.fields)
        renderer = ItemRenderer(shared, routine, {v: called[v.name] for v in routine.all_variables()})
        renderer.fields, renderer.methods, renderer.template = self.fields, self.methods, self.template
        return method_text(renderer, node)


def _default(renderer: Renderer, parameter: Node) -> str:
    value = parameter.child_by_field_name("default_value")
    return f" = {renderer.render(value)}" if value is not None else ""


def _value(renderer: ItemRenderer, parameter: Variable, refers: bool) -> str:
    """Return a parameter that a method only reads as a value: what it is given may lie in any memory."""
    type_ = parameter.type
    own = {template_name(renderer.text(each)) for each in (*renderer.routine.template, *renderer.template)}
    plain = type_.name in SCALARS or vector_parts(type_.name) is not None or type_.name in own
    if not (type_.reference and type_.const and plain) or type_.extents or refers:
        return ""
    kind = next(child for child in parameter.declaration.children if child.type in TYPES)
    return f"const {declarations.type_name(renderer, kind)} {renderer.names[parameter]}"


def method_text(renderer: ItemRenderer, node: Node) -> str:
    """Return a member function."""
    declarator, body, routine = function_declarator(node), node.child_by_field_name("body"), renderer.routine
    if declarator is None or body is None:
        raise Refused(node, "a member function that is not understood", "write it as a __device__ function")
    pointers: list[str] = []
    given = node.child_by_field_name("declarator")
    refers = given is not None and given.type == "reference_declarator"
    parameters = [
        (_value(renderer, parameter, refers) or parameter_text(renderer, parameter, pointers))
        + _default(renderer, parameter.declaration)
        for parameter in routine.parameters
    ]
    if pointers:
        raise Refused(node, "a member function with pointers", "write it as a __device__ function")
    kind = next((child for child in node.children if child.type in TYPES), None)
    returned = declarations.type_name(renderer, kind) + " " if kind is not None else ""
    if refers:
        before = "const " if any(renderer.text(child) == "const" for child in node.children) else ""
        returned = f"{before}thread {returned.rstrip()}& "
    elif given is not None and given.type == "pointer_declarator":
        raise Refused(node, "a member function that returns a pointer", "return the value")
    name = renamed(renderer.text(declarator.child_by_field_name("declarator") or declarator), KEYWORDS)
    const = " const" if any(renderer.text(child) == "const" for child in declarator.children) else ""
    start = next((c for c in node.children if c.type == "field_initializer_list"), None)
    initial = ""
    if start is not None:
        if any(inner.named_child_count < 2 for inner in start.named_children):
            raise Refused(start, "a constructor that is not understood", "set the members in its body")
        initial = " : " + ", ".join(
            renderer.text(inner.named_children[0]) + renderer.render(inner.named_children[1])
            for inner in start.named_children
        )
    words = {renderer.text(child) for child in node.children}
    static = "static " if "static" in words else "explicit " if "explicit" in words else ""
    text = renderer.leaf(node, f"{static}{returned}{name}({', '.join(parameters)}){const}{initial} ") + renderer.render(
        body
    )
    if any(renderer.text(call).startswith("__sync") for call in calls_in(body)):
        raise Refused(node, "a member function with a barrier", "write it as a __device__ function")
    if renderer.attributes or renderer.threadgroup:
        raise Refused(node, "a member function that uses indices or shared memory", "write it as a __device__ function")
    return text
