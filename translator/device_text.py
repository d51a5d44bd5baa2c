"""The device code of a CUDA source: its text with all that no kernel needs blanked, every character in its place.

What stands at the top of a file is kept when a kernel leads to it by name: device functions, types, constants, macros.
The host's functions, includes, declarations for other libraries and macros of the host go.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from translator.c_types import ITEM_BYTES
from translator.cuda_source import CudaSource

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_UNSHOWN = re.compile(r"[^ -~\t\r\n]")
_LINE_END = re.compile(r"\r(?!\n)")
_CONTAINERS = frozenset(
    {
        "translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "preproc_if",
        "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
    }
)  # fmt: skip
_DEVICE = re.compile(r"\b__(?:global|device|shared|constant)__\b")
_MACROS = frozenset({"preproc_def", "preproc_function_def"})
_SPECIFIERS = frozenset({"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"})
_KEPT_CALL = re.compile(r"#\s*pragma\s+(?:unroll|nounroll)\b")
_UNDEFINED = re.compile(r"#\s*undef\s+(\w+)")
_PLAIN = frozenset(" ".join(ITEM_BYTES).split()) | {
    "template", "typename", "class", "struct", "const", "void", "signed", "unsigned", "__restrict__", "__align__",
    "static", "constexpr", "using", "sizeof",
}  # fmt: skip
_NAMED = frozenset({"alias_declaration", "concept_definition", "namespace_alias_definition"})
_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})


@dataclass(frozen=True)
class _Item:
    """One definition at the top of a file or of a namespace: its extent, the names it gives and all words in it.

    ``given``: what the host can give to a kernel's template: a device function, a type that has device functions, or
    one that is nothing but plain data.
    """

    begin: int
    end: int
    names: frozenset[str]
    words: frozenset[str]
    host: bool
    root: bool
    given: bool = False


def device_text(source: CudaSource, kernels: Collection[str] = ()) -> str:
    """Return the text of ``source`` with all but the device code blanked, of the same length and with the same lines.

    ``kernels`` are those to keep with what they need, all of them when none is named. Signs of comments and literals
    that are not ASCII become blanks.
    """
    items = list(_items(source, frozenset(kernels)))
    kept = _needed(items)
    text = list(source.text)
    for item in items:
        if item not in kept:
            text[item.begin : item.end] = _blank(source.text[item.begin : item.end])
    shown = _COMMENT.sub(lambda match: _UNSHOWN.sub(" ", match[0]), "".join(text))
    return _LINE_END.sub(" ", shown.replace("\ufeff", " "))


def _items(source: CudaSource, kernels: frozenset[str]) -> Iterator[_Item]:
    waiting = [source.root]
    while waiting:
        container = waiting.pop()
        for child in container.children:
            if child.type in _CONTAINERS:
                waiting.append(child)
            elif child.is_named and child.type != "comment" and not _is_part(container, child):
                yield _item(source, child, kernels)


def _is_part(container: Node, child: Node) -> bool:
    """Whether ``child`` belongs to the container itself: a namespace's name, the condition of an ``#if``."""
    fields = ("name", "condition", "value")
    return any(part is not None and part == child for part in map(container.child_by_field_name, fields))


def _item(source: CudaSource, node: Node, kernels: frozenset[str]) -> _Item:
    text, kind = source.text_of(node), node.type
    names, words = frozenset(_declared(source, node)), frozenset(_WORD.findall(text))
    host = kind in ("preproc_include", "template_instantiation")
    root = not host and "__global__" in words and (not kernels or bool(names & kernels))
    if kind == "preproc_call":
        root = bool(_KEPT_CALL.match(text))
        host = not root and not names
    elif kind == "using_declaration" and "namespace" not in words:
        names = frozenset(_WORD.findall(text)[-1:])
    elif kind == "using_declaration":
        root = bool(words & (_namespaces(source) | {"cooperative_groups"}))
    elif _is_function(node) and not _DEVICE.search(text.partition("{")[0]):
        host = "constexpr" not in words and not words & _device_macros(source)
    elif _is_function(node) and re.search(r"\boperator\s*[-+*/<>=!&|^%]", text.partition("{")[0]):
        root = True  # an operator on built-in vectors: nothing calls it by name
    if _is_function(node):  # the host can name it only where a kernel's template takes it
        given = "__device__" in words and not words & {"__global__", "__host__"}
    else:
        marked = bool(words & ({"__device__"} | _device_macros(source)))
        given = _is_type(node) and (marked or words - names <= _PLAIN | _parameters(source, node))
    return _Item(node.start_byte, _end(source, node), names, words, host, root, given and not host)


@lru_cache(maxsize=2)
def _device_macros(source: CudaSource) -> frozenset[str]:
    """Return the macros that mark functions as the device's: ``#define HD __host__ __device__``."""
    found = set()
    for node in source.nodes_of("preproc_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None and "__device__" in source.text_of(value):
            found.add(source.text_of(name))
    return frozenset(found)


def _is_type(node: Node) -> bool:
    return (node.named_children[-1] if node.type == "template_declaration" else node).type in _SPECIFIERS


def _parameters(source: CudaSource, node: Node) -> set[str]:
    """Return the words that need no definition: template parameters, names of members."""
    found: set[str] = set()
    stack = [node]
    while stack:
        inner = stack.pop()
        above = inner.parent.type if inner.parent is not None else ""
        if inner.type == "field_identifier" or "parameter" in above or above == "alias_declaration":
            found.update(_WORD.findall(source.text_of(inner)))
        stack.extend(inner.named_children)
    return found


def _namespaces(source: CudaSource) -> frozenset[str]:
    """Return the names of the namespaces that the source itself opens."""
    opened = (node.child_by_field_name("name") for node in source.nodes_of("namespace_definition"))
    return frozenset(word for name in opened if name is not None for word in _WORD.findall(source.text_of(name)))


def _end(source: CudaSource, node: Node) -> int:
    """Return where an item ends, a type's semicolon included."""
    after = node.next_sibling
    return after.end_byte if node.type in _SPECIFIERS and after is not None and after.type == ";" else node.end_byte


def _is_function(node: Node) -> bool:
    while node.type == "template_declaration":
        node = node.named_children[-1]
    return node.type == "function_definition"


def _declared(source: CudaSource, node: Node) -> Iterator[str]:
    """Yield the names that an item gives."""
    kind = node.type
    if undefined := _UNDEFINED.match(source.text_of(node)):
        yield undefined[1]
    elif kind == "template_declaration":
        yield from _declared(source, node.named_children[-1])
    elif kind in _MACROS or kind in _SPECIFIERS or kind in _NAMED:
        name = node.child_by_field_name("name")
        if name is not None:
            yield from _WORD.findall(source.text_of(name))[:1]
        if kind == "enum_specifier":
            yield from (source.text_of(part) for part in _within(node, "enumerator") if part.type in _NAMES)
    else:
        for declarator in node.children_by_field_name("declarator"):
            yield from _innermost(source, declarator)
        declared = node.child_by_field_name("type")
        if declared is not None and declared.type in _SPECIFIERS:
            yield from _declared(source, declared)


def _within(node: Node, kind: str) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        if here.type == kind:
            name = here.child_by_field_name("name")
            if name is not None:
                yield name
        stack.extend(here.named_children)


def _innermost(source: CudaSource, node: Node) -> Iterator[str]:
    """Yield the name that a declarator declares; of ``Type::member`` both."""
    while (inner := node.child_by_field_name("declarator")) is not None:
        node = inner
    if node.type not in _NAMES:
        name = node.child_by_field_name("name")
        yield from _WORD.findall(source.text_of(name or node))[:4]
    else:
        yield source.text_of(node)


def _needed(items: list[_Item]) -> set[_Item]:
    """Return the kernels and what they lead to by name."""
    by_name: dict[str, list[_Item]] = {}
    for item in items:
        if not item.host:
            for name in item.names:
                by_name.setdefault(name, []).append(item)
    kept: set[_Item] = set()
    hosts = frozenset(word for item in items if item.host for word in item.words)
    template = any(item.root and "template" in item.words for item in items)
    waiting = [item for item in items if item.root or (template and item.given and item.names & hosts)]
    while waiting:
        item = waiting.pop()
        if item in kept:
            continue
        kept.add(item)
        waiting += [other for word in item.words for other in by_name.get(word, ()) if other not in kept]
    return kept


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
