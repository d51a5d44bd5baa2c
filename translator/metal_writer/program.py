"""The kernels, functions and file-scope items of a source, with the variables that each function declares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tree_sitter import Node

from translator.cuda_source import CudaSource, declared_name, walk
from translator.metal_writer.refused import Refused
from translator.metal_writer.types import CType, canonical

SCOPES = ("compound_statement", "for_statement", "function_definition", "lambda_expression", "if_statement",
          "while_statement", "switch_statement", "field_declaration_list")  # fmt: skip
TYPES = ("primitive_type", "type_identifier", "sized_type_specifier", "placeholder_type_specifier",
         "qualified_identifier", "template_type", "struct_specifier", "enum_specifier", "dependent_type",
         "decltype")  # fmt: skip

Origin = tuple[str, str]
"""Where a pointer leads: a kind (``array``, ``shared``, ``thread``, ``constant``) and the name of what it points to."""


@dataclass(eq=False)
class Variable:
    """A parameter or a local. ``start`` and ``end`` bound where its name means it; ``home`` is the memory it lies in:
    ``parameter``, ``thread``, ``shared`` or ``dynamic`` (sized by the launch). ``origins`` fills as pointers are
    followed.
    """

    name: str
    type: CType
    node: Node
    declaration: Node
    start: int
    end: int
    home: str
    value: Node | None = None
    origins: set[Origin] = field(default_factory=set)


@dataclass(eq=False)
class Routine:
    """A kernel, a device function, or a host function that is ``constexpr``.

    ``special`` has the template arguments that the function is a specialisation for; ``copy_of`` the memory that a copy
    of a function is for.
    """

    name: str
    node: Node
    outer: Node
    body: Node
    kernel: bool
    template: tuple[Node, ...]
    special: Node | None = None
    copy_of: str = ""
    parameters: list[Variable] = field(default_factory=list)
    aliases: dict[str, Node] = field(default_factory=dict)
    variables: dict[str, list[Variable]] = field(default_factory=dict)

    def variable(self, name: str, at: int) -> Variable | None:
        """Return the variable that a name means at an offset of the text."""
        found = [v for v in self.variables.get(name, ()) if v.start <= at < v.end]
        return max(found, key=lambda v: v.start) if found else None

    def all_variables(self) -> Iterator[Variable]:
        """Yield parameters and locals."""
        for variables in self.variables.values():
            yield from variables


@dataclass(frozen=True)
class Item:
    """Something at file scope: ``kind`` is ``constant``, ``memory``, ``struct``, ``enum`` or ``alias``.

    ``special`` are the specialisations of a struct's template.
    """

    kind: str
    name: str
    node: Node
    type: CType | None = None
    outer: Node | None = None
    special: tuple[Item, ...] = ()


@dataclass
class Program:
    """What a source defines at file scope; functions and items by name, macros as their ``#define`` nodes.

    ``functions`` are definitions, each with what stands around it; `routines_of` reads them. ``copies`` are the
    functions that calls (by node id) go to instead of the one that they name. ``prototypes`` are the templates of
    functions that are declared before they are specialised, ``repeated`` the structs that several namespaces have.
    """

    source: CudaSource
    functions: dict[str, list[tuple[Node, Node]]] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    macros: dict[str, Node] = field(default_factory=dict)
    enumerators: dict[str, Item] = field(default_factory=dict)
    prototypes: dict[str, Node] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)
    unread: list[Refused] = field(default_factory=list)
    copies: dict[int, Routine] = field(default_factory=dict)
    _routines: dict[str, list[Routine]] = field(default_factory=dict)

    def routines_of(self, name: str) -> list[Routine]:
        """Return the functions of a name with what they declare; those that can't be read are among ``unread``."""
        if name not in self._routines:
            self._routines[name] = []
            for node, outer in self.functions.get(name, ()):
                try:
                    self._routines[name].append(read_function(self, node, outer))
                except Refused as refused:
                    self.unread.append(refused)
        return self._routines[name]

    def text(self, node: Node) -> str:
        """Return the text of a node as written, blanks in it made single."""
        return " ".join(self.source.text_of(node).split())


def read_program(source: CudaSource) -> Program:
    """Return what stands at file scope. What can't be read is left out: it is refused where a kernel needs it.

    The source is gone through once; functions are read for each program, as what is found about their variables is.
    """
    program = _read_file(source)
    return replace(program, unread=list(program.unread), copies={}, _routines={})


@lru_cache(maxsize=2)
def _read_file(source: CudaSource) -> Program:
    program = Program(source)
    _read_scope(program, source.root)
    return program


def _read_scope(program: Program, scope: Node) -> None:
    for node in scope.named_children:
        kind = node.type
        if kind in ("namespace_definition", "linkage_specification"):
            if (name := node.child_by_field_name("name")) is not None:
                program.namespaces.add(program.text(name))
            if (body := node.child_by_field_name("body")) is not None:
                _read_scope(program, body)
        elif kind in ("preproc_if", "preproc_ifdef", "preproc_else", "declaration_list", "ERROR"):
            _read_scope(program, node)
        elif kind in ("preproc_def", "preproc_function_def"):
            if (name := node.child_by_field_name("name")) is not None:
                program.macros[program.text(name)] = node
        elif kind != "template_declaration" or node.named_children:
            try:
                _read_item(program, node.named_children[-1] if kind == "template_declaration" else node, node)
            except Refused as refused:
                program.unread.append(refused)


def _read_item(program: Program, node: Node, outer: Node) -> None:
    kind = node.type
    if kind == "function_definition":
        if _is_reachable(program, node):
            program.functions.setdefault(_function_name(program, node)[0], []).append((node, outer))
    elif kind in ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"):
        _read_type(program, node, outer)
    elif kind in ("type_definition", "alias_declaration"):
        for name in (node.child_by_field_name("name"), node.child_by_field_name("declarator")):
            if name is not None:
                program.items[program.text(name)] = Item("alias", program.text(name), node, outer=outer)
        declared = node.child_by_field_name("type")
        if declared is not None and declared.type.endswith("_specifier") and declared.child_by_field_name("body"):
            _read_type(program, declared, node)
    elif kind == "declaration":
        declared = node.child_by_field_name("type")
        if declared is not None and declared.child_by_field_name("body") is not None:
            _read_type(program, declared, node)
        words = {program.text(child) for child in node.children}
        memory = bool(words & {"__constant__", "__device__", "__managed__"})
        for declarator in node.children_by_field_name("declarator"):
            name = declared_name(declarator.child_by_field_name("declarator") or declarator)
            if declarator.type == "function_declarator":
                if outer.type == "template_declaration" and name is not None:
                    program.prototypes[program.text(name)] = outer
            elif name is not None:
                read = read_type(program, node, declarator)
                program.items[program.text(name)] = Item(
                    "memory" if memory else "constant", program.text(name), node, read, outer
                )


def _read_type(program: Program, node: Node, outer: Node) -> None:
    name = node.child_by_field_name("name")
    text = program.text(name) if name is not None else ""
    if node.type == "enum_specifier":
        item = Item("enum", text or f"enum@{node.start_byte}", node, outer=outer)
        program.items[item.name] = item
        for inner in walk(node):
            if inner.type == "enumerator" and (label := inner.child_by_field_name("name")) is not None:
                program.enumerators[program.text(label)] = item
    elif name is not None and name.type == "template_type":
        base = program.text(name.named_children[0])
        if base in program.items:
            item = Item("struct", text, node, outer=outer)
            program.items[base] = replace(program.items[base], special=(*program.items[base].special, item))
    elif text and (node.child_by_field_name("body") is not None or outer.type == "template_declaration"):
        before = program.items.get(text)
        if before is not None and before.node.child_by_field_name("body") and node.child_by_field_name("body"):
            program.repeated.add(text)
        program.items[text] = Item("struct", text, node, outer=outer)


def _is_reachable(program: Program, node: Node) -> bool:
    """Whether a kernel can reach a function: it is ``__global__``, ``__device__`` or ``constexpr``, and has a body."""
    words = {child.type if child.type != "type_qualifier" else program.text(child) for child in node.children}
    whole = function_declarator(node) is not None and node.child_by_field_name("body") is not None
    return whole and bool(words & {"__global__", "__device__", "constexpr"})


def _function_name(program: Program, node: Node) -> tuple[str, Node | None]:
    """Return a function's name and the template arguments that it is a specialisation for."""
    declarator = function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    special = name.child_by_field_name("arguments") if name is not None and name.type == "template_function" else None
    if name is not None and special is not None:
        name = name.child_by_field_name("name")
    return program.text(name) if name is not None else "", special


def read_function(program: Program, node: Node, outer: Node) -> Routine:
    """Return a function that has a body with its parameters and locals."""
    body = node.child_by_field_name("body") or node
    own_name, special = _function_name(program, node)
    template = outer.child_by_field_name("parameters") if outer.type == "template_declaration" else None
    routine = Routine(
        own_name,
        node,
        outer,
        body,
        any(child.type == "__global__" for child in node.children),
        tuple(child for child in template.named_children if child.type != "comment") if template is not None else (),
        special,
    )
    for inner in walk(node):
        if inner.type in ("parameter_declaration", "optional_parameter_declaration"):
            declared = inner.child_by_field_name("declarator")
            named = declared_name(declared) if declared is not None else None
            if declared is not None and named is not None and _owner(inner) == node.id:
                variable = Variable(program.text(named), read_type(program, inner, declared), named, inner,
                                    inner.start_byte, node.end_byte, "parameter")  # fmt: skip
                routine.parameters.append(variable)
                routine.variables.setdefault(variable.name, []).append(variable)
        elif inner.type == "declaration" and inner.start_byte >= body.start_byte:
            _read_locals(program, routine, inner)
        elif inner.type in ("alias_declaration", "type_definition"):
            name, type_ = alias_of(inner)
            if name is not None and type_ is not None:
                routine.aliases[program.text(name)] = type_
    return routine


def alias_of(node: Node) -> tuple[Node | None, Node | None]:
    """Return the name that a ``using`` or ``typedef`` gives, and the type that it stands for."""
    return (
        node.child_by_field_name("name") or node.child_by_field_name("declarator"),
        node.child_by_field_name("type"),
    )


def function_declarator(node: Node) -> Node | None:
    """Return the part of a function's definition that has its name and parameters."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    return declarator if declarator is not None and declarator.type == "function_declarator" else None


def _owner(node: Node) -> int:
    above = node.parent
    while above is not None and above.type not in ("function_definition", "lambda_expression"):
        above = above.parent
    return above.id if above is not None else 0


def _read_locals(program: Program, routine: Routine, node: Node) -> None:
    words = {program.text(child) for child in node.children}
    home = "thread"
    if "__shared__" in words:
        home = "dynamic" if "extern" in words else "shared"
    end = scope_end(node)
    for declarator in node.children_by_field_name("declarator"):
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        name = declared_name(inner) if inner is not None else None
        if name is None:
            continue
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        variable = Variable(program.text(name), read_type(program, node, declarator), name, node,
                            name.start_byte, end, home, value)  # fmt: skip
        routine.variables.setdefault(variable.name, []).append(variable)


def scope_end(node: Node) -> int:
    """Return where the names that a statement declares end."""
    above = node.parent
    while above is not None and above.type not in SCOPES:
        above = above.parent
    return above.end_byte if above is not None else node.end_byte


def read_type(program: Program, node: Node, declarator: Node | None) -> CType:
    """Return the type that a declaration gives to one of its declarators."""
    written = next((child for child in node.children if child.type in TYPES), None)
    if written is None:
        raise Refused(node, f"the type of '{program.text(node)[:40]}' is not understood", "declare it plainly")
    const = any(child.type == "type_qualifier" and program.text(child) in ("const", "constexpr", "__constant__")
                for child in node.children)  # fmt: skip
    pointers, reference = 0, False
    extents: list[str] = []
    at = declarator
    while at is not None and at.type not in ("identifier", "field_identifier", "type_identifier"):
        if at.type in ("pointer_declarator", "abstract_pointer_declarator"):
            pointers += 1
        elif at.type in ("reference_declarator", "abstract_reference_declarator"):
            reference = True
        elif at.type in ("array_declarator", "abstract_array_declarator"):
            size = at.child_by_field_name("size")
            extents.insert(0, program.text(size) if size is not None else "")
        at = at.child_by_field_name("declarator") or next(
            (child for child in reversed(at.named_children)
             if child.type.endswith("declarator") or child.type == "identifier"),
            None,
        ) if at.type != "init_declarator" else at.child_by_field_name("declarator")  # fmt: skip
    return CType(canonical(program.text(written)), pointers, tuple(extents), const, reference)
