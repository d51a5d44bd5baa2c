"""The types of CUDA C++ by name: integers, numbers, vectors; their bytes and their dtypes."""

from __future__ import annotations

import re
from collections.abc import Mapping

ITEM_BYTES: Mapping[str, int] = {
    "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1, "uchar": 1,
    "short": 2, "unsigned short": 2, "int16_t": 2, "uint16_t": 2, "ushort": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "uint": 4, "float": 4,
    "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "long long int": 8,
    "unsigned long long int": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8, "ssize_t": 8, "ptrdiff_t": 8, "intptr_t": 8,
    "uintptr_t": 8, "double": 8,
    "half": 2, "__half": 2, "bfloat16": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2, "at::Half": 2, "at::BFloat16": 2,
    "c10::Half": 2, "c10::BFloat16": 2, "half2": 4, "__half2": 4, "__nv_bfloat162": 4, "nv_bfloat162": 4,
    "unsigned char*": 8,
    **{f"{base}{width}": size * width
       for base, size in (("char", 1), ("uchar", 1), ("short", 2), ("ushort", 2), ("int", 4), ("uint", 4),
                          ("float", 4), ("longlong", 8), ("ulonglong", 8), ("double", 8))
       for width in (1, 2, 4)},
}  # fmt: skip
"""Bytes of the types of CUDA C++ by name."""


_INTEGER_TYPES = frozenset(
    name for name in ITEM_BYTES
    if re.fullmatch(r"bool|(signed |unsigned )?(char|short|int)|unsigned|(unsigned )?long( long)?( int)?|u?int\d*_t|"
                    r"size_t|ssize_t|ptrdiff_t|u?intptr_t|uint|uchar|ushort", name)
)  # fmt: skip


_REAL_TYPES = frozenset(
    ("float", "double", "half", "__half", "bfloat16", "__nv_bfloat16", "nv_bfloat16", "at::Half", "at::BFloat16",
     "c10::Half", "c10::BFloat16")
)  # fmt: skip


def is_integer(type_text: str) -> bool:
    """Whether a type, qualifiers aside, is an integer or bool."""
    return plain_type(type_text) in _INTEGER_TYPES


def is_real(type_text: str) -> bool:
    """Whether a type, qualifiers aside, is a floating-point number."""
    return plain_type(type_text) in _REAL_TYPES


def plain_type(text: str) -> str:
    """Return a type's name without qualifiers, namespaces of the standard library, references and pointers."""
    text = re.sub(
        r"\b(?:const|volatile|constexpr|static|inline|__restrict__|__restrict|restrict|struct|typename)\b", " ", text
    )
    text = re.sub(r"\[[^\]]*\]|[*&]", " ", text)
    return " ".join(re.sub(r"(?<![\w:])(?:::)?(?:std|cuda::std)::", "", text).split())


def split_types(text: str) -> list[str]:
    """Return template arguments, or other texts with commas between them, one by one."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def cast_target(function: str) -> str:
    """Return the type in ``static_cast<type>`` and its like, "" for what is no cast."""
    match = re.match(r"(?:static_cast|reinterpret_cast|const_cast)\s*<(.*)>\s*\Z", function, re.DOTALL)
    return " ".join(match[1].split()) if match else ""


def vector_width(type_text: str) -> int:
    """Return how many numbers a vector type holds (``float4``: 4, ``half2``: 2), 1 for any other."""
    match = re.fullmatch(
        r"(?:float|double|int|uint|u?char|u?short|u?long|u?longlong|half|__half|(?:__)?nv_bfloat16)([1234])",
        plain_type(type_text),
    )
    return int(match[1]) if match else 1


DTYPES: Mapping[str, str] = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "at::Half": "float16",
    "c10::Half": "float16", "bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
    "at::BFloat16": "bfloat16", "c10::BFloat16": "bfloat16", "bool": "bool",
    "char": "int8", "signed char": "int8", "int8_t": "int8", "unsigned char": "uint8", "uint8_t": "uint8",
    "uchar": "uint8", "short": "int16", "int16_t": "int16", "unsigned short": "uint16", "uint16_t": "uint16",
    "ushort": "uint16", "int": "int32", "int32_t": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "uint": "uint32", "uint32_t": "uint32", "long": "int64", "long long": "int64", "long long int": "int64",
    "int64_t": "int64", "ssize_t": "int64", "ptrdiff_t": "int64", "unsigned long": "uint64",
    "unsigned long long": "uint64", "unsigned long long int": "uint64", "uint64_t": "uint64", "size_t": "uint64",
    "longlong": "int64", "ulonglong": "uint64",
}  # fmt: skip


def dtype_of(type_text: str) -> str:
    """Return the dtype of what a pointer to this type points at (``const float4*``: ``float32``), "" when unknown."""
    plain = plain_type(type_text)
    width = vector_width(plain)
    return DTYPES.get(plain[:-1] if width > 1 or re.fullmatch(r"[a-z]+1", plain) else plain, "")
