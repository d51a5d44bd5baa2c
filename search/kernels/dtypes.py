"""The element types that a kernel can read and write, and how numpy holds them.

numpy has no bfloat16: such an array is held as ``uint16`` bit patterns, and `encode`/`decode` go to and from floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class DType:
    """One element type: its MLX name, its name in Metal, and the numpy type that stores its bits."""

    name: str
    metal: str
    storage: str
    floating: bool = False

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return np.dtype(self.storage).itemsize

    def encode(self, values: Array) -> Array:
        """Round ``values`` (any shape) to this type; the result has the storage dtype."""
        if self.name == "bfloat16":
            return _to_bfloat16(np.asarray(values, dtype=np.float32))
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.storage)

    def decode(self, stored: Array) -> Array:
        """Return ``stored`` (as `encode` made it) as float64 for floating types, unchanged otherwise."""
        if self.name == "bfloat16":
            return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return stored.astype(np.float64) if self.floating else stored


def _to_bfloat16(values: Array) -> Array:
    """Round float32 to bfloat16 bit patterns, to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16).reshape(values.shape)


DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("float32", "float", "float32", floating=True),
        DType("float16", "half", "float16", floating=True),
        DType("bfloat16", "bfloat16_t", "uint16", floating=True),
        DType("int8", "int8_t", "int8"),
        DType("int16", "int16_t", "int16"),
        DType("int32", "int", "int32"),
        DType("int64", "int64_t", "int64"),
        DType("uint8", "uint8_t", "uint8"),
        DType("uint16", "uint16_t", "uint16"),
        DType("uint32", "uint", "uint32"),
        DType("uint64", "uint64_t", "uint64"),
        DType("bool", "bool", "bool"),
    )
}
