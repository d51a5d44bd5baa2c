"""Sizes that Metal or MLX refuses: threadgroup memory, and how a kernel is launched."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from translator.metal_attributes import ATTRIBUTES
from translator.metal_rule import Rule
from translator.metal_tokens import Declared, Function, Tokens, members_of, program_variables_of, variables_of
from translator.whole_numbers import whole_number

MOST_THREADS = 1024
THREADGROUP_BYTES = 32 << 10

_AXES = "xyz"
_ITEM_BYTES = {
    "bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "short": 2, "ushort": 2, "int16_t": 2, "uint16_t": 2,
    "half": 2, "bfloat": 2, "float16_t": 2, "bfloat16_t": 2, "int": 4, "uint": 4, "unsigned": 4, "int32_t": 4,
    "uint32_t": 4, "float": 4, "float32": 4, "float16": 2, "bfloat16": 2, "atomic_int": 4, "atomic_uint": 4,
    "atomic_float": 4, "long": 8, "ulong": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8,
}  # fmt: skip
_VECTOR = re.compile(r"(\w+?)([234])$")
_CONSTANT = re.compile(r"\b(?:const|constexpr|constant)\b[^;={}()]*?\b(\w+)\s*=\s*([^;,{}]{1,100});")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]{1,100})$", re.MULTILINE)
_STATIC = "'{}' is static and would keep its value: only what is constant can be static"
_COUNTED = re.compile(r"\w+_(?:shape|strides|ndim)")


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: grid and threadgroup in **threads**, and its template values as Metal writes them."""

    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    template: Mapping[str, str] = field(default_factory=dict)


def constants_of(code: str) -> dict[str, str]:
    """Return the names that a text fixes by ``constexpr`` or ``#define``, with what they stand for."""
    found = {match[1]: match[2].strip() for match in _CONSTANT.finditer(code)}
    return {**{match[1]: match[2].strip() for match in _DEFINE.finditer(code)}, **found}


def threadgroup_bytes(body: Tokens, names: Mapping[str, str]) -> int:
    """Return the threadgroup memory that a body declares, as far as types and sizes are known."""
    # By name: of the branches of an #if, which declare the same array, one is compiled.
    sizes: dict[str, int] = {}
    for local in variables_of(body):
        if _in_threadgroup(local):
            sizes[local.name] = max(sizes.get(local.name, 0), _bytes(local, names))
    return sum(sizes.values())


def _bytes(local: Declared, names: Mapping[str, str]) -> int:
    kind = local.type[-1]
    kind = names.get(kind, kind)
    vector = _VECTOR.match(kind)
    size = _ITEM_BYTES.get(kind, 0)
    if vector and not size:
        size = _ITEM_BYTES.get(vector[1], 0) * (4 if vector[2] == "3" else int(vector[2]))
    for extent in local.extents:
        size *= whole_number(" ".join(token.text for token in extent), names) or 0
    return size


def _in_threadgroup(local: Declared) -> bool:
    return local.space == "threadgroup" and not local.how


def _lasts(outside: Declared) -> bool:
    """Whether this is a variable, which what has no value and no type of Metal's own needn't be."""
    return outside.value is not None or outside.type[-1] in _ITEM_BYTES or bool(_VECTOR.match(outside.type[-1]))


def _is_static(local: Declared) -> bool:
    return "static" in local.type and not {"const", "constexpr"} & {*local.type} and not local.space


def misplaced(functions: Iterable[Function], header: Tokens, body: Tokens) -> Iterator[tuple[int, Rule, str]]:
    """Yield threadgroup variables in functions or outside of any, and those that are given values."""
    functions = list(functions)
    inside = (variables_of(function.body) for function in functions)
    for local in chain(members_of(header), variables_of(body), *inside):
        if _is_static(local):
            yield local.at, Rule.PROGRAM_SCOPE, _STATIC.format(local.name)
    for function in functions:
        for local in variables_of(function.body):
            if _in_threadgroup(local):
                yield (
                    local.at,
                    Rule.THREADGROUP_IN_FUNCTION,
                    f"'{local.name}' is threadgroup memory in the function '{function.name}': declare it in the "
                    "kernel's body and pass a threadgroup pointer",
                )
    for outside in program_variables_of(header):
        if _in_threadgroup(outside):
            yield (
                outside.at,
                Rule.THREADGROUP_IN_FUNCTION,
                f"'{outside.name}' is threadgroup memory outside of the kernel: declare it in the kernel's body",
            )
        elif outside.space != "constant" and not outside.how and "auto" not in outside.type and _lasts(outside):
            yield (
                outside.at,
                Rule.PROGRAM_SCOPE,
                f"'{outside.name}' stands outside of any function: it must be constant, in the constant address space",
            )
    for local in variables_of(body):
        if _in_threadgroup(local) and local.value is not None:
            yield (
                local.at,
                Rule.THREADGROUP_INITIALISED,
                f"'{local.name}' is threadgroup memory, where no initial value is stored: let the threads store it, "
                "with a barrier after",
            )


def variable_lengths(body: Tokens) -> Iterator[tuple[int, Rule, str]]:
    """Yield arrays whose length is only known when the kernel runs."""
    locals_ = list(variables_of(body))
    changing = {
        one.name for one in locals_ if not one.how and not one.extents and not {"const", "constexpr"} & {*one.type}
    }
    for local in locals_:
        for extent in local.extents:
            for token in extent:
                if token.text in changing or token.text in ATTRIBUTES or _COUNTED.fullmatch(token.text):
                    yield (
                        local.at,
                        Rule.VARIABLE_LENGTH_ARRAY,
                        f"the length of '{local.name}' depends on '{token.text}', which is known when the kernel runs: "
                        "arrays need a length known when it is compiled, such as a template integer",
                    )
                    break


def launch_faults(code: str, body: Tokens, header: str, launches: Iterable[Launch]) -> Iterator[tuple[str, Rule, str]]:
    """Yield what is wrong with how a kernel is launched: severity, rule, and what to do."""
    launches = list(launches)
    constants = {**constants_of(header), **constants_of(code)}
    most = max((threadgroup_bytes(body, {**constants, **launch.template}) for launch in launches), default=0)
    most = max(most, threadgroup_bytes(body, constants))
    if most > THREADGROUP_BYTES:
        yield (
            "error",
            Rule.THREADGROUP_MEMORY,
            f"{most:,} bytes of threadgroup memory are declared; a threadgroup has {THREADGROUP_BYTES:,}: "
            "make the tiles smaller, or use one array for several in turn",
        )
    for threads in {math.prod(launch.threadgroup) for launch in launches}:
        if threads > MOST_THREADS:
            yield (
                "error",
                Rule.THREADGROUP_SIZE,
                f"{threads:,} threads in a threadgroup; Metal allows {MOST_THREADS:,}: use a smaller one, and a loop",
            )
    for axis, letter in enumerate(_AXES):
        by_group = re.search(rf"\bthreadgroup_position_in_grid\s*\.\s*{letter}\b", code)
        small = next((launch for launch in launches if launch.grid[axis] < launch.threadgroup[axis]), None)
        if by_group and small is not None:
            yield (
                "warning",
                Rule.GRID_IN_BLOCKS,
                f"the grid has {small.grid[axis]:,} threads in {letter}, fewer than a threadgroup's "
                f"{small.threadgroup[axis]:,}: MLX's grid counts threads, not threadgroups; multiply it",
            )
