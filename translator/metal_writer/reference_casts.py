"""Casts to references, ``(float4&)x[i]``: written as what they mean, an object behind a cast pointer."""

from __future__ import annotations

import re

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda

_CAST = re.compile(r"\breinterpret_cast\s*<(?P<type>[^;(){}]*?)&\s*>\s*\Z", re.DOTALL)


def without_reference_casts(source: CudaSource) -> CudaSource:
    """Return the source with such a cast as ``(*(float4*)&(x[i]))``; lines keep their numbers."""
    edits: list[tuple[int, int, str]] = []
    for node in source.nodes_of("cast_expression", "call_expression"):
        if found := _parts(source, node):
            type_text, value = found
            edits.append((node.start_byte, value.start_byte, f"(*({type_text}*)&("))
            edits.append((value.end_byte, node.end_byte, "))"))
    text = source.text
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + "\n" * text.count("\n", begin, end) + text[end:]
    return parse_cuda(text, source.path) if edits else source


def _parts(source: CudaSource, node: Node) -> tuple[str, Node] | None:
    """Return the type, without its sign, and what is cast."""
    if node.type == "cast_expression":
        described, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        text = source.text_of(described).strip() if described is not None else ""
        return (text[:-1].strip(), value) if value is not None and text.endswith("&") and text.count("&") == 1 else None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    match = _CAST.match(source.text_of(function)) if function is not None else None
    if match is None or arguments is None or arguments.named_child_count != 1:
        return None
    return match["type"].strip(), arguments.named_children[0]
