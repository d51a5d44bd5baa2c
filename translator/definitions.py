"""What a CUDA source defines outside of its functions' bodies: functions as trees, constants, macros."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from translator.c_types import plain_type
from translator.cuda_source import CudaSource, declared_name, walk
from translator.struct_types import Struct, aliases_of, constants_of, read_structs

_MACRO_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DEVICE_WORDS = ("__device__", "__global__")
_DEFINING = (
    "template_declaration", "function_definition", "preproc_def", "preproc_function_def", "declaration",
    "enum_specifier", "alias_declaration", "type_definition", "template_instantiation",
)  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """A function as a tree. ``parameters`` are the nodes; ``template`` has names of template parameters, in order.

    ``template_defaults`` goes with ``template``: the default as written, "" for none; ``template_types``: whether each
    is a type (and no number); ``template_kinds``: of which type the numbers are.
    """

    name: str
    node: Node = field(repr=False, compare=False)
    body: Node = field(repr=False, compare=False)
    parameters: tuple[Node, ...] = field(repr=False, compare=False)
    template: tuple[str, ...]
    template_defaults: tuple[str, ...]
    template_types: tuple[bool, ...]
    host: bool
    template_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definitions:
    """Functions by name (those of one name in the order of the text), constants, macros, structs.

    ``instances`` has, for a template, the arguments of its explicit instantiations. ``enumerators`` are texts by the
    name of the enum and their own, ``Mode::fast``; ``enums`` has the types that those are of. ``pointers`` are the
    host's at file scope, with what they point at.
    """

    functions: dict[str, list[Definition]]
    constants: dict[str, Node]
    macros: dict[str, str]
    function_macros: dict[str, tuple[tuple[str, ...], str]]
    instances: dict[str, list[tuple[str, ...]]]
    aliases: dict[str, str]
    symbols: dict[str, Node]
    structs: dict[str, Struct]
    enumerators: dict[str, str] = field(default_factory=dict)
    enums: dict[str, str] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=2)
def read_definitions(source: CudaSource) -> Definitions:
    """Read what a source defines, once for all of its launches."""
    found = Definitions({}, {}, {}, {}, {}, {}, {}, read_structs(source))
    templates: dict[int, Node] = {}
    local_end = 0
    for node in source.nodes_of(*_DEFINING):
        kind = node.type
        if kind == "template_declaration":
            templates[node.children[-1].start_byte] = node
        elif kind == "function_definition":
            _function(source, node, templates.get(node.start_byte), found)
            local_end = max(local_end, node.end_byte)
        elif kind == "preproc_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                found.macros[source.text_of(name)] = _joined(source.text_of(value)) if value is not None else ""
        elif kind == "preproc_function_def":
            _function_macro(source, node, found)
        elif node.start_byte < local_end:
            continue
        elif kind == "declaration":
            found.constants.update(constants_of(source, node))
            _symbols(source, node, found)
        elif kind == "enum_specifier":
            _enum(source, node, found)
        elif kind in ("alias_declaration", "type_definition"):
            found.aliases.update(aliases_of(source.text_of, node))
        elif kind == "template_instantiation":
            _instance(source, node, found)
    return found


def expand(definitions: Definitions, called: str, arguments: Sequence[str]) -> str | None:
    """Return what a macro with arguments stands for, None when there is no such macro."""
    macro = definitions.function_macros.get(called)
    if macro is None or len(macro[0]) != len(arguments):
        return None
    values = dict(zip(macro[0], (f"({argument})" for argument in arguments), strict=True))
    return _MACRO_WORD.sub(lambda match: values.get(match[0], match[0]), macro[1])


def template_arguments(source_text: str, node: Node | None) -> tuple[str, ...]:
    """Return the template arguments of ``name<…>`` as written, () when there are none."""
    while node is not None and node.type in ("qualified_identifier", "dependent_name"):
        node = node.child_by_field_name("name")
    if node is None or node.type not in ("template_function", "template_type", "template_method"):
        return ()
    arguments = node.child_by_field_name("arguments")
    children = arguments.named_children if arguments is not None else []
    return tuple(
        " ".join(source_text[child.start_byte : child.end_byte].split())
        for child in children
        if child.type != "comment"
    )


def last_name(text: str) -> str:
    """Return the plain name of ``ns::name<arguments>``."""
    return re.sub(r"<.*$", "", "".join(text.split()), flags=re.DOTALL).rpartition("::")[2]


def parameter_of(source: CudaSource, parameter: Node) -> tuple[str, str]:
    """Return the type of a parameter, as written without its name, and the name."""
    declarator = parameter.child_by_field_name("declarator")
    named = declared_name(declarator) if declarator is not None else None
    default = parameter.child_by_field_name("default_value")
    end = default.start_byte if default is not None else parameter.end_byte
    if named is None:
        return source.text_of(parameter), ""
    type_text = source.text[parameter.start_byte : named.start_byte] + source.text[named.end_byte : end].rstrip("= \n")
    return " ".join(type_text.split()), source.text_of(named)


def _joined(text: str) -> str:
    text = re.sub(r"\\\r?\n", " ", text)
    return " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())


def _function(source: CudaSource, node: Node, template: Node | None, found: Definitions) -> None:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    if declarator is None or body is None:
        return
    named, parameters = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("parameters")
    if named is None or parameters is None:
        return
    names, defaults, types = _template(source, template)
    definition = Definition(
        last_name(source.text_of(named)), node, body,
        tuple(child for child in parameters.named_children if child.type.endswith("parameter_declaration")),
        names, defaults, types,
        not any(child.type in _DEVICE_WORDS for child in node.children), _template_kinds(source, template),
    )  # fmt: skip
    found.functions.setdefault(definition.name, []).append(definition)


def _template(source: CudaSource, node: Node | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[bool, ...]]:
    names: list[str] = []
    defaults: list[str] = []
    types: list[bool] = []
    parameters = node.child_by_field_name("parameters") if node is not None else None
    for child in parameters.named_children if parameters is not None else []:
        if child.type == "comment":
            continue
        is_type = "type_parameter" in child.type or child.type == "template_template_parameter_declaration"
        if child.type == "template_template_parameter_declaration":  # template <typename> class Op
            name = next((n for n in reversed(list(walk(child))) if n.type == "type_identifier"), None)
            default = None
        elif is_type:
            name = next((inner for inner in child.named_children if inner.type == "type_identifier"), None)
            default = child.child_by_field_name("default_type")
        else:
            inner = child.child_by_field_name("declarator")
            while inner is not None and inner.type == "function_declarator":  # T (*F)(T)
                inner = inner.child_by_field_name("declarator")
            name = declared_name(inner) if inner is not None else None
            default = child.child_by_field_name("default_value")
        names.append(source.text_of(name) if name is not None else "")
        defaults.append(source.text_of(default) if default is not None else "")
        types.append(is_type)
    return tuple(names), tuple(defaults), tuple(types)


def _template_kinds(source: CudaSource, node: Node | None) -> tuple[str, ...]:
    parameters = node.child_by_field_name("parameters") if node is not None else None
    listed = parameters.named_children if parameters is not None else []
    kinds = (each.child_by_field_name("type") for each in listed if each.type != "comment")
    return tuple(source.text_of(kind) if kind is not None else "" for kind in kinds)


def _enum(source: CudaSource, node: Node, found: Definitions) -> None:
    """Note the values of an enum: those of one with a scope go by its name alone."""
    named, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    base = node.child_by_field_name("base")
    text = source.text_of(named) if named is not None else ""
    outer = node.parent
    if not text and outer is not None and outer.type == "type_definition":
        text = source.text_of(outer.child_by_field_name("declarator") or outer)
    if text:
        found.enums[text] = source.text_of(base) if base is not None else "int"
    values: dict[str, str] = {}
    before = "-1"
    for child in body.named_children if body is not None else ():
        name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
        if child.type != "enumerator" or name is None:
            continue
        written = _joined(source.text_of(value)) if value is not None else f"{before} + 1"
        before = f"({_MACRO_WORD.sub(lambda match: values.get(match[0], match[0]), written)})"
        values[source.text_of(name)] = before
    scoped = any(child.type in ("class", "struct") for child in node.children)
    for name_text, value_text in values.items():
        found.enumerators[f"{text}::{name_text}"] = value_text
        if not scoped:
            found.enumerators[name_text] = value_text


def _function_macro(source: CudaSource, node: Node, found: Definitions) -> None:
    name, parameters = node.child_by_field_name("name"), node.child_by_field_name("parameters")
    value = node.child_by_field_name("value")
    if name is None or parameters is None or value is None:
        return
    names = tuple(source.text_of(child) for child in parameters.named_children)
    found.function_macros[source.text_of(name)] = (names, _joined(source.text_of(value)))


def _symbols(source: CudaSource, node: Node, found: Definitions) -> None:
    """Note the variables that a declaration puts into the device's memory, to be filled by the host, and pointers."""
    if {source.text_of(child) for child in node.children} & {"__constant__", "__device__", "__managed__"}:
        for declarator in node.children_by_field_name("declarator"):
            name = declared_name(declarator) if declarator.type != "init_declarator" else None
            if name is not None:
                found.symbols[source.text_of(name)] = node
        return
    for declarator in node.children_by_field_name("declarator"):
        inner, value = declarator, declarator.child_by_field_name("value")
        if declarator.type == "init_declarator":
            inner = declarator.child_by_field_name("declarator") or declarator
        name = declared_name(inner) if inner.type == "pointer_declarator" else None
        if name is not None and (value is None or source.text_of(value) in ("0", "NULL", "nullptr")):
            kinds = [child for child in node.children if child.type == "type_qualifier"]
            words = [*kinds, node.child_by_field_name("type")]
            found.pointers[source.text_of(name)] = " ".join(source.text_of(word) for word in words if word is not None)


def _instance(source: CudaSource, node: Node, found: Definitions) -> None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    named = declarator.child_by_field_name("declarator") if declarator is not None else None
    if declarator is None or named is None:
        return
    name = last_name(source.text_of(named))
    if arguments := template_arguments(source.text, named) or _deduced(
        source, declarator, found.functions.get(name, [])
    ):
        found.instances.setdefault(name, []).append(arguments)


def _deduced(source: CudaSource, declarator: Node, definitions: Sequence[Definition]) -> tuple[str, ...]:
    """Return the template arguments that the types of an instantiation's parameters show, () when they don't."""
    parameters = declarator.child_by_field_name("parameters")
    nodes = parameters.named_children if parameters is not None else []
    given = [plain_type(parameter_of(source, node)[0]) for node in nodes if node.type == "parameter_declaration"]
    for definition in definitions:
        own = [plain_type(parameter_of(source, node)[0]) for node in definition.parameters]
        types = dict(zip(own, given, strict=True)) if len(own) == len(given) else {}
        if definition.template and all(text in types for text in definition.template):
            return tuple(types[text] for text in definition.template)
    return ()
