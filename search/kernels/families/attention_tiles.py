"""The part of an attention kernel that brings tiles of K and V into threadgroup memory."""

from __future__ import annotations

from collections.abc import Mapping

from search.kernels.families.attention_plan import AttentionPlan
from search.kernels.families.writer import MetalWriter

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def tile_size(plan: AttentionPlan, array: str) -> str:
    """Return the elements of a tile of ``array`` (``k`` or ``v``)."""
    return "D * (TILE + 1)" if plan.transposed and array == "k" else "TILE * D"


def declare_tiles(plan: AttentionPlan, metal: MetalWriter) -> None:
    """Declare the tiles, twice as large when they are double-buffered."""
    copies = "2 * " if plan.double_buffer else ""
    metal("")
    if plan.transposed:
        metal.note("A key is a column of the K tile; one column more keeps the transposing stores off one bank.")
        metal(f"threadgroup T k_tile[{copies}D * (TILE + 1)];")
    for array in "v" if plan.transposed else "kv":
        if plan.vector:  # declared in the pieces that are written, so that it is aligned for them
            metal(f"threadgroup vec<T, 4> {array}_tile_quads[{copies}TILE * D / 4];")
            metal(f"threadgroup T* {array}_tile = (threadgroup T*){array}_tile_quads;")
        else:
            metal(f"threadgroup T {array}_tile[{copies}TILE * D];")


def fill_tiles(plan: AttentionPlan, metal: MetalWriter, start: str, tiles: Mapping[str, str]) -> None:
    """Copy the keys (and values) from ``start`` on into ``tiles``, names by array; those past the end become zero.

    ``start`` is "" for the beginning.
    """
    pieces, at = ("TILE * D / 4", "i * 4") if plan.vector else ("TILE * D", "i")
    with metal.block(f"for (uint i = thread_index_in_threadgroup; i < {pieces}; i += SIMDGROUPS * 32)"):
        key, row = (f"{start} + {at} / D", f"base + size_t({start}) * D") if start else (f"{at} / D", "base")
        metal(f"const bool inside = {key} < L;", f"const size_t from = {row} + {at};")
        for array, tile in tiles.items():
            transposed = plan.transposed and array == "k"
            if not plan.vector:
                to = f"{at} % D * (TILE + 1) + {at} / D" if transposed else at
                metal(f"{tile}[{to}] = inside ? {array}[from] : T(0);")
                continue
            quad = f"{array}_quad"
            metal(f"const vec<T, 4> {quad} = inside ? *(const device vec<T, 4>*)({array} + from) : vec<T, 4>(T(0));")
            if transposed:
                metal(f"for (uint j = 0; j < 4; ++j) {tile}[({at} % D + j) * (TILE + 1) + {at} / D] = {quad}[j];")
            else:
                metal(f"*(threadgroup vec<T, 4>*)({tile} + {at}) = {quad};")
