"""Prefill attention: the plan of a kernel, and the transformations that change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from search.kernels.families.base import Present, Refused

SIMD_WIDTH = 32
FIRST_TILE, SMALLEST_TILE, LARGEST_TILE = 16, 4, 32
MOST_ROWS, MOST_SIMDGROUPS = 8, 16

MATRIX = 8
"""Rows and columns of a simdgroup_matrix, so the fewest keys of a tile that is multiplied as matrices."""

PAD_BYTES = 16
"""What a row of such a tile has at its end, so that the eight rows of a matrix lie on banks of their own."""


@dataclass(frozen=True)
class AttentionPlan:
    """How the kernel is built.

    ``mapping``: who computes a query row; with ``matrix`` a simdgroup computes eight by 8x8 matrix products.
    ``reduction``: how lanes combine what each found. ``rows``: query rows of a
    simdgroup. ``simdgroups``: per threadgroup. ``online``: one pass over the keys with a running maximum.
    ``lazy_rescale``: rescale only where the maximum grew. ``tile``: keys that a threadgroup shares, 0 when keys and
    values come straight from the device. ``transposed``: the K tile has a key in each column, and a lane scores a key
    of its own; otherwise lanes share the head dimension. ``vector``: wide loads. ``double_buffer``: the next tile is
    read while this one is used. ``unroll``: keys of one step, where a lane hasn't one of its own.
    """

    mapping: Literal["thread", "simdgroup", "matrix"] = "thread"
    reduction: Literal["none", "shuffle", "simd"] = "none"
    rows: int = 1
    simdgroups: int = 4
    online: bool = False
    lazy_rescale: bool = False
    exp2: bool = False
    fast: bool = False
    tile: int = 0
    transposed: bool = False
    vector: bool = False
    double_buffer: bool = False
    unroll: int = 1

    @property
    def threads(self) -> int:
        """Threads of a threadgroup."""
        return self.simdgroups * SIMD_WIDTH

    @property
    def rows_per_threadgroup(self) -> int:
        """Query rows that a threadgroup computes."""
        return self.threads if self.mapping == "thread" else self.simdgroups * self.rows

    @property
    def lanes_per_key(self) -> int:
        """Lanes that share a key of a transposed tile, each with its part of the head dimension."""
        return SIMD_WIDTH // self.tile


def threadgroup_bytes(plan: AttentionPlan, axes: Mapping[str, int]) -> int:
    """Return the bytes of threadgroup memory that the kernel of ``plan`` declares under ``axes`` (``D``, ``sizeof_T``).

    The K and V tiles, twice when double-buffered; a transposed tile has one more column, and rows that are read as
    matrices are padded.
    """
    if not plan.tile:
        return 0
    head_dim, element = axes["D"], axes["sizeof_T"]
    if plan.mapping == "matrix":
        return 2 * plan.tile * (head_dim * element + PAD_BYTES) * (2 if plan.double_buffer else 1)
    elements = head_dim * (plan.tile + plan.transposed) + head_dim * plan.tile
    return elements * element * (2 if plan.double_buffer else 1)


def lighter(plan: AttentionPlan) -> AttentionPlan | None:
    """Return ``plan`` with smaller tiles, then with fewer threads in a threadgroup."""
    if plan.tile > _smallest_tile(plan):
        return replace(plan, tile=plan.tile // 2)
    return replace(plan, simdgroups=plan.simdgroups // 2) if plan.simdgroups > 1 else None


def _smallest_tile(plan: AttentionPlan) -> int:
    return MATRIX if plan.mapping == "matrix" else SMALLEST_TILE


def _row_per_simdgroup(plan: AttentionPlan) -> AttentionPlan:
    if plan.mapping != "thread":
        raise Present("a row is spread over a simdgroup already")
    return replace(plan, mapping="simdgroup", reduction="simd")


def _matrix_products(plan: AttentionPlan) -> AttentionPlan:
    if plan.mapping == "matrix":
        raise Present("both products are of 8x8 matrices already")
    _on_simdgroup(plan)
    if not plan.online:
        raise Refused("the scores of a tile are weighed while its matrices are in registers", first="online")
    tile = max(plan.tile, FIRST_TILE)
    return replace(
        plan, mapping="matrix", reduction="shuffle", rows=MATRIX, tile=tile, transposed=False, vector=True, unroll=1
    )


def _simd_reductions(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.mapping == "matrix":
        raise Refused("four lanes share a row of a matrix, too few for a reduction over the simdgroup")
    if plan.reduction == "simd":
        raise Present("the reductions are simd_sum and simd_max already")
    return replace(plan, reduction="simd")


def _shuffle_reductions(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.reduction == "shuffle":
        raise Present("the reductions are shuffles already")
    return replace(plan, reduction="shuffle")


def _more_rows(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.rows >= MOST_ROWS:
        raise Refused(f"a simdgroup has {plan.rows} rows already; more would not stay in registers")
    return replace(plan, rows=2 * plan.rows)


def _more_simdgroups(plan: AttentionPlan) -> AttentionPlan:
    _tiled(plan)
    if plan.simdgroups >= MOST_SIMDGROUPS:
        raise Present(f"a threadgroup has {plan.simdgroups} simdgroups already")
    return replace(plan, simdgroups=2 * plan.simdgroups)


def _online(plan: AttentionPlan) -> AttentionPlan:
    if plan.online:
        raise Present("there is one pass over the keys already")
    return replace(plan, online=True)


def _lazy_rescale(plan: AttentionPlan) -> AttentionPlan:
    if plan.lazy_rescale:
        raise Present("sums are rescaled only where the maximum grew already")
    if not plan.online:
        raise Refused("only a running maximum rescales anything", first="online")
    return replace(plan, lazy_rescale=True)


def _exp2(plan: AttentionPlan) -> AttentionPlan:
    if plan.exp2:
        raise Present("exponentials are exp2 already")
    return replace(plan, exp2=True)


def _fast_exp(plan: AttentionPlan) -> AttentionPlan:
    if plan.fast:
        raise Present("exponentials are the fast ones already")
    return replace(plan, fast=True)


def _kv_tiles(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.tile:
        raise Present("keys and values come from tiles already")
    return replace(plan, tile=FIRST_TILE)


def _larger_tile(plan: AttentionPlan) -> AttentionPlan:
    _tiled(plan)
    if plan.tile >= LARGEST_TILE:
        raise Present(f"a tile has {plan.tile} keys already")
    return replace(plan, tile=2 * plan.tile)


def _smaller_tile(plan: AttentionPlan) -> AttentionPlan:
    _tiled(plan)
    if plan.tile <= _smallest_tile(plan):
        raise Present(f"a tile has only {plan.tile} keys already")
    return replace(plan, tile=plan.tile // 2)


def _transposed_k(plan: AttentionPlan) -> AttentionPlan:
    _tiled(plan)
    if plan.mapping == "matrix":
        raise Refused("a matrix is read by rows or by columns alike; transposing would only cost bank conflicts")
    if plan.transposed:
        raise Present("the K tile is transposed already")
    return replace(plan, transposed=True, unroll=1)


def _vector_loads(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.vector:
        raise Present("loads are wide already")
    return replace(plan, vector=True)


def _double_buffer(plan: AttentionPlan) -> AttentionPlan:
    _tiled(plan)
    if plan.double_buffer:
        raise Present("tiles are double-buffered already")
    return replace(plan, double_buffer=True)


def _unroll(plan: AttentionPlan) -> AttentionPlan:
    _on_simdgroup(plan)
    if plan.mapping == "matrix":
        raise Present("a step takes a whole tile of matrices already")
    if plan.unroll > 1:
        raise Present(f"a step takes {plan.unroll} keys already")
    if plan.transposed:
        raise Refused("a step takes a whole tile here, a key for each lane")
    return replace(plan, unroll=4)


def _on_simdgroup(plan: AttentionPlan) -> None:
    """A thread with a whole row holds D floats of it, all the 128 registers of an Apple GPU's thread at D = 128."""
    if plan.mapping == "thread":
        raise Refused(
            "a thread that computes a whole row has its registers full with the output",
            first="row_per_simdgroup",
        )


def _tiled(plan: AttentionPlan) -> None:
    _on_simdgroup(plan)
    if not plan.tile:
        raise Refused("there are no tiles in threadgroup memory yet", first="kv_tiles")


TRANSFORMATIONS: dict[str, Callable[[AttentionPlan], AttentionPlan]] = {
    "row_per_simdgroup": _row_per_simdgroup,
    "matrix_products": _matrix_products,
    "simd_reductions": _simd_reductions,
    "shuffle_reductions": _shuffle_reductions,
    "more_rows": _more_rows,
    "more_simdgroups": _more_simdgroups,
    "online": _online,
    "lazy_rescale": _lazy_rescale,
    "exp2": _exp2,
    "fast_exp": _fast_exp,
    "kv_tiles": _kv_tiles,
    "larger_tile": _larger_tile,
    "smaller_tile": _smaller_tile,
    "transposed_k": _transposed_k,
    "vector_loads": _vector_loads,
    "double_buffer": _double_buffer,
    "unroll": _unroll,
}
