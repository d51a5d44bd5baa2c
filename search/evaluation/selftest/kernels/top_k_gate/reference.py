"""Top-k routing gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], logits: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return ``weights`` and ``ids`` [tokens, k] of the largest of ``logits`` [tokens, experts]."""
    ids = np.argsort(-logits, axis=-1, kind="stable")[:, : axes["k"]]
    chosen = np.take_along_axis(logits, ids, axis=-1)
    weights = np.exp(chosen - chosen[:, :1])
    return {"weights": weights / weights.sum(axis=-1, keepdims=True), "ids": ids}


def baseline(axes: Mapping[str, int], logits: Any) -> list[Any]:
    """Return the same by MLX's sort."""
    import mlx.core as mx

    ids = mx.argsort(-logits, axis=-1)[:, : axes["k"]]
    chosen = mx.take_along_axis(logits, ids, axis=-1).astype(mx.float32)
    return [mx.softmax(chosen, axis=-1), ids.astype(mx.int32)]
