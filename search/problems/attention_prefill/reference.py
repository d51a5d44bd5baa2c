"""Prefill attention: what is right (float64 numpy), and what a user would call today (MLX)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], q: Array, k: Array, v: Array, scale: Array | float) -> dict[str, Array]:
    """Return ``o`` [B, H, L, D] for ``q``, ``k``, ``v`` of the same shape; ``axes["causal"]`` masks later keys."""
    scores = np.asarray(scale, dtype=np.float64) * (q @ np.swapaxes(k, -1, -2))
    if axes["causal"]:
        later = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
        scores = np.where(later, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"o": (weights / weights.sum(axis=-1, keepdims=True)) @ v}


def baseline(axes: Mapping[str, int], q: Any, k: Any, v: Any, scale: Any) -> list[Any]:
    """Return MLX's fused attention of the same inputs."""
    import mlx.core as mx

    mask = "causal" if axes["causal"] else None
    return [mx.fast.scaled_dot_product_attention(q, k, v, scale=float(scale), mask=mask)]
