"""CUDA kernels with what their launches give them bound to numbers: what the simulator runs as the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from search.kernels.dtypes import DTYPES, DType
from search.kernels.expressions import ExpressionError, evaluate, names
from search.kernels.program import ArraySpec, ProgramError
from translator.launch_plan import (
    Argument,
    ArrayArgument,
    ArrayPlan,
    LaunchPlan,
    LaunchStep,
    Role,
    SizeArgument,
    StructArgument,
)

CUDA_DTYPES: dict[str, DType] = DTYPES | {"float64": DType("float64", "double", "float64", floating=True)}
"""Element types by name: those of a Metal kernel, and double."""

MOST_THREADS = 1024
MOST_BLOCK = (1024, 1024, 64)
MOST_GRID = (2**31 - 1, 65535, 65535)
MOST_SHARED_BYTES = 227 << 10
"""The most shared memory of a block, static and dynamic together: that of compute capability 9.0."""


@dataclass(frozen=True)
class ArrayValue:
    """A pointer: into which array, and how many of its elements from its begin."""

    array: str
    offset: int = 0


@dataclass(frozen=True)
class IntegerValue:
    """An integer or bool; 0 for a pointer is the null pointer."""

    value: int


@dataclass(frozen=True)
class RealValue:
    """A floating-point number."""

    value: float


@dataclass(frozen=True)
class StructValue:
    """A struct that is passed whole: its members in their order, or what the constructor of a ``type`` is given."""

    members: tuple[Value, ...]
    type: str = ""


Value = ArrayValue | IntegerValue | RealValue | StructValue


@dataclass(frozen=True)
class CudaLaunch:
    """One launch: ``grid`` in blocks, ``shared`` bytes of dynamic shared memory, a value for each parameter.

    ``kernel`` may be qualified; ``template`` are its explicit template arguments, as C++ text.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Value, ...]
    template: tuple[str, ...] = ()
    shared: int = 0


@dataclass(frozen=True)
class CudaArray:
    """An array in global memory. ``zeroed``: it begins as zeros; else it begins as what is given, or as any bytes.

    One that has the name of a ``__constant__`` variable gives that its value.
    """

    spec: ArraySpec
    role: Role
    zeroed: bool = False


@dataclass(frozen=True)
class CudaProgram:
    """Launches in order, the arrays that they work on, and the device code (see translator/device_text.py)."""

    text: str
    launches: tuple[CudaLaunch, ...]
    arrays: tuple[CudaArray, ...]

    @property
    def given(self) -> tuple[ArraySpec, ...]:
        """The arrays whose values a run is given."""
        return tuple(array.spec for array in self.arrays if array.role in (Role.INPUT, Role.INOUT) and not array.zeroed)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the arrays that a run returns."""
        return tuple(array.spec.name for array in self.arrays if array.role in (Role.OUTPUT, Role.INOUT))


def bind_launches(
    plan: LaunchPlan, text: str, axes: Mapping[str, int], scalars: Mapping[str, float] | None = None
) -> CudaProgram:
    """Return the launches of ``plan`` for one value of each axis, and of each scalar that the source leaves open.

    ``text`` is the device code. Raises `ProgramError` for what has no value or none that CUDA would launch.
    """
    if refused := next((check for check in plan.requires if not holds(check, axes)), None):
        kind, size, bound = refused
        value, limit = _number("the host's check", size, axes), _number("the host's check", bound, axes)
        raise ProgramError(f"the host launches nothing: '{size}' is {value}, which {_MUST[kind]} {limit}")
    numbers = {entry.name: _real(entry.name, entry.value, scalars or {}) for entry in plan.scalars}
    arrays = tuple(_array(entry, axes) for entry in plan.arrays)
    sizes = {array.spec.name: array.spec.shape[0] for array in arrays}
    return CudaProgram(text, tuple(_launch(step, axes, numbers, sizes) for step in plan.steps), arrays)


_MUST = {
    "multiple": "must be a multiple of",
    "most": "must not exceed",
    "least": "must be at least",
    "equal": "must be",
}


def holds(check: tuple[str, str, str], axes: Mapping[str, int]) -> bool:
    """Whether a check of the host (see `LaunchPlan.requires`) lets a launch with ``axes`` through.

    A check of what isn't an axis of the launches does: a plan is made for one value of that.
    """
    kind, size, bound = check
    if (names(size) | names(bound)) - set(axes):
        return True
    value, limit = evaluate(size, axes), evaluate(bound, axes)
    if kind == "multiple":
        return limit > 0 and value % limit == 0
    return {"most": value <= limit, "least": value >= limit, "equal": value == limit}[kind]


def _array(entry: ArrayPlan, axes: Mapping[str, int]) -> CudaArray:
    where = f"array '{entry.name}'"
    if entry.dtype not in CUDA_DTYPES:
        raise ProgramError(f"{where}: unknown dtype '{entry.dtype}' (known: {', '.join(CUDA_DTYPES)})")
    if not entry.extent:
        raise ProgramError(f"{where}: nothing says how many elements it has")
    extent = _number(where, entry.extent, axes)
    if extent < 1:
        raise ProgramError(f"{where}: '{entry.extent}' is {extent}; it must have at least 1 element")
    return CudaArray(ArraySpec(entry.name, (extent,), CUDA_DTYPES[entry.dtype]), entry.role, entry.zeroed)


def _launch(
    step: LaunchStep, axes: Mapping[str, int], numbers: Mapping[str, float], sizes: Mapping[str, int]
) -> CudaLaunch:
    where = f"the launch of '{step.kernel}'"
    grid = _extents(f"{where}: the grid", step.grid, axes, MOST_GRID)
    block = _extents(f"{where}: the block", step.block, axes, MOST_BLOCK)
    if (threads := block[0] * block[1] * block[2]) > MOST_THREADS:
        raise ProgramError(f"{where}: {threads} threads in a block; CUDA allows {MOST_THREADS}")
    shared = _number(f"{where}: dynamic shared memory", step.shared or "0", axes)
    if not 0 <= shared <= MOST_SHARED_BYTES:
        raise ProgramError(f"{where}: {shared} bytes of dynamic shared memory; a block has {MOST_SHARED_BYTES}")
    arguments = tuple(_value(where, argument, axes, numbers, sizes) for argument in step.arguments)
    return CudaLaunch(step.kernel, grid, block, arguments, step.template, shared)


def _extents(
    where: str, texts: tuple[str, str, str], axes: Mapping[str, int], most: tuple[int, int, int]
) -> tuple[int, int, int]:
    x, y, z = (_number(where, text, axes) for text in texts)
    for text, value, limit in zip(texts, (x, y, z), most, strict=True):
        if not 1 <= value <= limit:
            raise ProgramError(f"{where}: '{text}' is {value}; CUDA launches 1 to {limit}")
    return x, y, z


def _value(
    where: str, argument: Argument, axes: Mapping[str, int], numbers: Mapping[str, float], sizes: Mapping[str, int]
) -> Value:
    if isinstance(argument, SizeArgument):
        return IntegerValue(_number(where, argument.size, axes))
    if isinstance(argument, ArrayArgument):
        offset = _number(where, argument.offset, axes)
        if argument.array not in sizes:
            raise ProgramError(f"{where}: there is no array '{argument.array}'")
        return ArrayValue(argument.array, offset)
    if isinstance(argument, StructArgument):
        members = tuple(_value(where, member.argument, axes, numbers, sizes) for member in argument.members)
        return StructValue(members, argument.type if argument.made else "")
    if argument.scalar not in numbers:
        raise ProgramError(f"{where}: there is no scalar '{argument.scalar}'")
    return RealValue(numbers[argument.scalar])


def _number(where: str, text: str, axes: Mapping[str, int]) -> int:
    try:
        return evaluate(text, axes)
    except ExpressionError as error:
        raise ProgramError(f"{where}: {error}") from error


def _real(name: str, text: str, scalars: Mapping[str, float]) -> float:
    if name in scalars:
        return scalars[name]
    if not text:
        raise ProgramError(f"scalar '{name}': the source leaves it open, so it has to be given a value")
    try:
        return float(text.rstrip("fFlL"))
    except ValueError:
        raise ProgramError(f"scalar '{name}': '{text}' is no number") from None
