"""The C++ that is compiled for one pass: the kernel's text between what MLX writes around it."""

from __future__ import annotations

from dataclasses import dataclass

from search.devices.base import KernelFault
from search.devices.simulator.dialect import DialectError, translate
from search.kernels.dtypes import DType
from search.kernels.program import BoundPass

ATTRIBUTES: dict[str, tuple[str, str]] = {
    "dispatch_quadgroups_per_threadgroup": ("uint", "ksr_quadgroups(ksr_at->nominal_size)"),
    "dispatch_simdgroups_per_threadgroup": ("uint", "ksr_simdgroups(ksr_at->nominal_size)"),
    "dispatch_threads_per_threadgroup": ("uint3", "ksr_vector(ksr_at->nominal_size)"),
    "grid_origin": ("uint3", "uint3(0u)"),
    "grid_size": ("uint3", "ksr_vector(ksr_at->grid)"),
    "quadgroup_index_in_threadgroup": ("uint", "ksr_at->index / 4"),
    "quadgroups_per_threadgroup": ("uint", "ksr_quadgroups(ksr_at->group_size)"),
    "simdgroup_index_in_threadgroup": ("uint", "ksr_at->simdgroup"),
    "simdgroups_per_threadgroup": ("uint", "ksr_simdgroups(ksr_at->group_size)"),
    "thread_execution_width": ("uint", "KSR_SIMD_WIDTH"),
    "thread_index_in_quadgroup": ("uint", "ksr_at->index % 4"),
    "thread_index_in_simdgroup": ("uint", "ksr_at->lane"),
    "thread_index_in_threadgroup": ("uint", "ksr_at->index"),
    "thread_position_in_grid": ("uint3", "ksr_vector(ksr_at->in_grid)"),
    "thread_position_in_threadgroup": ("uint3", "ksr_vector(ksr_at->in_group)"),
    "threadgroup_position_in_grid": ("uint3", "ksr_vector(ksr_at->group)"),
    "threadgroups_per_grid": ("uint3", "ksr_vector(ksr_at->groups)"),
    "threads_per_grid": ("uint3", "ksr_vector(ksr_at->grid)"),
    "threads_per_simdgroup": ("uint", "KSR_SIMD_WIDTH"),
    "threads_per_threadgroup": ("uint3", "ksr_vector(ksr_at->group_size)"),
}
"""Metal's kernel attributes that MLX knows: type, and how a thread finds its value."""

_PRELUDE = """\
#include "metal.h"
using namespace metal;
static inline uint3 ksr_vector(ksr_uint3 v) { return uint3(v.x, v.y, v.z); }
static inline uint ksr_quadgroups(ksr_uint3 v) { return (v.x * v.y * v.z + 3) / 4; }
static inline uint ksr_simdgroups(ksr_uint3 v) { return (v.x * v.y * v.z + KSR_SIMD_WIDTH - 1) / KSR_SIMD_WIDTH; }
#define KSR_EXPORT extern "C" __attribute__((visibility("default")))
"""


DATA, SHAPE, STRIDES = "data", "shape", "strides"


@dataclass(frozen=True)
class Buffer:
    """What a kernel gets at one place of its buffer list: an array's data, shape or strides."""

    array: str
    what: str = DATA


@dataclass(frozen=True)
class Unit:
    """One compilation: its text, the buffers in the order that the kernel takes them, and where whose lines are."""

    text: str
    buffers: tuple[Buffer, ...]
    header_begins: int
    header_lines: int
    source_begins: int
    source_lines: int

    def locate(self, line: int) -> tuple[int, bool] | None:
        """Return the line of the kernel's source (or header: True) that ``line`` of the text is, None for neither."""
        if self.header_begins <= line < self.header_begins + self.header_lines:
            return line - self.header_begins + 1, True
        if self.source_begins <= line < self.source_begins + self.source_lines:
            return line - self.source_begins + 1, False
        return None


def unit_of(step: BoundPass) -> Unit:
    """Write the C++ for ``step``; raise `KernelFault` (stage ``compile``) for text that is refused before compiling."""
    header = _translated(step, step.header, in_header=True)
    source = _translated(step, step.source, in_header=False, beside=step.header)
    parameters, arguments, buffers = _signature(step)
    template = " ".join(_template(name, value) for name, value in step.template)
    opening = f"static void ksr_body({', '.join(parameters)}) {{ {template}\n"
    storage = "KSR_THREADGROUP" in source
    declared = "ksr::ksr_threadgroup_end - ksr::ksr_threadgroup_begin" if storage else "0"
    ending = (
        "\n}\n"
        "KSR_EXPORT void ksr_kernel(const ksr_thread* ksr_at, void* const* ksr_buffers) {\n"
        f"    ksr_body({', '.join(arguments)});\n"
        "}\n"
        f"KSR_EXPORT unsigned long ksr_threadgroup_bytes() {{ return {declared}; }}\n"
    )
    before = _PRELUDE + header + "\n"
    return Unit(
        text=before + opening + source + ending,
        buffers=buffers,
        header_begins=_PRELUDE.count("\n") + 1,
        header_lines=header.count("\n") + 1,
        source_begins=(before + opening).count("\n") + 1,
        source_lines=source.count("\n") + 1,
    )


def _translated(step: BoundPass, text: str, *, in_header: bool, beside: str = "") -> str:
    try:
        return translate(text, in_kernel=not in_header, beside=beside)
    except DialectError as error:
        raise KernelFault("compile", str(error), pass_name=step.name, line=error.line, in_header=in_header) from error


def _template(name: str, value: int | bool | DType) -> str:
    if isinstance(value, DType):
        return f"using {name} = {value.metal};"
    if isinstance(value, bool):
        return f"constexpr bool {name} = {str(value).lower()};"
    return f"constexpr int {name} = {value};"


def _signature(step: BoundPass) -> tuple[list[str], list[str], tuple[Buffer, ...]]:
    """Return parameters and arguments in MLX's order: inputs with their shape names, outputs, attributes."""
    parameters: list[str] = []
    arguments: list[str] = []
    buffers: list[Buffer] = []

    def add(declared: str, kind: str, buffer: Buffer, *, by_value: bool = False) -> None:
        parameters.append(declared)
        arguments.append(f"{'*' if by_value else ''}static_cast<{kind}*>(ksr_buffers[{len(buffers)}])")
        buffers.append(buffer)

    for spec in step.inputs:
        kind = f"const {spec.dtype.metal}"
        if not spec.shape:
            add(f"{kind}& {spec.name}", kind, Buffer(spec.name), by_value=True)
            continue
        add(f"{kind}* {spec.name}", kind, Buffer(spec.name))
        if f"{spec.name}_shape" in step.source:
            add(f"const int* {spec.name}_shape", "const int", Buffer(spec.name, SHAPE))
        if f"{spec.name}_strides" in step.source:
            add(f"const int64_t* {spec.name}_strides", "const int64_t", Buffer(spec.name, STRIDES))
        if f"{spec.name}_ndim" in step.source:
            parameters.append(f"const int {spec.name}_ndim")
            arguments.append(str(len(spec.shape)))
    for spec in step.outputs:
        add(f"{spec.dtype.metal}* {spec.name}", spec.dtype.metal, Buffer(spec.name))
    for name, (kind, value) in ATTRIBUTES.items():
        if name in step.source:
            parameters.append(f"{kind} {name}")
            arguments.append(value)
    return parameters, arguments, tuple(buffers)
