"""The C++ that is compiled for one pass: the kernel's text between what MLX writes around it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from search.devices.base import KernelFault
from search.devices.simulator.calls import NOTES_CALLS, Calls, calls_of
from search.devices.simulator.dialect import STORAGE, DialectError, translate
from search.devices.simulator.generated import GeneratedTextError, Parameter, is_generated, parse_generated
from search.devices.simulator.spaces import foreign_pointer
from search.kernels.dtypes import DType
from search.kernels.program import BoundPass
from translator.paired_braces import definitions, settled
from translator.reach import blank_text

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


DATA, SHAPE, STRIDES, ARGUMENTS = "data", "shape", "strides", "arguments"

CONSTANT_BELOW = 8
"""Elements from which on MLX gives an input as ``device``, not ``constant``."""


@dataclass(frozen=True)
class Buffer:
    """What a kernel gets at one place of its buffer list: an array's data, shape, strides, or a launch's arguments."""

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
    dynamic_bytes: int = 0  # of threadgroup memory that the launch asks for besides what is declared

    def locate(self, line: int) -> tuple[int, bool] | None:
        """Return the line of the kernel's source (or header: True) that ``line`` of the text is, None for neither."""
        if self.header_begins <= line < self.header_begins + self.header_lines:
            return line - self.header_begins + 1, True
        if self.source_begins <= line < self.source_begins + self.source_lines:
            return line - self.source_begins + 1, False
        return None


def unit_of(step: BoundPass) -> Unit:
    """Write the C++ for ``step``; raise `KernelFault` (stage ``compile``) for text that is refused before compiling.

    The source is the body of a kernel, or the whole text that MLX makes of one (``verbose=True`` prints it).
    """
    step = _settled(step)
    if is_generated(step.source):
        return _unit_of_generated(step)
    _refuse_foreign_pointers(step, step.header, step.source)
    calls = calls_of(step.header, step.source)
    header = _translated(step, step.header, calls, in_header=True)
    source = _translated(step, step.source, calls, in_header=False, beside=step.header)
    signature = _signature(step)
    template = " ".join(_template(name, value) for name, value in step.template)
    prelude = _prelude(header + source)
    before = prelude + header + "\n" + _opening(signature, template) + "\n"
    return Unit(
        text=before + source + _ending(signature, source),
        buffers=tuple(signature.buffers),
        header_begins=prelude.count("\n") + 1,
        header_lines=header.count("\n") + 1,
        source_begins=before.count("\n") + 1,
        source_lines=source.count("\n") + 1,
    )


def _settled(step: BoundPass) -> BoundPass:
    """Return ``step`` with one beginning of each block where #ifdef chooses between two: brackets are matched next."""
    header, source = blank_text(step.header), blank_text(step.source)
    return replace(
        step,
        header=settled(step.header, header, ()),
        source=settled(step.source, source, definitions(header)),
    )


def _unit_of_generated(step: BoundPass) -> Unit:
    try:
        kernel = parse_generated(step.source)
    except GeneratedTextError as error:
        raise KernelFault("compile", str(error), pass_name=step.name, line=error.line) from error
    signature = _signature_of_generated(step, kernel.parameters)
    calls = calls_of(kernel.before, kernel.body)
    header = _translated(step, kernel.before, calls, in_header=False, in_kernel=False)
    before = header + _opening(signature, " ".join(kernel.template)) + "\n" * kernel.signature_lines
    _refuse_foreign_pointers(step, kernel.before, kernel.body, skipped=before.count("\n"))
    body = _translated(step, kernel.body, calls, in_header=False, beside=kernel.before, skipped=before.count("\n"))
    prelude = _prelude(before + body)
    return Unit(
        text=prelude + before + body + _ending(signature, body),
        buffers=tuple(signature.buffers),
        header_begins=0,
        header_lines=0,
        source_begins=prelude.count("\n") + 1,
        source_lines=kernel.lines,
    )


@dataclass
class _Signature:
    """A kernel's parameters as C++ declares them, what each is given, and the buffers among them."""

    parameters: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def add_buffer(self, kind: str, how: str, name: str, buffer: Buffer) -> None:
        """Add a pointer (``how`` is ``*``) or reference (``&``) to ``kind``."""
        self.parameters.append(f"{kind}{how} {name}")
        self.arguments.append(f"{'*' if how == '&' else ''}static_cast<{kind}*>(ksr_buffers[{len(self.buffers)}])")
        self.buffers.append(buffer)

    def add_value(self, declared: str, value: str) -> None:
        """Add a parameter that is no buffer."""
        self.parameters.append(declared)
        self.arguments.append(value)


def _prelude(translated: str) -> str:
    return ("#define KSR_CALLS\n" if NOTES_CALLS in translated else "") + _PRELUDE


def _opening(signature: _Signature, template: str) -> str:
    return f"static void ksr_body({', '.join(signature.parameters)}) {{ {template}"


def _ending(signature: _Signature, body: str) -> str:
    declared, zones = (
        ("ksr::ksr_threadgroup_end - ksr::ksr_threadgroup_begin", "ksr::ksr_zones_end - ksr::ksr_zones_begin")
        if STORAGE in body
        else ("0", "0")
    )
    return (
        "\n}\n"
        "KSR_EXPORT void ksr_kernel(const ksr_thread* ksr_at, void* const* ksr_buffers) {\n"
        f"    ksr_body({', '.join(signature.arguments)});\n"
        "}\n"
        f"KSR_EXPORT unsigned long ksr_threadgroup_bytes() {{ return {declared}; }}\n"
        "#ifdef KSR_CHECKED\n"  # where zones lie between arrays
        f"KSR_EXPORT unsigned long ksr_zone_bytes() {{ return ({zones}) * KSR_ZONE_BYTES; }}\n"
        "#endif\n"
    )


def _refuse_foreign_pointers(step: BoundPass, header: str, source: str, skipped: int = 0) -> None:
    """Refuse a pointer into another address space; ``skipped`` lines come before a whole text's ``source``."""
    arrays = {spec.name: "device" for spec in step.outputs}
    for spec in step.inputs:
        if spec.shape:
            arrays[spec.name] = "constant" if prod(spec.shape) < CONSTANT_BELOW else "device"
    if found := foreign_pointer(header, source, arrays):
        line, in_header, words = found
        at = line + (0 if in_header else skipped)
        raise KernelFault("compile", words, pass_name=step.name, line=at, in_header=in_header and not skipped)


def _translated(
    step: BoundPass,
    text: str,
    calls: Calls,
    *,
    in_header: bool,
    in_kernel: bool | None = None,
    beside: str = "",
    skipped: int = 0,
) -> str:
    """Translate one piece of a text whose first ``skipped`` lines come before it."""
    try:
        allowed = not in_header if in_kernel is None else in_kernel
        return translate(text, in_kernel=allowed, beside=beside, calls=calls)
    except DialectError as error:
        line = error.line + skipped
        raise KernelFault("compile", str(error), pass_name=step.name, line=line, in_header=in_header) from error


def _template(name: str, value: int | bool | DType) -> str:
    if isinstance(value, DType):
        return f"using {name} = {value.metal};"
    if isinstance(value, bool):
        return f"constexpr bool {name} = {str(value).lower()};"
    return f"constexpr int {name} = {value};"


def _signature(step: BoundPass) -> _Signature:
    """Return the parameters in MLX's order: inputs with their shape names, outputs, attributes."""
    signature = _Signature()
    for spec in step.inputs:
        kind = f"const {spec.dtype.metal}"
        if not spec.shape:
            signature.add_buffer(kind, "&", spec.name, Buffer(spec.name))
            continue
        signature.add_buffer(kind, "*", spec.name, Buffer(spec.name))
        if f"{spec.name}_shape" in step.source:
            signature.add_buffer("const int", "*", f"{spec.name}_shape", Buffer(spec.name, SHAPE))
        if f"{spec.name}_strides" in step.source:
            signature.add_buffer("const int64_t", "*", f"{spec.name}_strides", Buffer(spec.name, STRIDES))
        if f"{spec.name}_ndim" in step.source:
            signature.add_value(f"const int {spec.name}_ndim", str(len(spec.shape)))
    for spec in step.outputs:
        kind = f"atomic<{spec.dtype.metal}>" if step.atomic_outputs else spec.dtype.metal
        signature.add_buffer(kind, "*", spec.name, Buffer(spec.name))
    for name, (kind, value) in ATTRIBUTES.items():
        if name in step.source:
            signature.add_value(f"{kind} {name}", value)
    return signature


def _signature_of_generated(step: BoundPass, parameters: tuple[Parameter, ...]) -> _Signature:
    signature = _Signature()
    arrays = {spec.name: spec for spec in (*step.inputs, *step.outputs)}
    for parameter in parameters:
        name = parameter.name
        array, _, what = name.rpartition("_")
        if parameter.attribute in ATTRIBUTES:
            kind, value = ATTRIBUTES[parameter.attribute]
            signature.add_value(f"{kind} {name}", value)
        elif parameter.how and name not in arrays and array in arrays and what == "ndim":
            signature.add_value(f"const int {name}", str(len(arrays[array].shape)))
        elif parameter.how and (name in arrays or (array in arrays and what in (SHAPE, STRIDES))):
            kind = f"const {parameter.type}" if parameter.const else parameter.type
            buffer = Buffer(name) if name in arrays else Buffer(array, what)
            signature.add_buffer(kind, parameter.how, name, buffer)
        else:
            words = f"the kernel's parameter '{name}' is no array of the launch and no attribute that MLX knows"
            raise KernelFault("compile", words, pass_name=step.name)
    return signature
