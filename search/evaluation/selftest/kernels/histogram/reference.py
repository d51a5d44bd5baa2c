"""Histogram of small integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], ids: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
    """Return ``counts`` [bins]: how often each of 0 .. bins - 1 is in ``ids`` [n]."""
    return {"counts": np.bincount(ids, minlength=axes["bins"])}


def baseline(axes: Mapping[str, int], ids: Any) -> list[Any]:
    """Return the counts by MLX's scatter-add."""
    import mlx.core as mx

    return [mx.zeros(axes["bins"], mx.int32).at[ids].add(1)]
