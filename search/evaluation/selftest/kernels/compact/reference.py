"""Indices of the marked elements, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], marks: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
    """Return ``places`` [n] from ``marks`` [n]."""
    found = np.flatnonzero(marks)
    return {"places": np.concatenate([found, np.full(len(marks) - len(found), -1)])}


def baseline(axes: Mapping[str, int], marks: Any) -> list[Any]:
    """Return the same by sorting, which leaves the marked in front and in order."""
    import mlx.core as mx

    indices = mx.arange(axes["n"], dtype=mx.int32)
    ordered = mx.sort(mx.where(marks != 0, indices, axes["n"]))
    return [mx.where(ordered < axes["n"], ordered, -1)]
