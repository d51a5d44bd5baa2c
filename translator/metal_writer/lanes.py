"""What the lanes of a warp and the threads of a block do together: shuffles, votes, barriers, fences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.constants import integer
from translator.metal_writer.expressions import SHUFFLES
from translator.metal_writer.refused import Refused

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

_REDUCTIONS = {
    "__reduce_add_sync": "simd_sum", "__reduce_max_sync": "simd_max", "__reduce_min_sync": "simd_min",
    "__reduce_and_sync": "simd_and", "__reduce_or_sync": "simd_or", "__reduce_xor_sync": "simd_xor",
}  # fmt: skip
_PLACES = ("simdgroup_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroups_per_threadgroup")
_VOTES = {"__any_sync": "simd_any", "__all_sync": "simd_all", "__any": "simd_any", "__all": "simd_all"}
_FULL = re.compile(r"\(?(?:0x[fF]{8}|~0|-1|4294967295)[uUlL]*\)?")


def lane_call(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str | None:
    """Return a shuffle, vote or reduction over lanes; None for other calls."""
    if name in SHUFFLES:
        value, by, *width = arguments[name.endswith("_sync") :]
        size = renderer.text(width[0]) if width else "32"
        return shuffle(renderer, node, name.removesuffix("_sync"), value, by, size)
    if name in (*_VOTES, "__ballot", "__ballot_sync") and not arguments:
        raise Refused(node, f"'{name}' lacks arguments", "give it a condition")
    if name in _VOTES:
        vote = renderer.as_type(arguments[-1], "bool")
        if not name.endswith("_sync") or is_full(renderer, arguments[0]):
            return renderer.leaf(node, f"{_VOTES[name]}({vote})")
        asked, sign = (f"!({vote})", "==") if name == "__all_sync" else (vote, "!=")
        mask = renderer.parenthesised(arguments[0])
        return renderer.leaf(node, f"((uint((simd_vote::vote_t)simd_ballot({asked})) & {mask}) {sign} 0)")
    if name in ("__ballot_sync", "__ballot"):
        text = f"uint((simd_vote::vote_t)simd_ballot({renderer.as_type(arguments[-1], 'bool')}))"
        if name == "__ballot_sync" and not is_full(renderer, arguments[0]):
            text = f"({text} & {renderer.parenthesised(arguments[0])})"
        return renderer.leaf(node, text)
    if name == "__activemask":
        return renderer.leaf(node, "uint((simd_vote::vote_t)simd_active_threads_mask())")
    if name == "__match_any_sync" and len(arguments) == 2:
        renderer.shared.idioms.add("match_any")
        text = f"match_any({renderer.render(arguments[1])})"
        if not is_full(renderer, arguments[0]):
            text = f"({text} & {renderer.parenthesised(arguments[0])})"
        return renderer.leaf(node, text)
    if name in _REDUCTIONS and len(arguments) == 2:
        if not is_full(renderer, arguments[0]):
            reduction = f"masked_{_REDUCTIONS[name].removeprefix('simd_')}"
            renderer.shared.idioms.add(reduction)
            given = ", ".join(renderer.render(argument) for argument in arguments)
            return renderer.leaf(node, f"{reduction}({given})")
        return renderer.leaf(node, f"{_REDUCTIONS[name]}({renderer.render(arguments[1])})")
    return None


def is_full(renderer: Renderer, mask: Node) -> bool:
    """Whether a mask names all 32 lanes, or those that come together there."""
    if mask.type == "identifier" and (variable := renderer.reader.variable(mask)) is not None:
        declared = variable.type.const and variable.value is not None
        return declared and bool(_FULL.fullmatch(renderer.text(variable.value or mask)))
    text = renderer.text(mask)
    return text == "__activemask()" or bool(_FULL.fullmatch(value_text(renderer, text)))


def value_text(renderer: Renderer, name: str) -> str:
    """Return what a named constant of the source stands for, the text itself where it is none."""
    program = renderer.program
    if name in program.macros and (value := program.macros[name].child_by_field_name("value")) is not None:
        return program.source.text_of(value).split("//")[0].strip()
    item = program.items.get(name)
    if item is not None and item.kind == "constant":
        for declarator in item.node.children_by_field_name("declarator"):
            if (value := declarator.child_by_field_name("value")) is not None and name in program.text(declarator):
                return program.text(value)
    return name


def number(renderer: Renderer, node: Node) -> int | None:
    """Return the value of an integer constant, None where it isn't known."""
    text = renderer.text(node)
    for _ in range(4):
        if re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*", text):
            return int(text.rstrip("uUlL"), 0)
        if text == "warpSize":
            return 32
        text = value_text(renderer, text).strip("()")
    return None


def largest(renderer: Renderer, node: Node) -> int | None:
    """Return what an expression is at most: a constant, or the counter of a loop with constant bounds; else None."""
    if (value := number(renderer, node)) is not None:
        return value
    variable = renderer.reader.variable(node) if node.type == "identifier" else None
    loop = variable.declaration.parent if variable is not None else None
    if variable is None or variable.value is None or loop is None or loop.type != "for_statement":
        return None
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    begin = number_of(renderer, variable.value)
    if condition is None or update is None or begin is None or _changed(renderer, loop, variable.name):
        return None
    step = "".join(renderer.text(update).split())
    if step in (f"{variable.name}>>=1", f"{variable.name}/=2"):
        return begin
    match = re.fullmatch(rf"{variable.name} ?(<=?) ?(.+)", renderer.text(condition))
    end = integer(renderer.program, match[2], {}) if match is not None else None
    rising = (f"++{variable.name}", f"{variable.name}++", f"{variable.name}<<=1", f"{variable.name}*=2")
    if match is None or end is None or step not in rising:
        return None
    return end if match[1] == "<=" else end - 1


def number_of(renderer: Renderer, node: Node) -> int | None:
    """Return the value of an integer expression of constants, None where it isn't known."""
    return integer(renderer.program, renderer.text(node).replace("warpSize", "32"), {})


def _changed(renderer: Renderer, loop: Node, name: str) -> bool:
    """Whether a loop's body gives its counter another value."""
    body = loop.child_by_field_name("body")
    return body is not None and any(
        node.type in ("assignment_expression", "update_expression") and renderer.text(node.named_children[0]) == name
        for node in walk(body)
    )


def shuffle(renderer: Renderer, node: Node, name: str, value: Node, by: Node, size: str) -> str:
    """Return a shuffle within segments of ``size`` lanes.

    Lanes beyond the segment keep their own value, in CUDA as here: the lane is computed, and all lanes shuffle.
    """
    width = integer(renderer.program, size.replace("warpSize", "32"), {})
    text = _exchanged(renderer, node, value)
    if width == 32:
        return text(_FULL_WIDTH[name], _full_lane(renderer, name, by))
    lane = renderer.attribute("thread_index_in_simdgroup")
    step = renderer.parenthesised(by)
    size = str(width) if width is not None else f"({size})"
    low = str(width - 1) if width is not None else f"({size} - 1)"
    known, most = number(renderer, by), largest(renderer, by)
    if name == "__shfl_xor" and most is not None and width is not None and most < width:
        return text("simd_shuffle_xor", renderer.render(by))
    if name == "__shfl" and known is not None and width is not None:
        first = f"{lane} & ~{low}"
        return text("simd_shuffle", f"({first}) | {known % width}" if known % width else first)
    source = {
        "__shfl": f"({lane} & ~{low}) | ({step} & {low})",
        "__shfl_xor": f"({lane} ^ {step}) <= ({lane} | {low}) ? {lane} ^ {step} : {lane}",
        "__shfl_up": f"({lane} & {low}) >= uint({renderer.render(by)}) ? {lane} - {step} : {lane}",
        "__shfl_down": f"({lane} & {low}) + {step} < {size} ? {lane} + {step} : {lane}",
    }[name]
    return text("simd_shuffle", source)


_FULL_WIDTH = {
    "__shfl": "simd_shuffle", "__shfl_xor": "simd_shuffle_xor", "__shfl_up": "simd_shuffle_up",
    "__shfl_down": "simd_shuffle_down",
}  # fmt: skip


def _full_lane(renderer: Renderer, name: str, by: Node) -> str:
    most = largest(renderer, by)
    if name != "__shfl" or (most is not None and most < 32):
        return renderer.render(by)
    return f"{renderer.parenthesised(by)} & 31"


def _exchanged(renderer: Renderer, node: Node, value: Node) -> Callable[[str, str], str]:
    """Return what writes a shuffle of a value; those of 64 bits and bools take a detour."""
    kind = renderer.reader.type_of(value).name
    rendered = renderer.render(value)

    def text(function: str, lane: str) -> str:
        if kind in ("long", "ulong"):
            return renderer.leaf(node, f"as_type<{kind}>({function}(as_type<uint2>({rendered}), {lane}))")
        if kind == "bool":
            return renderer.leaf(node, f"bool({function}(uint({rendered}), {lane}))")
        return renderer.leaf(node, f"{function}({rendered}, {lane})")

    return text


def barrier_call(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str | None:
    """Return a barrier or fence; None for other calls."""
    if name == "__syncthreads":
        return renderer.leaf(node, f"threadgroup_barrier({renderer.shared.barrier})")
    if name == "__syncwarp":
        if arguments and not is_full(renderer, arguments[0]):
            raise Refused(node, "'__syncwarp' of a part of the warp: Metal's simdgroup_barrier is for all lanes",
                          "let all lanes come to it, and put the condition around the work only")  # fmt: skip
        return renderer.leaf(node, f"simdgroup_barrier({renderer.shared.barrier})")
    if name in ("__threadfence", "__threadfence_system"):
        return renderer.leaf(
            node, "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device)"
        )
    if name == "__threadfence_block":
        return renderer.leaf(
            node, "atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup)"
        )
    if name in ("__syncthreads_count", "__syncthreads_and", "__syncthreads_or") and len(arguments) == 1:
        if not renderer.routine.kernel:
            raise Refused(node, f"'{name}' in a function", "call it in the kernel and pass the result")
        renderer.shared.idioms.add("threadgroup_count")
        renderer.vote_slots()
        names = [renderer.attribute(attribute) for attribute in _PLACES]
        holds = renderer.as_type(arguments[0], "bool")
        if name.endswith("_and"):
            holds = f"!({holds})"
        count = f"threadgroup_count({holds}, votes, {', '.join(names)})"
        after = {"__syncthreads_count": "", "__syncthreads_and": " == 0", "__syncthreads_or": " != 0"}[name]
        return renderer.leaf(node, f"({count}{after})" if after else count)
    return None
