"""Sums of three neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return ``y`` [rows, n] from ``x`` [rows, n]."""
    padded = np.pad(x, ((0, 0), (1, 1)))
    return {"y": padded[:, :-2] + x + padded[:, 2:]}


def baseline(axes: Mapping[str, int], x: Any) -> list[Any]:
    """Return the same by MLX operations."""
    import mlx.core as mx

    padded = mx.pad(x, [(0, 0), (1, 1)])
    return [padded[:, :-2] + x + padded[:, 2:]]
