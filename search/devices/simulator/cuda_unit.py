"""The C++ that is compiled for one launch of a CUDA kernel, and the launch as a pass that the runner knows."""

from __future__ import annotations

import difflib
import struct
from collections.abc import Iterator, Mapping

import numpy as np

from search.devices.base import KernelFault
from search.devices.simulator.calls import NOTES_CALLS
from search.devices.simulator.cuda_dialect import DeviceCode, Kernel, translate_cuda
from search.devices.simulator.dialect import DialectError
from search.devices.simulator.unit import ARGUMENTS, Buffer, Unit
from search.kernels.cuda_program import (
    CUDA_DTYPES,
    ArrayValue,
    CudaArray,
    CudaLaunch,
    CudaProgram,
    IntegerValue,
    RealValue,
    StructValue,
    Value,
)
from search.kernels.dtypes import Array
from search.kernels.program import ArraySpec, BoundPass, BoundProgram
from translator.launch_plan import Role

_PRELUDE = """\
#include "cuda.h"
#define KSR_EXPORT extern "C" __attribute__((visibility("default")))
"""

_TYPES = {
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "bool": "bool",
}
"""The C++ type of each element type: what a kernel's template arguments are deduced from."""


def device_code(program: CudaProgram) -> DeviceCode:
    """Return the program's device code as C++; raise `KernelFault` (stage ``compile``) where it can't be."""
    try:
        code = translate_cuda(program.text)
    except DialectError as error:
        raise KernelFault("compile", str(error), line=error.line) from error
    if code.state and len(program.launches) > 1:
        words = (
            f"'{code.state[0]}' is a __device__ variable that can change, and this program has several launches: the "
            "simulator keeps such a variable for one launch only; pass an array instead"
        )
        raise KernelFault("compile", words)
    given = {array.spec.name for array in program.arrays}
    if missing := [name for name in code.constants if name not in given]:
        raise KernelFault(
            "compile", f"nothing gives the __constant__ '{missing[0]}' its value: add an array of its name"
        )
    return code


def units_of(program: CudaProgram, code: DeviceCode) -> tuple[Unit, ...]:
    """Write the C++ for each launch; raise `KernelFault` (stage ``compile``) for a kernel that isn't there."""
    return tuple(_unit(program, code, index) for index in range(len(program.launches)))


def bound_program(program: CudaProgram, code: DeviceCode) -> BoundProgram:
    """Return the program as the runner takes one: a pass a launch, the grid in threads, an array of arguments each."""
    steps = tuple(_step(program, code, index) for index in range(len(program.launches)))
    written = {spec.name for step in steps for spec in step.outputs}
    if missing := [name for name in program.results if name not in written]:
        raise KernelFault("launch", f"no launch takes the array '{missing[0]}', which is to be a result")
    return BoundProgram(steps, program.results)


def contents(program: CudaProgram, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what arrays begin with: what is given, zeros, and each launch's arguments."""
    given = {spec.name: inputs[spec.name] for spec in program.given}
    for array in program.arrays:
        if array.zeroed:
            given[array.spec.name] = np.zeros(array.spec.shape, array.spec.dtype.storage)
    for index, launch in enumerate(program.launches):
        words = [word for value in launch.arguments for word in _words(program, value)]
        given[_arguments_name(index)] = np.frombuffer(b"".join(words) or bytes(8), np.int64)
    return given


def _unit(program: CudaProgram, code: DeviceCode, index: int) -> Unit:
    launch = program.launches[index]
    kernel = _kernel(code, launch)
    if len(launch.arguments) != kernel.parameters:
        words = f"the launch gives '{launch.kernel}' {len(launch.arguments)} arguments, and it has {kernel.parameters}"
        raise KernelFault("launch", f"{words} parameters", pass_name=launch.kernel)
    deduced = len(launch.template) < kernel.template_parameters
    buffers = _buffers(program, code, launch, index)
    places = {buffer.array: place for place, buffer in enumerate(buffers)}
    counter = iter(range(10_000))
    given = ", ".join(_argument(program, value, places, counter, deduced) for value in launch.arguments)
    template = f"<{', '.join(launch.template)}>" if launch.template else ""
    fills = " ".join(f"ksr::fill({name}, ksr_buffers[{places[name]}]);" for name in code.constants)
    shared = "KSR_THREADGROUP" in code.text
    prelude = ("#define KSR_CALLS\n" if NOTES_CALLS in code.text else "") + _PRELUDE
    prelude = ("#define KSR_HAS_SHARED\n" if shared else "") + prelude
    return Unit(
        text=prelude
        + code.text
        + "\nKSR_EXPORT void ksr_kernel(const ksr_thread*, [[maybe_unused]] void* const* ksr_buffers) {\n"
        + "    [[maybe_unused]] const ksr_i64* ksr_given = static_cast<const ksr_i64*>(ksr_buffers[0]);\n"
        + f"    {kernel.name}{template}({given});\n"
        + "}\n"
        + "KSR_EXPORT unsigned long ksr_threadgroup_bytes() { return ksr::declared_bytes(); }\n"
        + (f"KSR_EXPORT KSR_UNWATCHED void ksr_fill(void* const* ksr_buffers) {{ {fills} }}\n" if fills else ""),
        buffers=buffers,
        header_begins=0,
        header_lines=0,
        source_begins=prelude.count("\n") + 1,
        source_lines=program.text.count("\n") + 1,
        dynamic_bytes=launch.shared,
    )


def _kernel(code: DeviceCode, launch: CudaLaunch) -> Kernel:
    bare = launch.kernel.rpartition("::")[2]
    if bare in code.kernels:
        return code.kernels[bare]
    near = difflib.get_close_matches(bare, code.kernels, 1)
    known = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(map(repr, code.kernels)) or 'none'}"
    raise KernelFault("compile", f"there is no kernel '{launch.kernel}' in the device code: {known}")


def _buffers(program: CudaProgram, code: DeviceCode, launch: CudaLaunch, index: int) -> tuple[Buffer, ...]:
    names = dict.fromkeys([*_arrays_in(launch.arguments), *code.constants])
    return (Buffer(_arguments_name(index), ARGUMENTS), *(Buffer(name) for name in names))


def _arrays_in(values: tuple[Value, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, ArrayValue):
            yield value.array
        elif isinstance(value, StructValue):
            yield from _arrays_in(value.members)


def _argument(
    program: CudaProgram, value: Value, places: Mapping[str, int], counter: Iterator[int], deduced: bool
) -> str:
    """Return one argument: of the parameter's type, or (``deduced``) of the type that the host's argument had."""
    if isinstance(value, StructValue):
        members = (_argument(program, member, places, counter, deduced) for member in value.members)
        return f"{value.type}{{{', '.join(members)}}}"
    word = f"ksr_given[{next(counter)}]"
    if isinstance(value, ArrayValue):
        pointer = f"ksr::pointer{{ksr_buffers[{places[value.array]}], {word}}}"
        return f"static_cast<{_TYPES[_spec(program, value.array).dtype.name]}*>({pointer})" if deduced else pointer
    if isinstance(value, IntegerValue):
        return f"int({word})" if deduced and abs(value.value) < 2**31 else f"ksr::integer_given{{{word}}}"
    return f"float(ksr::real_given{{{word}}})" if deduced else f"ksr::real_given{{{word}}}"


def _words(program: CudaProgram, value: Value) -> Iterator[bytes]:
    """Yield the eight bytes that each argument of a launch takes in its array of arguments."""
    if isinstance(value, StructValue):
        for member in value.members:
            yield from _words(program, member)
    elif isinstance(value, ArrayValue):
        yield struct.pack("<q", value.offset * _spec(program, value.array).dtype.itemsize)
    elif isinstance(value, RealValue):
        yield struct.pack("<d", value.value)
    else:
        yield struct.pack("<Q", value.value & 0xFFFF_FFFF_FFFF_FFFF)


def _step(program: CudaProgram, code: DeviceCode, index: int) -> BoundPass:
    launch = program.launches[index]
    names = [buffer.array for buffer in _buffers(program, code, launch, index)[1:]]
    arrays = [_array(program, name) for name in names]
    arguments = sum(1 for value in launch.arguments for _ in _words(program, value))
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    grid = gx * bx, gy * by, gz * bz
    if max(grid) >= 2**32:
        raise KernelFault("launch", f"the simulator runs fewer than 2**32 threads in a row, not {max(grid)}")
    return BoundPass(
        launch.kernel.rpartition("::")[2],
        (
            ArraySpec(_arguments_name(index), (max(1, arguments),), CUDA_DTYPES["int64"]),
            *(array.spec for array in arrays if array.role is Role.INPUT),
        ),
        tuple(array.spec for array in arrays if array.role is not Role.INPUT),
        program.text,
        "",
        grid,
        launch.block,
        (),
    )


def _array(program: CudaProgram, name: str) -> CudaArray:
    found = next((array for array in program.arrays if array.spec.name == name), None)
    if found is None:
        raise KernelFault("launch", f"a launch takes the array '{name}', which the program does not have")
    return found


def _spec(program: CudaProgram, name: str) -> ArraySpec:
    return _array(program, name).spec


def _arguments_name(index: int) -> str:
    return f"arguments of launch {index + 1}"
