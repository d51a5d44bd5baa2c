"""Whether what a kernel computed is what the float64 reference says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from search.kernels.dtypes import Array, DType
from search.problems.definition import Tolerance


@dataclass(frozen=True)
class Mismatch:
    """The first element of an output that is wrong, and how many are.

    ``allowed`` is the greatest difference that would have passed there.
    """

    index: tuple[int, ...]
    got: float
    want: float
    allowed: float
    wrong: int
    total: int

    def describe(self, name: str) -> str:
        """Return one sentence a kernel's author can act on."""
        place = f"{name}[{', '.join(map(str, self.index))}]"
        count = f"{self.wrong} of {self.total} elements are wrong"
        if np.isnan(self.got):
            return f"{place} was never written, or came out as NaN; it should be {self.want:.6g} ({count})"
        return f"{place} is {self.got:.6g}; it should be {self.want:.6g} ± {self.allowed:.2g} ({count})"


@dataclass(frozen=True)
class Comparison:
    """``error`` is the greatest finite difference as a multiple of what is allowed: up to 1.0 passes."""

    error: float
    mismatch: Mismatch | None = None


def allowed_difference(want: Array, tolerance: Tolerance) -> Array:
    """Return ``atol + rtol * scale`` for each element, scale being the greatest finite magnitude in its row.

    A row runs along the last axis. Elements of a row come out of the same sums, so the rounding that is right for the
    greatest of them is right for all.
    """
    finite = np.where(np.isfinite(want), np.abs(want), 0.0)
    scale = finite.max(axis=-1, keepdims=True, initial=0.0) if want.ndim else finite
    return np.broadcast_to(tolerance.atol + tolerance.rtol * scale, want.shape)


def as_held(want: Array, dtype: DType) -> Array:
    """Return ``want`` (float64) with infinities for what rounds to them in ``dtype``, such as 1e6 in float16."""
    if not dtype.floating:
        return want
    rounded = dtype.decode(dtype.encode(want))
    return np.where(np.isinf(rounded), rounded, want)


def compare(got: Array, want: Array, dtype: DType, tolerance: Tolerance, compared: Array | None = None) -> Comparison:
    """Compare ``got`` (storage of ``dtype``) with ``want`` (float64, the same shape), where ``compared`` is true.

    Where ``want`` is NaN or infinite, ``got`` must be the same. A value that ``dtype`` can't hold, such as 1e6 in
    float16, counts as the infinity that it rounds to.
    """
    have = dtype.decode(got).astype(np.float64)
    target = want
    if compared is not None:
        have, target = np.where(compared, have, 0.0), np.where(compared, target, 0.0)
    target = as_held(target, dtype)
    allowed = allowed_difference(target, tolerance)
    same = (have == target) | (np.isnan(have) & np.isnan(target))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(have - target))
        wrong = ~same & ~(difference <= allowed)
        ratio = np.divide(difference, allowed, out=np.zeros(allowed.shape), where=allowed > 0)
    finite = ratio[np.isfinite(ratio)]
    error = float(finite.max(initial=0.0))
    if not wrong.any():
        return Comparison(error)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Comparison(
        error,
        Mismatch(
            index, float(have[index]), float(target[index]), float(allowed[index]), int(wrong.sum()), int(wrong.size)
        ),
    )
