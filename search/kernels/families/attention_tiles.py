"""The part of an attention kernel that brings tiles of K and V into threadgroup memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from search.kernels.families.attention_plan import AttentionPlan
from search.kernels.families.writer import MetalWriter

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def tile_size(plan: AttentionPlan, array: str) -> str:
    """Return the elements of a tile of ``array`` (``k`` or ``v``)."""
    rows = "D" if plan.transposed and array == "k" else "TILE"
    return f"{rows} * {stride(plan, array)}"


def stride(plan: AttentionPlan, array: str) -> str:
    """Return the elements from one row of a tile of ``array`` to the next."""
    if plan.mapping == "matrix":
        return "(D + PAD)"
    return "(TILE + 1)" if plan.transposed and array == "k" else "D"


def declare_tiles(plan: AttentionPlan, metal: MetalWriter) -> None:
    """Declare the tiles, twice as large when they are double-buffered."""
    copies = "2 * " if plan.double_buffer else ""
    metal("")
    if plan.mapping == "matrix":
        metal.note("Declared in pieces of four elements, so that two and four are read and written at once.")
        for array in "kv":
            metal(f"threadgroup vec<T, 4> {array}_tile_quads[{copies}{tile_size(plan, array)} / 4];")
            metal(f"threadgroup T* {array}_tile = (threadgroup T*){array}_tile_quads;")
        return
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
                to = f"{at} % D * (TILE + 1) + {at} / D" if transposed else _in_tile(plan, at)
                metal(f"{tile}[{to}] = inside ? {array}[from] : T(0);")
                continue
            quad = f"{array}_quad"
            metal(f"const vec<T, 4> {quad} = inside ? *(const device vec<T, 4>*)({array} + from) : vec<T, 4>(T(0));")
            if transposed:
                metal(f"for (uint j = 0; j < 4; ++j) {tile}[({at} % D + j) * (TILE + 1) + {at} / D] = {quad}[j];")
            else:
                metal(f"*(threadgroup vec<T, 4>*)({tile} + {_in_tile(plan, at)}) = {quad};")


def over_tiles(plan: AttentionPlan, metal: MetalWriter, arrays: str, use: Callable[[], None]) -> None:
    """Go over the keys up to ``end`` in tiles of ``arrays`` (letters); ``use`` writes what is done with a filled one.

    With two buffers one is filled while the other is used.
    """
    if plan.double_buffer:
        _by_turns(plan, metal, arrays, use)
        return
    with metal.block("for (uint start = 0; start < end; start += TILE)"):
        metal.note("Nobody reads the last tile any more.")
        metal(BARRIER)
        fill_tiles(plan, metal, "start", {array: f"{array}_tile" for array in arrays})
        metal(BARRIER)
        use()


def filled(plan: AttentionPlan, array: str) -> str:
    """Return the tile to read from: with two buffers, the one that is filled."""
    return f"{array}_now" if plan.double_buffer else f"{array}_tile"


def _by_turns(plan: AttentionPlan, metal: MetalWriter, arrays: str, use: Callable[[], None]) -> None:
    with metal.block(""):
        metal("uint buffer = 0;")
        fill_tiles(plan, metal, "", {array: f"{array}_tile" for array in arrays})
        with metal.block("for (uint start = 0; start < end; start += TILE)"):
            metal.note("This tile is complete, and nobody reads the other buffer any more.")
            metal(BARRIER)
            with metal.block("if (start + TILE < end)"):
                for array in arrays:
                    size = tile_size(plan, array)
                    metal(f"threadgroup T* {array}_next = {array}_tile + (1 - buffer) * {size};")
                fill_tiles(plan, metal, "start + TILE", {array: f"{array}_next" for array in arrays})
            for array in arrays:
                metal(f"const threadgroup T* {array}_now = {array}_tile + buffer * {tile_size(plan, array)};")
            use()
            metal("buffer = 1 - buffer;")
    if "v" not in arrays:
        metal.note("The second pass fills the buffers again.")
        metal(BARRIER)


def _in_tile(plan: AttentionPlan, at: str) -> str:
    """Return where the element ``at`` of the tile lies in a tile that is not transposed."""
    return f"{at} / D * {stride(plan, 'v')} + {at} % D" if plan.mapping == "matrix" else at
