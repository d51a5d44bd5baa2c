"""Names that mean something else in Metal, or to MLX, and what they are called instead."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from translator.metal_attributes import ATTRIBUTES

KEYWORDS = frozenset((
    "access", "array", "as_type", "atomic", "bfloat", "bool2", "bool3", "bool4", "constant", "depth2d", "device",
    "fragment", "half", "half2", "half3", "half4", "imageblock", "kernel", "long2", "matrix", "metal", "object_data",
    "packed_float3", "patch_control_point", "ptrdiff_t", "ray_data", "sampler", "size_t", "texture", "texture2d",
    "thread", "threadgroup", "threadgroup_imageblock", "uchar", "uint", "ulong", "ushort", "vec", "vertex", "visible",
    "function_table", "and", "or", "not", "xor", "and_eq", "bitand", "bitor", "compl", "not_eq", "or_eq", "xor_eq",
))  # fmt: skip
FUNCTIONS = frozenset((
    "abs", "absdiff", "acos", "acosh", "addsat", "all", "any", "asin", "asinh", "atan", "atan2", "atanh", "ceil",
    "clamp", "clz", "copysign", "cos", "cosh", "cospi", "cross", "ctz", "ctz", "degrees", "distance", "divide", "dot",
    "exp", "exp10", "exp2", "extract_bits", "fabs", "fast", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "fract",
    "frexp", "hadd", "ilogb", "insert_bits", "isfinite", "isinf", "isnan", "isnormal", "isordered", "isunordered",
    "ldexp", "length", "length_squared", "log", "log10", "log2", "mad", "mad24", "madhi", "madsat", "max", "max3",
    "median3", "min", "min3", "mix", "modf", "mul24", "mulhi", "normalize", "popcount", "pow", "powr", "precise",
    "radians", "reflect", "refract", "reverse_bits", "rhadd", "rint", "rotate", "round", "rsqrt", "saturate",
    "select", "sign", "signbit", "simd_sum", "sin", "sincos", "sinh", "sinpi", "smoothstep", "sqrt", "step", "subsat",
    "tan", "tanh", "tanpi", "transpose", "trunc", "ceildiv", "elem_to_loc", "Limits", "WorkPerThread", "log1p",
    "hypot", "simd_max", "simd_min", "simd_any", "simd_all", "simd_shuffle", "simd_broadcast", "simd_ballot",
))  # fmt: skip


def renamed(name: str, taken: Container[str]) -> str:
    """Return the name, or a near one that is free: no leading underscores, which the compiler has for itself."""
    name = name.lstrip("_") or "value"
    while name in taken:
        name += "_"
    return name


def local_names(names: Iterable[str], taken: Container[str], beside: Iterable[str] = ()) -> dict[str, str]:
    """Return what each of a function's names is called; a new one is none that it, or ``beside``, has."""
    own = list(dict.fromkeys(names))
    found: dict[str, str] = {}
    others = {*own, *beside}
    for name in own:
        new = renamed(name, taken)
        while new != name and (new in taken or new in others):
            new += "_"
        others.add(new)
        found[name] = new
    return found


def template_name(parameter: str) -> str:
    """Return the name of a template parameter by its text."""
    words: list[str] = re.findall(r"\w+", parameter.partition("=")[0])
    return words[-1] if words else ""


def reserved_words(arrays: Iterable[str]) -> frozenset[str]:
    """Return what no local may be called in a kernel with these arrays."""
    beside = (f"{array}_{part}" for array in arrays for part in ("shape", "strides", "ndim"))
    return KEYWORDS | frozenset(ATTRIBUTES) | frozenset(beside)
