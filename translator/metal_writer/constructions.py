"""Locals that are built by a constructor, ``T x(a * b)``, which the grammar takes for declarations of functions."""

from __future__ import annotations

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda
from translator.metal_writer.program import TYPES, read_program


def with_constructions(source: CudaSource) -> CudaSource:
    """Return the source with such a local written as ``T x = T(a * b)``; lines keep their numbers."""
    types = {name for name, item in read_program(source).items.items() if item.kind in ("struct", "alias", "enum")}
    text = source.text
    for node in sorted(source.nodes_of("declaration"), key=lambda node: -node.start_byte):
        declarator = node.child_by_field_name("declarator")
        kind = next((child for child in node.children if child.type in TYPES), None)
        if kind is None or declarator is None or not _constructs(source, node, declarator, types):
            continue
        name, given = declarator.named_children[0], declarator.named_children[-1]
        text = f"{text[: name.end_byte]} = {source.text_of(kind)}{text[given.start_byte :]}"
    return parse_cuda(text, source.path) if text != source.text else source


def _constructs(source: CudaSource, node: Node, declarator: Node, types: set[str]) -> bool:
    """Whether a declaration within a function has values for its parameters: none of them begins with a type."""
    if node.parent is None or node.parent.type != "compound_statement" or declarator.type != "function_declarator":
        return False
    given = declarator.named_children[-1]
    if declarator.named_children[0].type != "identifier" or given.type != "parameter_list":
        return False
    first = [parameter.named_children[0] for parameter in given.named_children if parameter.named_children]
    return bool(first) and all(
        word.type == "type_identifier" and source.text_of(word) not in types for word in first
    )  # fmt: skip
