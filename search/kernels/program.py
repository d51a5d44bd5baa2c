"""What a candidate is: one or more Metal kernels with their launch expressions, and the same bound to numbers."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from search.kernels.dtypes import DTYPES, DType
from search.kernels.expressions import ExpressionError, evaluate
from translator.reach import plain_comments

Triple = tuple[str, str, str]
TemplateValue = int | bool | str

MAX_THREADS_PER_THREADGROUP = 1024

ATOMIC = frozenset({"float32", "int32", "uint32"})
"""Element types that Metal's device atomics hold with every operation (64-bit ones know only minimum and maximum)."""


class ProgramError(ValueError):
    """A program that can't be launched as it stands; the message says which pass and why."""


@dataclass(frozen=True)
class Buffer:
    """An intermediate array that one pass writes and a later one reads; ``dtype`` may be a dtype variable."""

    name: str
    shape: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Pass:
    """One Metal kernel in the form of ``mx.fast.metal_kernel``: a body, a header, and how to launch it.

    ``grid`` counts **threads**, as MLX does. ``template`` pairs a name with an integer expression over axes, a bool,
    or the name of a dtype (``float16``) or dtype variable (``T``). ``init_value`` fills every output before the launch
    and ``atomic_outputs`` makes each a ``device atomic<T>*``, as MLX's arguments of these names do.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: str
    grid: Triple
    threadgroup: Triple
    header: str = ""
    template: tuple[tuple[str, TemplateValue], ...] = ()
    init_value: float | None = None
    atomic_outputs: bool = False


@dataclass(frozen=True)
class Program:
    """A candidate: passes in launch order, and the intermediate buffers between them."""

    passes: tuple[Pass, ...]
    buffers: tuple[Buffer, ...] = ()

    def to_json(self) -> str:
        """Return the program as canonical JSON text, the form that is stored and hashed.

        What a pass does not ask for (``init_value``, ``atomic_outputs``) is left out, so that sessions from before
        these were known keep their hashes.
        """
        data = asdict(self)
        for entry in data["passes"]:
            init_value, atomic = entry.pop("init_value"), entry.pop("atomic_outputs")
            if init_value is not None:
                entry["init_value"] = float(init_value)
            if atomic:
                entry["atomic_outputs"] = True
        return json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Program:
        """Rebuild a program from `to_json`; raise `ProgramError` when the text is not one."""
        try:
            data = json.loads(text)
            program = Program(
                passes=tuple(_pass_from(entry) for entry in data["passes"]),
                buffers=tuple(Buffer(b["name"], tuple(b["shape"]), b["dtype"]) for b in data["buffers"]),
            )
            if not all(isinstance(part, str) for part in _texts(program)):
                raise TypeError("a name or an expression that is not text")
            return program
        except (KeyError, TypeError, ValueError) as error:
            raise ProgramError(f"not a stored program: {error}") from error

    @property
    def sha256(self) -> str:
        """Hash of the whole program (sources and launch), the identity under which it is stored."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _texts(program: Program) -> Iterator[object]:
    """Yield all of a program that must be text, whatever it is."""
    for step in program.passes:
        yield from (step.name, step.source, step.header, *step.inputs, *step.outputs, *step.grid, *step.threadgroup)
        yield from (name for name, _ in step.template)
    for buffer in program.buffers:
        yield from (buffer.name, *buffer.shape, buffer.dtype)


def _pass_from(entry: dict[str, Any]) -> Pass:
    gx, gy, gz = entry["grid"]
    tx, ty, tz = entry["threadgroup"]
    init_value = entry.get("init_value")
    return Pass(
        name=entry["name"],
        inputs=tuple(entry["inputs"]),
        outputs=tuple(entry["outputs"]),
        source=entry["source"],
        grid=(gx, gy, gz),
        threadgroup=(tx, ty, tz),
        header=entry["header"],
        template=tuple((name, value) for name, value in entry["template"]),
        init_value=None if init_value is None else float(init_value),
        atomic_outputs=entry.get("atomic_outputs", False) is True,
    )


@dataclass(frozen=True)
class ArraySpec:
    """The shape (in elements) and element type of one array that a launch reads or writes.

    ``strides`` (in elements) say how an input lies in memory; it is row-contiguous where there are none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class BoundPass:
    """A pass with every expression replaced by its number: what a device compiles and launches; fields as in `Pass`."""

    name: str
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    source: str
    header: str
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    template: tuple[tuple[str, int | bool | DType], ...]
    init_value: float | None = None
    atomic_outputs: bool = False


@dataclass(frozen=True)
class BoundProgram:
    """Bound passes in launch order, and the names of the arrays that are results (others are intermediate)."""

    passes: tuple[BoundPass, ...]
    results: tuple[str, ...]
    sha256: str = field(default="", compare=False)


def bind(
    program: Program,
    arrays: Mapping[str, ArraySpec],
    results: tuple[str, ...],
    axes: Mapping[str, int],
    dtypes: Mapping[str, str],
) -> BoundProgram:
    """Bind ``program`` to one workload.

    ``arrays`` are the problem's inputs and outputs by name, ``results`` its output names, ``axes`` the value of each
    axis, ``dtypes`` the dtype name of each dtype variable. Raises `ProgramError` for names that are not there, launch
    sizes below 1, more than 1024 threads in a threadgroup, a result that no pass writes, an array that two passes
    write, or a read before a write.
    """
    known = dict(arrays)
    for buffer in program.buffers:
        if buffer.name in known:
            raise ProgramError(f"buffer '{buffer.name}' has the name of an array of the problem")
        known[buffer.name] = ArraySpec(
            buffer.name,
            tuple(_number(f"buffer '{buffer.name}'", text, axes) for text in buffer.shape),
            resolve_dtype(buffer.dtype, dtypes),
        )
    written = set(arrays) - set(results)
    bound = []
    for step in program.passes:
        for name in step.inputs:
            if name not in known:
                raise ProgramError(f"pass '{step.name}' reads '{name}', which is no array of the problem and no buffer")
            if name not in written:
                raise ProgramError(f"pass '{step.name}' reads '{name}' before any pass has written it")
        for name in step.outputs:
            if name not in known or (name in arrays and name not in results):
                raise ProgramError(f"pass '{step.name}' writes '{name}', which is no output and no buffer")
            if name in written:
                # In MLX every call of a kernel makes its outputs anew, with nothing of an earlier call's in them.
                raise ProgramError(f"pass '{step.name}' writes '{name}' again: let it write a buffer of another name")
        bound.append(_bind_pass(step, known, axes, dtypes))
        written.update(step.outputs)
    if missing := [name for name in results if name not in written]:
        raise ProgramError(f"no pass writes the output '{missing[0]}'")
    return BoundProgram(tuple(bound), results, program.sha256)


def resolve_dtype(name: str, dtypes: Mapping[str, str]) -> DType:
    """Return the dtype that ``name`` (a dtype or a dtype variable) stands for; raise `ProgramError` if none."""
    resolved = dtypes.get(name, name)
    if resolved not in DTYPES:
        raise ProgramError(f"unknown dtype '{resolved}' (known: {', '.join(DTYPES)})")
    return DTYPES[resolved]


def _number(where: str, text: str, axes: Mapping[str, int]) -> int:
    try:
        value = evaluate(text, axes)
    except ExpressionError as error:
        raise ProgramError(f"{where}: {error}") from error
    if value < 1:
        raise ProgramError(f"{where}: '{text}' is {value}; it must be at least 1")
    return value


def _bind_pass(
    step: Pass, known: Mapping[str, ArraySpec], axes: Mapping[str, int], dtypes: Mapping[str, str]
) -> BoundPass:
    where = f"pass '{step.name}'"
    grid = tuple(_number(f"{where} grid", text, axes) for text in step.grid)
    group = tuple(_number(f"{where} threadgroup", text, axes) for text in step.threadgroup)
    threads = group[0] * group[1] * group[2]
    if threads > MAX_THREADS_PER_THREADGROUP:
        raise ProgramError(f"{where}: {threads} threads in a threadgroup; Metal allows {MAX_THREADS_PER_THREADGROUP}")
    template: list[tuple[str, int | bool | DType]] = []
    for name, value in step.template:
        if isinstance(value, bool | int):
            template.append((name, value))
        elif value in dtypes or value in DTYPES:
            template.append((name, resolve_dtype(value, dtypes)))
        else:
            try:
                template.append((name, evaluate(value, axes)))
            except ExpressionError as error:
                raise ProgramError(f"{where} template '{name}': {error}") from error
    outputs = tuple(known[name] for name in step.outputs)
    for spec in outputs:
        _can_be_launched(where, step, spec)
    return BoundPass(
        name=step.name,
        inputs=tuple(known[name] for name in step.inputs),
        outputs=outputs,
        source=plain_comments(step.source),
        header=plain_comments(step.header),
        grid=(grid[0], grid[1], grid[2]),
        threadgroup=(group[0], group[1], group[2]),
        template=tuple(template),
        init_value=step.init_value,
        atomic_outputs=step.atomic_outputs,
    )


def _can_be_launched(where: str, step: Pass, spec: ArraySpec) -> None:
    """Refuse an output that can't be atomic, or can't begin with the pass's initial value, which MLX keeps as float32.

    NaN is how an element that nobody wrote is known.
    """
    if step.atomic_outputs and spec.dtype.name not in ATOMIC:
        raise ProgramError(
            f"{where}: '{spec.name}' is {spec.dtype.name}, and atomic_outputs needs {', '.join(sorted(ATOMIC))}"
        )
    value = step.init_value
    if value is None:
        return
    if math.isnan(value):
        raise ProgramError(f"{where}: an initial value of NaN can't be told from an output that nobody wrote")
    if not spec.dtype.floating and not (math.isfinite(value) and _exact_in_float32(value) and value.is_integer()):
        raise ProgramError(
            f"{where}: '{spec.name}' is {spec.dtype.name}, and {value:g} is no whole number that float32 holds exactly"
        )


def _exact_in_float32(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False
