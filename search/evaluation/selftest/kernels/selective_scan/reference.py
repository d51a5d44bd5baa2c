"""Selective state space scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], x: Array, dt: Array, decay: Array, b: Array, c: Array) -> dict[str, Array]:
    """Return ``y`` [batch, l, channels]; ``x`` and ``dt`` have that shape, ``decay`` is [channels, 16], ``b`` and
    ``c`` are [batch, l, 16]."""
    a, steps = -np.logaddexp(0.0, decay), np.logaddexp(0.0, dt)
    state = np.zeros((x.shape[0], *decay.shape))
    y = np.empty_like(x)
    for t in range(x.shape[1]):
        step = steps[:, t, :, None]
        state = np.exp(step * a) * state + step * b[:, t, None, :] * x[:, t, :, None]
        y[:, t] = (state * c[:, t, None, :]).sum(axis=-1)
    return {"y": y}


def baseline(axes: Mapping[str, int], x: Any, dt: Any, decay: Any, b: Any, c: Any) -> list[Any]:
    """Return the same by a loop of MLX operations over time."""
    import mlx.core as mx

    a, steps = -mx.logaddexp(decay, 0.0), mx.logaddexp(dt, 0.0)
    state, outputs = mx.zeros((x.shape[0], *decay.shape)), []
    for t in range(x.shape[1]):
        step = steps[:, t, :, None]
        state = mx.exp(step * a) * state + step * b[:, t, None, :] * x[:, t, :, None]
        outputs.append((state * c[:, t, None, :]).sum(axis=-1))
    return [mx.stack(outputs, axis=1)]
