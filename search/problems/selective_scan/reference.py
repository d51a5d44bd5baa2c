"""Selective scan, prefill: what is right (float64 numpy), and what a user would run today (a loop over time in MLX)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array) -> dict[str, Array]:
    """Return ``y`` [batch, len, dim] and ``last_state`` [batch, dim, state].

    ``x`` and ``dt`` have the shape of ``y``, ``B`` and ``C`` are [batch, len, state], ``A`` is [dim, state] and ``D``
    [dim].
    """
    step = np.logaddexp(0.0, dt)  # softplus
    taken = step * x
    y = D * x
    h = np.zeros((axes["batch"], *A.shape))
    for t in range(axes["len"]):
        h *= np.exp(step[:, t, :, None] * A)
        h += taken[:, t, :, None] * B[:, t, None, :]
        y[:, t] += (h @ C[:, t, :, None])[..., 0]
    return {"y": y, "last_state": h}


def baseline(axes: Mapping[str, int], x: Any, dt: Any, A: Any, B: Any, C: Any, D: Any) -> list[Any]:
    """Return ``[y, last_state]`` by a loop over time in MLX operations, the state in float32."""
    import mlx.core as mx

    step = mx.logaddexp(dt.astype(mx.float32), 0.0)  # softplus
    wide_x, wide_b, wide_c = (array.astype(mx.float32) for array in (x, B, C))
    h, outputs = mx.zeros((axes["batch"], *A.shape)), []
    for t in range(axes["len"]):
        decay = mx.exp(step[:, t, :, None] * A)
        h = decay * h + (step[:, t] * wide_x[:, t])[..., None] * wide_b[:, t, None, :]
        outputs.append((h @ wide_c[:, t, :, None]).squeeze(-1) + D * wide_x[:, t])
    return [mx.stack(outputs, axis=1).astype(x.dtype), h]
