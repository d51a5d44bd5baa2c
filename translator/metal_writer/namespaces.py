"""The namespaces of a source, left out: a Metal header has what they hold side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda, walk
from translator.launch_plan import LaunchPlan, StructArgument

_AROUND = frozenset((
    "declaration_list", "template_declaration", "linkage_specification", "preproc_if", "preproc_ifdef", "preproc_else",
    "translation_unit", "namespace_definition",
))  # fmt: skip
_DEFINING = (
    "struct_specifier", "class_specifier", "enum_specifier", "alias_declaration", "function_definition", "declaration",
)  # fmt: skip
_DECLARING = ("declarator", "parameter_declaration", "declaration")


def without_namespaces(source: CudaSource) -> CudaSource:
    """Return the source without the qualifiers of what only one of its namespaces has; lines keep their numbers."""
    spaces = _namespaces(source)
    if not spaces:
        return source
    defined: dict[str, set[str]] = defaultdict(set)
    for node in source.nodes_of(*_DEFINING):
        if (path := _path(source, node)) is not None:
            for name in _defined(node):
                defined[source.text_of(name).partition("<")[0].strip()].add(path)
    text = source.text
    for node in reversed(source.nodes_of("qualified_identifier")):
        above = node.parent.type if node.parent is not None else ""
        target = None if above in ("qualified_identifier", "using_declaration", "namespace_alias_definition") else node
        while target is not None and target.type == "qualified_identifier" and _scope(source, target) in spaces | {""}:
            target = target.child_by_field_name("name")
        if target is None or target.start_byte == node.start_byte:
            continue
        first = target.child_by_field_name("scope") if target.type == "qualified_identifier" else target
        word = source.text_of(first).partition("<")[0].strip() if first is not None else ""
        if len(defined.get(word, ())) == 1 and not _is_hidden(source, node, word):
            left_out = text[node.start_byte : target.start_byte]
            text = text[: node.start_byte] + "\n" * left_out.count("\n") + text[target.start_byte :]
    return parse_cuda(text, source.path) if text != source.text else source


def _defined(node: Node) -> Iterator[Node]:
    """Yield the names that a definition gives."""
    if node.type in ("function_definition", "declaration"):
        for declarator in node.children_by_field_name("declarator"):
            inner: Node | None = declarator
            while inner is not None and inner.type.endswith("declarator"):
                inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
            if inner is not None and inner.type in ("identifier", "template_function"):
                yield inner
    elif (name := node.child_by_field_name("name")) is not None and (
        node.type == "alias_declaration" or node.child_by_field_name("body") is not None
    ):
        yield name
    for inner in walk(node) if node.type == "enum_specifier" else ():
        if inner.type == "enumerator" and (label := inner.child_by_field_name("name")) is not None:
            yield label


def _is_hidden(source: CudaSource, node: Node, word: str) -> bool:
    """Whether the function around a node has a parameter or local of that name."""
    while node.parent is not None and node.type != "function_definition":
        node = node.parent
    declared = (inner.child_by_field_name("declarator") for inner in walk(node) if inner.type.endswith(_DECLARING))
    return any(name is not None and source.text_of(name).strip("*& ") == word for name in declared)


def without_qualifiers(source: CudaSource, plan: LaunchPlan) -> LaunchPlan:
    """Return the plan without the source's namespaces in template arguments and types of structs."""
    spaces = _namespaces(source)
    if not spaces:
        return plan
    qualifier = re.compile(rf"(?<![\w:])(?:::)?(?:(?:{'|'.join(map(re.escape, spaces))})\s*::\s*)+")
    steps = tuple(
        replace(
            step,
            template=tuple(qualifier.sub("", text) for text in step.template),
            arguments=tuple(
                replace(each, type=qualifier.sub("", each.type)) if isinstance(each, StructArgument) else each
                for each in step.arguments
            ),
        )
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def _namespaces(source: CudaSource) -> set[str]:
    names = (node.child_by_field_name("name") for node in source.nodes_of("namespace_definition"))
    return {word for name in names if name is not None for word in source.text_of(name).replace(" ", "").split("::")}


def _scope(source: CudaSource, node: Node) -> str:
    scope = node.child_by_field_name("scope")
    return source.text_of(scope).strip() if scope is not None else ""


def _path(source: CudaSource, node: Node) -> str | None:
    """Return the namespaces around a definition, None for one within a struct or function."""
    names: list[str] = []
    above = node.parent
    while above is not None:
        if above.type == "namespace_definition" and (name := above.child_by_field_name("name")) is not None:
            names.insert(0, source.text_of(name))
        elif above.type not in _AROUND:
            return None
        above = above.parent
    return "::".join(names)
