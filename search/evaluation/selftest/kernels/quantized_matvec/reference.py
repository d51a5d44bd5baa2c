"""4-bit matrix times vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(
    axes: Mapping[str, int], w: NDArray[np.uint32], scales: Array, biases: Array, x: Array
) -> dict[str, Array]:
    """Return ``y`` [rows]; ``w`` is [rows, 4 * groups], ``scales`` and ``biases`` [rows, groups], ``x`` as a row."""
    rows, groups = scales.shape
    quants = (w[:, :, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    weights = scales[:, :, None] * quants.reshape(rows, groups, 32) + biases[:, :, None]
    return {"y": weights.reshape(rows, -1) @ x}


def baseline(axes: Mapping[str, int], w: Any, scales: Any, biases: Any, x: Any) -> list[Any]:
    """Return MLX's own product."""
    import mlx.core as mx

    return [mx.quantized_matmul(x[None], w, scales, biases, group_size=32, bits=4)[0].astype(mx.float32)]
