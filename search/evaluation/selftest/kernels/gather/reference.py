"""Rows of a table at indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reference(axes: Mapping[str, int], table: Array, ids: NDArray[np.int32]) -> dict[str, Array]:
    """Return ``y`` [n, 4 * quads], the rows of ``table`` [rows, 4 * quads] at ``ids`` [n]."""
    return {"y": table[ids]}


def baseline(axes: Mapping[str, int], table: Any, ids: Any) -> list[Any]:
    """Return MLX's own gather."""
    return [table[ids]]
