"""The types of CUDA that a kernel's expressions have, by Metal's names for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_WORDS = frozenset(["unsigned", "signed", "long", "short", "int", "char"])
_ALIASES = {
    "size_t": "ulong", "ptrdiff_t": "long", "int64_t": "long", "uint64_t": "ulong", "int32_t": "int",
    "uint32_t": "uint", "int16_t": "short", "uint16_t": "ushort", "int8_t": "char", "uint8_t": "uchar",
    "unsigned": "uint", "signed": "int", "__half": "half", "__half2": "half2", "__nv_bfloat16": "bfloat",
    "nv_bfloat16": "bfloat", "__nv_bfloat162": "bfloat2", "nv_bfloat162": "bfloat2", "uintptr_t": "ulong",
}  # fmt: skip
_RESPELLED = {
    "__half": "half", "__half2": "half2", "__nv_bfloat16": "bfloat", "nv_bfloat16": "bfloat",
    "__nv_bfloat162": "bfloat2", "nv_bfloat162": "bfloat2", "dim3": "uint3",
}  # fmt: skip
INTEGERS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
FLOATING = ("half", "bfloat", "float")
SCALARS = (*INTEGERS, *FLOATING)
BYTES = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
    "half": 2, "bfloat": 2, "float": 4,
}  # fmt: skip
_PACKED = re.compile(r"(?:float|u?(?:char|short|int))3\Z")
_VECTOR = re.compile(rf"({'|'.join(SCALARS)})([234])\Z")
DTYPES = {
    "float": "float32", "half": "float16", "bfloat": "bfloat16", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "uchar": "uint8", "ushort": "uint16", "uint": "uint32", "ulong": "uint64", "bool": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class CType:
    """A type: ``name`` as Metal has it, then as many ``pointers`` to arrays of these ``extents``."""

    name: str
    pointers: int = 0
    extents: tuple[str, ...] = ()
    const: bool = False
    reference: bool = False

    @property
    def points(self) -> bool:
        """Whether values of the type lead to memory."""
        return self.pointers > 0 or bool(self.extents)

    def element(self) -> CType:
        """Return the type of what is reached by one index or one ``*``."""
        if self.pointers:
            return replace(self, pointers=self.pointers - 1, reference=False)
        return replace(self, extents=self.extents[1:], reference=False)


def canonical(text: str) -> str:
    """Return the one name that Metal has for a type such as ``unsigned long long int``, others as they are."""
    words = text.split()
    if set(words) <= _WORDS and len(words) > 0:
        sign = "u" if "unsigned" in words else ""
        size = "long" if "long" in words else "short" if "short" in words else "char" if "char" in words else "int"
        return sign + size
    name = " ".join(words)
    return _ALIASES.get(name, name)


def spelled(text: str) -> str:
    """Return a type's name for the Metal text: as written where Metal reads it so.

    Vectors of three become packed ones, which take no more memory than in CUDA.
    """
    words = text.split()
    if _PACKED.match(text):
        return f"packed_{text}"
    if words.count("long") > 1 or (set(words) <= _WORDS and "signed" in words):
        return canonical(text)
    return _RESPELLED.get(text, text)


def vector_parts(name: str) -> tuple[str, int] | None:
    """Return the component type and count of ``float4`` and its like, None for other types."""
    match = _VECTOR.match(name)
    return (match[1], int(match[2])) if match else None


def bytes_of(name: str) -> int | None:
    """Return the size of a built-in type, None for others."""
    if parts := vector_parts(name):
        return BYTES[parts[0]] * parts[1]
    return BYTES.get(name)


def common(left: str, right: str) -> str | None:
    """Return the type of an arithmetic operation on two types, None where that isn't known."""
    if left == right:
        return left if left not in ("bool", "char", "uchar", "short", "ushort") else "int"
    if vector_parts(left) or vector_parts(right):
        return left if vector_parts(left) else right
    if left not in SCALARS or right not in SCALARS:
        return None
    for name in ("float", "bfloat", "half"):
        if name in (left, right):
            return "float" if {left, right} == {"bfloat", "half"} else name
    for name in ("ulong", "long", "uint"):
        if name in (left, right):
            return name
    return "int"
