"""Softmax over rows: the plan of a kernel, and the transformations that change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from search.kernels.families.base import Present, Refused

SIMD_WIDTH = 32
MAX_SIMDGROUPS = 32
KEPT_FLOATS = 32  # registers that a lane may spend on its part of the row
KEPT_BYTES = 24 * 1024  # threadgroup memory that may be spent on rows; the rest is for reductions


@dataclass(frozen=True)
class SoftmaxPlan:
    """How the kernel is built.

    ``mapping``: who computes a row. ``reduction``: how its lanes combine what each found. ``lanes``: lanes of a
    simdgroup that share a row (several rows per simdgroup when fewer than 32). ``simdgroups``: per threadgroup.
    ``online``: maximum and sum in one pass. ``vector``: elements of one load. ``keep``: where the row stays after it
    has been read. ``unroll``: loads issued before the first use. ``reciprocal``: one division a row.
    """

    mapping: Literal["thread", "simdgroup", "threadgroup"] = "thread"
    reduction: Literal["none", "tree", "shuffle", "simd"] = "none"
    lanes: int = SIMD_WIDTH
    simdgroups: int = 8
    online: bool = False
    vector: int = 1
    keep: Literal["device", "registers", "threadgroup"] = "device"
    unroll: int = 1
    exp2: bool = False
    fast: bool = False
    reciprocal: bool = False

    @property
    def threads(self) -> int:
        """Threads of a threadgroup."""
        return self.simdgroups * SIMD_WIDTH

    @property
    def lanes_per_row(self) -> int:
        """Threads that share a row."""
        return {"thread": 1, "simdgroup": self.lanes, "threadgroup": self.threads}[self.mapping]

    @property
    def rows_per_threadgroup(self) -> int:
        """Rows that a threadgroup computes."""
        return self.threads // self.lanes_per_row

    @property
    def kept_per_row(self) -> int:
        """Leading elements of a row that stay on the chip; what is longer is read again."""
        if self.keep == "registers":
            return KEPT_FLOATS * self.lanes_per_row
        if self.keep == "threadgroup":
            return KEPT_BYTES // 4 // self.rows_per_threadgroup
        return 0


def threadgroup_bytes(plan: SoftmaxPlan, axes: Mapping[str, int]) -> int:
    """Return the bytes of threadgroup memory that the kernel of ``plan`` declares (the same for every workload)."""
    reduction = 0
    if plan.mapping == "threadgroup":
        reduction = 4 * plan.threads if plan.reduction == "tree" else 4 * 2 * plan.simdgroups
    kept = 4 * plan.kept_per_row * plan.rows_per_threadgroup if plan.keep == "threadgroup" else 0
    return reduction + kept


def lighter(plan: SoftmaxPlan) -> SoftmaxPlan | None:
    """Return ``plan`` with half the threads in a threadgroup."""
    return replace(plan, simdgroups=plan.simdgroups // 2) if plan.simdgroups > 1 else None


def _row_per_simdgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.mapping != "thread":
        raise Refused(f"a row is already spread over a {plan.mapping}")
    return replace(plan, mapping="simdgroup", reduction="simd", simdgroups=1)


def _row_per_threadgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.mapping == "threadgroup":
        raise Refused("a row is already spread over a threadgroup")
    reduction = "tree" if plan.mapping == "thread" else plan.reduction
    return replace(plan, mapping="threadgroup", reduction=reduction, lanes=SIMD_WIDTH, simdgroups=8)


def _simd_reductions(plan: SoftmaxPlan) -> SoftmaxPlan:
    _spread(plan)
    if plan.reduction == "simd":
        raise Present("the reductions are simd_max and simd_sum already")
    if plan.lanes < SIMD_WIDTH:
        raise Refused("simd_sum adds all 32 lanes, and here rows share a simdgroup")
    return replace(plan, reduction="simd")


def _shuffle_reductions(plan: SoftmaxPlan) -> SoftmaxPlan:
    _spread(plan)
    if plan.reduction == "shuffle":
        raise Present("the reductions are shuffles already")
    return replace(plan, reduction="shuffle")


def _rows_per_simdgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.mapping == "threadgroup":
        raise Refused("a row takes a whole threadgroup here")
    if plan.mapping == "thread":
        raise Refused("a row isn't spread over a simdgroup yet", first="row_per_simdgroup")
    if plan.lanes < SIMD_WIDTH:
        raise Present("four rows share a simdgroup already")
    if plan.reduction != "shuffle":
        raise Refused("simd_sum adds all 32 lanes; shuffles can stay within eight", first="shuffle_reductions")
    return replace(plan, lanes=8)


def _rows_per_threadgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.mapping == "threadgroup":
        raise Refused("a row takes a whole threadgroup here")
    if plan.mapping == "thread":
        raise Refused("a row isn't spread over a simdgroup yet", first="row_per_simdgroup")
    if plan.simdgroups > 1:
        raise Present("a threadgroup computes several rows already")
    return replace(plan, simdgroups=8)


def _wider_threadgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.mapping != "threadgroup":
        raise Refused("a row isn't spread over a threadgroup yet", first="row_per_threadgroup")
    if plan.simdgroups >= MAX_SIMDGROUPS:
        raise Present("a threadgroup has its 1024 threads already")
    return replace(plan, simdgroups=2 * plan.simdgroups)


def _online(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.online:
        raise Present("maximum and sum come from one pass already")
    return replace(plan, online=True)


def _vector_loads(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.vector > 1:
        raise Present("loads are four wide already")
    return replace(plan, vector=4)


def _keep_in_registers(plan: SoftmaxPlan) -> SoftmaxPlan:
    _not_kept(plan)
    return replace(plan, keep="registers")


def _keep_in_threadgroup(plan: SoftmaxPlan) -> SoftmaxPlan:
    _not_kept(plan)
    return replace(plan, keep="threadgroup")


def _unroll(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.unroll > 1:
        raise Present("four loads go out together already")
    if plan.keep == "registers":
        raise Present("the loop that fills the registers is unrolled in full already")
    return replace(plan, unroll=4)


def _exp2(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.exp2:
        raise Present("exponentials are exp2 already")
    return replace(plan, exp2=True)


def _fast_exp(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.fast:
        raise Present("exponentials are the fast ones already")
    return replace(plan, fast=True)


def _reciprocal(plan: SoftmaxPlan) -> SoftmaxPlan:
    if plan.reciprocal:
        raise Present("there is one division a row already")
    return replace(plan, reciprocal=True)


def _spread(plan: SoftmaxPlan) -> None:
    if plan.mapping == "thread":
        raise Refused("one thread has the whole row, so there is nothing to reduce", first="row_per_simdgroup")


def _not_kept(plan: SoftmaxPlan) -> None:
    if plan.keep != "device":
        raise Present("the row stays on the chip after it has been read already")
    if plan.mapping == "thread":
        raise Refused("one thread can't hold a whole row", first="row_per_simdgroup")


TRANSFORMATIONS: dict[str, Callable[[SoftmaxPlan], SoftmaxPlan]] = {
    "row_per_simdgroup": _row_per_simdgroup,
    "row_per_threadgroup": _row_per_threadgroup,
    "simd_reductions": _simd_reductions,
    "shuffle_reductions": _shuffle_reductions,
    "rows_per_simdgroup": _rows_per_simdgroup,
    "rows_per_threadgroup": _rows_per_threadgroup,
    "wider_threadgroup": _wider_threadgroup,
    "online": _online,
    "vector_loads": _vector_loads,
    "keep_in_registers": _keep_in_registers,
    "keep_in_threadgroup": _keep_in_threadgroup,
    "unroll": _unroll,
    "exp2": _exp2,
    "fast_exp": _fast_exp,
    "reciprocal": _reciprocal,
}
