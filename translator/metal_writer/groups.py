"""Cooperative groups: the block and its tiles of lanes are no objects in Metal, only the words for what they do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer.expressions import call_arguments, plain_name
from translator.metal_writer.lanes import shuffle
from translator.metal_writer.program import Program, Variable
from translator.metal_writer.refused import Refused

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

BLOCK = 0
_MADE = re.compile(r"(?:\w+::)?tiled_partition\s*<\s*(\d+)")
_REDUCTIONS = {"plus": "simd_sum", "greater": "simd_max", "less": "simd_min", "bit_and": "simd_and",
               "bit_or": "simd_or", "bit_xor": "simd_xor"}  # fmt: skip
_SHUFFLES = {"shfl": "__shfl", "shfl_down": "__shfl_down", "shfl_up": "__shfl_up", "shfl_xor": "__shfl_xor"}
_VOTES = {"any": "simd_any", "all": "simd_all"}


def group_size(program: Program, variable: Variable) -> int | None:
    """Return how many lanes a group has, `BLOCK` for the whole block, None when the variable is no group."""
    text = program.text(variable.value) if variable.value is not None else ""
    if re.match(r"(?:\w+::)?this_thread_block\s*\(", text):
        return BLOCK
    match = _MADE.match(text)
    return int(match[1]) if match is not None else None


def waits_for_block(program: Program, call: Node) -> bool:
    """Whether a call is the ``sync`` of a block's group."""
    function = call.child_by_field_name("function")
    text = program.text(function) if function is not None else ""
    match = re.fullmatch(r"(\w+)\.sync", text)
    return match is not None and bool(
        re.search(rf"\b{match[1]}\s*=\s*(?:\w+::)?this_thread_block\b", program.source.text)
    )


def group_call(renderer: Renderer, node: Node, function: Node) -> str | None:
    """Return what a member of a group, or ``cg::reduce``, does; None for other calls."""
    arguments = call_arguments(node)
    if function.type == "field_expression":
        of, member = function.named_children[0], function.child_by_field_name("field")
        size = _size(renderer, of)
        return _member(renderer, node, renderer.text(member), size, arguments) if size is not None and member else None
    name = plain_name(renderer.program, function)
    scope = renderer.text(function).partition("::")[0]
    if scope not in ("cg", "cooperative_groups") or not arguments:
        return None
    size = _size(renderer, arguments[0])
    if name == "sync" and size is not None:
        return _barrier(renderer, node, size)
    if name == "reduce" and size == 32 and len(arguments) == 3:
        operation = re.search(r"(\w+)\s*<", renderer.text(arguments[2]))
        reduction = _REDUCTIONS.get(operation[1] if operation is not None else "")
        if reduction is not None:
            return renderer.leaf(node, f"{reduction}({renderer.render(arguments[1])})")
    raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "reduce with a ladder of shfl_xor")


def _size(renderer: Renderer, node: Node) -> int | None:
    variable = renderer.reader.variable(node) if node.type == "identifier" else None
    return group_size(renderer.program, variable) if variable is not None else None


def _barrier(renderer: Renderer, node: Node, size: int) -> str:
    word = "threadgroup_barrier" if size == BLOCK else "simdgroup_barrier"
    return renderer.leaf(node, f"{word}({renderer.shared.barrier})")


def _member(renderer: Renderer, node: Node, member: str, size: int, arguments: list[Node]) -> str:
    def attribute(name: str) -> str:
        return renderer.leaf(node, renderer.attribute(name))

    least = 2 if member in _SHUFFLES else int(member in (*_VOTES, "ballot"))
    if len(arguments) < least:
        raise Refused(node, f"'{member}' lacks arguments", "write it with the arguments that CUDA documents")
    if member == "sync":
        return _barrier(renderer, node, size)
    if size == BLOCK:
        plain = {"thread_rank": "thread_index_in_threadgroup", "group_index": "threadgroup_position_in_grid",
                 "thread_index": "thread_position_in_threadgroup", "group_dim": "threads_per_threadgroup",
                 "dim_threads": "threads_per_threadgroup"}  # fmt: skip
        if member in plain:
            return attribute(plain[member])
        if member in ("size", "num_threads"):
            dims = renderer.attribute("threads_per_threadgroup")
            return renderer.leaf(node, f"({dims}.x * {dims}.y * {dims}.z)")
    elif member in _SHUFFLES:
        return shuffle(renderer, node, _SHUFFLES[member], arguments[0], arguments[1], str(size))
    elif member == "thread_rank":
        lane = renderer.attribute("thread_index_in_simdgroup")
        return renderer.leaf(node, lane if size == 32 else f"({lane} & {size - 1})")
    elif member in ("size", "num_threads"):
        return renderer.leaf(node, f"{size}u")
    elif member == "meta_group_rank" and size == 32:
        return attribute("simdgroup_index_in_threadgroup")
    elif member == "meta_group_size" and size == 32:
        return attribute("simdgroups_per_threadgroup")
    elif member in _VOTES and size == 32:
        return renderer.leaf(node, f"{_VOTES[member]}({renderer.as_type(arguments[0], 'bool')})")
    elif member == "ballot" and size == 32:
        vote = renderer.as_type(arguments[0], "bool")
        return renderer.leaf(node, f"uint((simd_vote::vote_t)simd_ballot({vote}))")
    raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "write it with threadIdx and __shfl_sync")
