"""Sums over rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return ``y`` [n], the sums of the columns of ``x`` [rows, n]."""
    return {"y": x.sum(axis=0)}


def baseline(axes: Mapping[str, int], x: Any) -> list[Any]:
    """Return MLX's own sum, in float32."""
    import mlx.core as mx

    return [x.astype(mx.float32).sum(axis=0)]
