"""Cooperative groups: the block and its tiles of lanes are no objects in Metal, only the words for what they do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer.expressions import call_arguments, plain_name
from translator.metal_writer.lanes import shuffle
from translator.metal_writer.program import Program, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.types import SCALARS

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

BLOCK = 0
_MADE = re.compile(r"(?:\w+::)?tiled_partition\s*(?:<\s*(\d+)\s*>|\(\s*\w+\s*,\s*(\d+)\s*\))")
_TILE = re.compile(r"(?:\w+::)*thread_block_tile\s*<\s*(\d+)")
_REDUCTIONS = {"plus": "sum", "greater": "max", "less": "min", "bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
_STEPS = {"sum": "value + other", "max": "max(value, other)", "min": "min(value, other)", "and": "value & other",
          "or": "value | other", "xor": "value ^ other"}  # fmt: skip
_SHUFFLES = {"shfl": "__shfl", "shfl_down": "__shfl_down", "shfl_up": "__shfl_up", "shfl_xor": "__shfl_xor"}
_BLOCK_MEMBERS = {
    "thread_rank": "thread_index_in_threadgroup", "group_index": "threadgroup_position_in_grid",
    "thread_index": "thread_position_in_threadgroup", "group_dim": "threads_per_threadgroup",
    "dim_threads": "threads_per_threadgroup",
}  # fmt: skip


def group_size(program: Program, variable: Variable) -> int | None:
    """Return how many lanes a group has, `BLOCK` for the whole block, None when the variable is no group."""
    if variable.value is not None and (made := _made(program.text(variable.value))) is not None:
        return made
    text = program.text(variable.declaration)
    if match := _TILE.search(text.partition("=")[0]):
        return int(match[1])
    kind = re.match(r"(?:const )?(?:\w+::)*(\w+)", text)
    return BLOCK if kind is not None and kind[1] == "thread_block" else None


def _made(text: str) -> int | None:
    if re.match(r"(?:\w+::)?this_thread_block\s*\(", text):
        return BLOCK
    match = _MADE.match(text)
    return int(match[1] or match[2]) if match is not None else None


def waits_for_block(program: Program, call: Node) -> bool:
    """Whether a call is the ``sync`` of a block's group."""
    function = call.child_by_field_name("function")
    text = program.text(function).replace(" ", "") if function is not None else ""
    arguments = call_arguments(call)
    if re.fullmatch(r"(?:cg|cooperative_groups)::sync", text) and arguments:
        name = program.text(arguments[0])
    elif text.endswith((".sync", ".barrier_wait")):
        name = text.rpartition(".")[0]
    else:
        return False
    if _made(name) is not None:
        return _made(name) == BLOCK
    word = re.escape(name)
    made = rf"\b{word}\s*=\s*(?:\w+::)?this_thread_block\b|\bthread_block\s*(?:const\s*)?&?\s*{word}\b"
    return bool(re.search(made, program.source.text))


def group_call(renderer: Renderer, node: Node, function: Node) -> str | None:
    """Return what a member of a group, or ``cg::reduce``, does; None for other calls."""
    arguments = call_arguments(node)
    if function.type == "field_expression":
        of, member = function.named_children[0], function.child_by_field_name("field")
        size = size_of_group(renderer, of)
        return _member(renderer, node, renderer.text(member), size, arguments) if size is not None and member else None
    name = plain_name(renderer.program, function)
    scope = renderer.text(function).partition("::")[0]
    if scope not in ("cg", "cooperative_groups") or not arguments:
        return None
    size = size_of_group(renderer, arguments[0])
    if name == "sync" and size is not None:
        return _barrier(renderer, node, size)
    if name == "reduce" and size is not None and size != BLOCK and len(arguments) == 3:
        return _reduced(renderer, node, size, arguments)
    raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "reduce with a ladder of shfl_xor")


def size_of_group(renderer: Renderer, node: Node) -> int | None:
    """Return `group_size` of an expression."""
    variable = renderer.reader.variable(node) if node.type == "identifier" else None
    return group_size(renderer.program, variable) if variable is not None else _made(renderer.text(node))


def _barrier(renderer: Renderer, node: Node, size: int) -> str:
    word = "threadgroup_barrier" if size == BLOCK else "simdgroup_barrier"
    return renderer.leaf(node, f"{word}({renderer.shared.barrier})")


def _reduced(renderer: Renderer, node: Node, size: int, arguments: list[Node]) -> str:
    """Return a reduction over the lanes of a tile: Metal's own for a simdgroup, a ladder of shuffles for less."""
    operation = re.search(r"(\w+)\s*<", renderer.text(arguments[2]))
    reduction = _REDUCTIONS.get(operation[1] if operation is not None else "")
    kind = renderer.reader.type_of(arguments[1]).name
    if reduction is None or kind in ("long", "ulong", "bool") or (kind not in SCALARS and kind not in ("half2",)):
        raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "reduce with a ladder of shfl_xor")
    value = renderer.render(arguments[1])
    if size == 32:
        return renderer.leaf(node, f"simd_{reduction}({value})")
    renderer.shared.idioms.add(f"tile_{reduction}")
    return renderer.leaf(node, f"tile_{reduction}({value}, {size})")


def tile_reduction(name: str) -> str:
    """Return the header's function for a reduction such as ``tile_sum``."""
    operation = name.removeprefix("tile_")
    return (
        f"// The {operation} over each tile of so many lanes, in all of its lanes.\n"
        "template <typename T>\n"
        f"inline T {name}(T value, ushort size) {{\n"
        "    for (ushort step = size / 2; step > 0; step /= 2) {\n"
        "        T other = simd_shuffle_xor(value, step);\n"
        f"        value = {_STEPS[operation]};\n"
        "    }\n"
        "    return value;\n"
        "}"
    )


def masked_reduction(name: str) -> str:
    """Return the header's function for a reduction such as ``masked_sum``."""
    operation = name.removeprefix("masked_")
    step = _STEPS[operation].replace("value", "result")
    return (
        f"// The {operation} over the lanes of a mask, which its lanes come to together.\n"
        "template <typename T>\n"
        f"inline T {name}(uint mask, T value) {{\n"
        "    T result = value;\n"
        "    uint first = ctz(mask);\n"
        "    for (ushort lane = 0; lane < 32; ++lane) {\n"
        "        T other = simd_shuffle(value, lane);\n"
        f"        if (mask >> lane & 1) result = lane == first ? other : {step};\n"
        "    }\n"
        "    return result;\n"
        "}"
    )


def _member(renderer: Renderer, node: Node, member: str, size: int, arguments: list[Node]) -> str:
    if member == "sync":
        return _barrier(renderer, node, size)
    text = _of_block(renderer, member) if size == BLOCK else _of_tile(renderer, node, member, size, arguments)
    if text is None:
        raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "write it with threadIdx and __shfl_sync")
    return renderer.leaf(node, text)


def _of_block(renderer: Renderer, member: str) -> str | None:
    if member in _BLOCK_MEMBERS:
        return renderer.attribute(_BLOCK_MEMBERS[member])
    return _threads(renderer) if member in ("size", "num_threads") else None


def _threads(renderer: Renderer) -> str:
    dims = renderer.attribute("threads_per_threadgroup")
    return f"({dims}.x * {dims}.y * {dims}.z)"


def _of_tile(renderer: Renderer, node: Node, member: str, size: int, arguments: list[Node]) -> str | None:
    if member in _SHUFFLES and len(arguments) == 2:
        return shuffle(renderer, node, _SHUFFLES[member], arguments[0], arguments[1], str(size))
    if member in ("size", "num_threads"):
        return f"{size}u"
    if member == "meta_group_rank":
        if size == 32:
            return renderer.attribute("simdgroup_index_in_threadgroup")
        return f"({renderer.attribute('thread_index_in_threadgroup')} / {size})"
    if member == "meta_group_size":
        if size == 32:
            return renderer.attribute("simdgroups_per_threadgroup")
        return f"(({_threads(renderer)} + {size - 1}) / {size})"
    if member == "thread_rank":
        lane = renderer.attribute("thread_index_in_simdgroup")
        return lane if size == 32 else f"({lane} & {size - 1})"
    if member not in ("any", "all", "ballot") or len(arguments) != 1:
        return None
    vote = renderer.as_type(arguments[0], "bool")
    if size == 32 and member != "ballot":
        return f"simd_{member}({vote})"
    ballot = f"uint((simd_vote::vote_t)simd_ballot({vote}))"
    if size == 32:
        return ballot
    lane, full = renderer.attribute("thread_index_in_simdgroup"), f"0x{(1 << size) - 1:x}u"
    own = f"(({ballot} >> ({lane} & {32 - size})) & {full})"
    return {"ballot": own, "any": f"({own} != 0)", "all": f"({own} == {full})"}[member]
