"""Sums of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(axes: Mapping[str, int], x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return ``y`` [rows], the sums of the rows of ``x`` [rows, n]."""
    return {"y": x.sum(axis=-1)}


def baseline(axes: Mapping[str, int], x: Any) -> list[Any]:
    """Return MLX's own sum."""
    return [x.sum(axis=-1)]
