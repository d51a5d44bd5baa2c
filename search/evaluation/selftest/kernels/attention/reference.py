"""Causal attention with grouped heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], q: Array, k: Array, v: Array) -> dict[str, Array]:
    """Return ``o`` [heads, l, 32] from ``q`` [heads, l, 32] and ``k``, ``v`` [kv_heads, s, 32]."""
    (heads, length, width), (kv_heads, positions, _) = q.shape, k.shape
    keys, values = (np.repeat(array, heads // kv_heads, axis=0) for array in (k, v))
    scores = q @ keys.transpose(0, 2, 1) / np.sqrt(width)
    seen = np.arange(positions) <= np.arange(length)[:, None] + positions - length
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"o": weights @ values / weights.sum(axis=-1, keepdims=True)}


def baseline(axes: Mapping[str, int], q: Any, k: Any, v: Any) -> list[Any]:
    """Return MLX's own attention."""
    import mlx.core as mx

    scale = 32**-0.5
    return [mx.fast.scaled_dot_product_attention(q[None], k[None], v[None], scale=scale, mask="causal")[0]]
