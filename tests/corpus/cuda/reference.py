"""What the CUDA files of this folder compute, in numpy: written from the mathematics, not from the kernels.

`REFERENCES` has a function for a file, by its name without ``.cu``. It takes the device arrays before the launch by
the host's name for them (flat, as the device sees them; bfloat16 already as floats) and the axes together with the
floating-point arguments. It returns what the result arrays hold afterwards, flat, in float64 or whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Axes = Mapping[str, Any]
Reference = Callable[[Arrays, Axes], dict[str, Array]]

REFERENCES: dict[str, Reference] = {}


def reference(function: Reference) -> Reference:
    """Enter ``function`` into `REFERENCES` under its own name."""
    REFERENCES[function.__name__] = function
    return function


def floats(array: Array, *shape: int) -> Array:
    """Return ``array`` in float64 and in ``shape``."""
    return array.astype(np.float64).reshape(shape or array.shape)


def flat(**arrays: Array) -> dict[str, Array]:
    """Return ``arrays`` by name, each flat."""
    return {name: np.ravel(array) for name, array in arrays.items()}


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def softmax(x: Array) -> Array:
    """Return the softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def causal_attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return attention where a query sees the keys up to its own place; [..., seq, dim] each."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    hidden = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
    return np.asarray(softmax(np.where(hidden, -np.inf, scores)) @ v)


def rms_normalised(x: Array, eps: float) -> Array:
    """Return ``x`` over the root of its mean square on the last axis."""
    return np.asarray(x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps))
