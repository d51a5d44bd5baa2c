"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], x: Array, offset: Any) -> dict[str, Array]:
    """Return ``y`` [tokens, heads, d] from ``x`` of that shape and the position of the first token."""
    tokens, _, width = x.shape
    half = width // 2
    angles = (offset + np.arange(tokens))[:, None, None] * 10000.0 ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return {"y": np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)}


def baseline(axes: Mapping[str, int], x: Any, offset: Any) -> list[Any]:
    """Return MLX's own rotation, which wants [batch, heads, tokens, d]."""
    import mlx.core as mx

    turned = mx.fast.rope(
        x.transpose(1, 0, 2)[None], axes["d"], traditional=False, base=10000.0, scale=1.0, offset=int(offset)
    )
    return [turned[0].transpose(1, 0, 2)]
