"""One run of a program in the runner: arrays into shared memory, the process, and what came of it.

The layout of the report and the words of the job are those of ``runtime/job.h``.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from search.devices.base import Checked, CheckReport, DeviceUnavailable, KernelFault
from search.devices.simulator.assembly import KIND_SLOTS
from search.devices.simulator.checking import FINDINGS_BYTES, Findings, read_findings, report_of, reports_of
from search.devices.simulator.faults import DONE, FAULT, REPORT, Report, explain, lacking
from search.devices.simulator.unit import ARGUMENTS, CONSTANT_BELOW, DATA, SHAPE, STRIDES, Buffer, Unit
from search.kernels.dtypes import DTYPES, Array
from search.kernels.program import ArraySpec, BoundProgram

PAGE = 16 << 10
"""Alignment of arrays and least size of a pad: the largest page of the machines that this runs on."""

POISON = 0xFFD5
"""Unwritten memory and its pads, in 16-bit words: a NaN as float, half and bfloat, and an unlikely integer."""

INPUT_PADS = 0xFFE6
"""The pads of inputs: another NaN, so that copying what lies past an input to what lies past an output shows."""

_MAX_ARRAYS, _MAX_PASSES, _MAX_BUFFERS = 256, 32, 64
_REUSE_DEPTHS = 256
_LISTS = {"device_read_lines": _REUSE_DEPTHS + 1, "device_write_lines": _REUSE_DEPTHS + 1, "kinds": KIND_SLOTS}
_GRACE_SECONDS = 2.0

CHECKING_SHARE = 0.8
"""Of a checked run's time: what its threadgroups may take, so that it ends by itself with what it found."""


@dataclass(frozen=True)
class Limits:
    """What a run may use; ``budget`` is the work that counting may take in each pass, 0 to run all without counting.

    With a ``seed`` the run is checked, its threads in an order that the seed chooses. Simdgroups that run ``in_turns``
    let the next one go on at each of their operations, instead of going on to the next barrier.
    """

    seconds: float
    workers: int
    line_bytes: int
    block_bytes: int
    threadgroup_bytes: int
    budget: int = 0
    seed: int | None = None
    in_turns: bool = False


@dataclass(frozen=True)
class RawCounts:
    """What the runner counted in one pass, over the ``sampled`` threadgroups that ran (``PassReport`` in job.h)."""

    threadgroups: int
    sampled: int
    threads: int
    threadgroup_bytes: int
    footprint_read: int
    footprint_written: int
    barriers: int
    shuffles: int
    reductions: int
    atomics: int
    matrix_flops: int
    device_accesses: int
    device_blocks: int
    threadgroup_accesses: int
    threadgroup_cycles: int
    logged: int
    device_read_lines: tuple[int, ...]
    device_write_lines: tuple[int, ...]
    kinds: tuple[int, ...]


_PASS = struct.Struct(f"<{sum(_LISTS.get(entry.name, 1) for entry in fields(RawCounts))}Q")
_FINDINGS_AT = REPORT.size + _MAX_PASSES * _PASS.size
_REPORT_BYTES = _FINDINGS_AT + FINDINGS_BYTES


@dataclass(frozen=True)
class Outcome:
    """The arrays after a run, those written outside their bounds, and the counts of each pass (when counting).

    A checked run has findings, and the fault that ended it, if one did.
    """

    arrays: Mapping[str, Array]
    overruns: tuple[str, ...]
    counts: tuple[RawCounts, ...]
    findings: Findings
    reports: tuple[CheckReport, ...] = ()
    fault: KernelFault | None = None


@dataclass(frozen=True)
class _Slot:
    """Where one buffer lies in the shared file, between its pads."""

    buffer: Buffer
    array: ArraySpec  # that it is, or that it describes
    spec: ArraySpec  # of what lies here
    offset: int
    writable: bool
    init_value: float | None = None

    @property
    def constant(self) -> bool:
        """Whether Metal keeps it in constant memory, which costs no traffic: MLX puts inputs of few elements there."""
        small = not self.writable and math.prod(self.array.shape) < CONSTANT_BELOW
        return self.buffer.what != DATA or small

    @property
    def end(self) -> int:
        return self.offset + _to_page(self.spec.nbytes) + PAGE


def run_job(
    runner: Path,
    bound: BoundProgram,
    units: tuple[Unit, ...],
    libraries: tuple[Path, ...],
    inputs: Mapping[str, Array],
    limits: Limits,
) -> Outcome:
    """Run ``bound`` once in a process of its own; raise `KernelFault` for what its kernels did wrong."""
    slots = _lay_out(bound, units)
    _check_size(bound, units, slots)
    size = max((slot.end for slot in slots.values()), default=_to_page(_REPORT_BYTES))
    with _shared_file(size) as file, mmap.mmap(file.fileno(), size) as memory:
        for slot in slots.values():
            _fill(memory, slot, inputs, zero=limits.budget > 0)
        description = _describe(bound, units, libraries, slots, limits)
        in_time = _execute(runner, file.fileno(), description, limits.seconds)
        try:
            return _outcome(memory, in_time, bound, units, slots, limits)
        except (LookupError, ArithmeticError, ValueError) as error:
            # Nothing that a runner writes reads like that: a kernel can write there too.
            raise KernelFault("sandbox", "a kernel wrote over the record of its own run") from error


def checked_run(outcome: Outcome, results: tuple[str, ...]) -> Checked:
    """Return what a checked run came to: the findings, the fault that ended it if one did, and the ``results``."""
    fault, reports = outcome.fault, outcome.reports
    told = fault and fault.line is None and any(report.certain and report.stage == fault.stage for report in reports)
    if fault and not told:  # else a finding has said the same, with its line
        reports = (*reports, report_of(fault))
    complete = not outcome.fault and outcome.findings.groups_run == outcome.findings.groups
    return Checked(reports, {name: outcome.arrays[name] for name in results}, complete)


def _outcome(
    memory: mmap.mmap,
    in_time: bool,
    bound: BoundProgram,
    units: tuple[Unit, ...],
    slots: Mapping[Buffer, _Slot],
    limits: Limits,
) -> Outcome:
    fault = _fault(Report.unpack(memory[: REPORT.size]), in_time, bound, units, slots, limits)
    if fault and limits.seed is None:
        raise fault
    findings = read_findings(memory, _FINDINGS_AT)
    counts = tuple(_counts(memory, index) for index in range(len(bound.passes)))
    if limits.budget and any(not 0 < entry.sampled <= entry.threadgroups for entry in counts):
        raise ValueError("counts of a sample that is none")
    written = [slot for slot in slots.values() if slot.writable]
    return Outcome(
        arrays={slot.buffer.array: _read(memory, slot) for slot in written},
        overruns=tuple(slot.buffer.array for slot in written if _overrun(memory, slot)),
        counts=counts,
        findings=findings,
        reports=reports_of(findings, bound.passes, units, [slot.spec for slot in slots.values()]),
        fault=fault,
    )


def _check_size(bound: BoundProgram, units: tuple[Unit, ...], slots: Mapping[Buffer, _Slot]) -> None:
    if len(bound.passes) > _MAX_PASSES or len(slots) > _MAX_ARRAYS:
        raise KernelFault("launch", f"the simulator runs at most {_MAX_PASSES} passes over {_MAX_ARRAYS} arrays")
    for step, unit in zip(bound.passes, units, strict=True):
        if len(unit.buffers) > _MAX_BUFFERS:
            words = (
                f"takes {len(unit.buffers)} arrays, shapes and strides; the simulator gives it at most {_MAX_BUFFERS}"
            )
            raise KernelFault("launch", f"pass '{step.name}' {words}", pass_name=step.name)


def _to_page(size: int) -> int:
    return max(1, -(-size // PAGE)) * PAGE


def _lay_out(bound: BoundProgram, units: tuple[Unit, ...]) -> dict[Buffer, _Slot]:
    written = {spec.name for step in bound.passes for spec in step.outputs}
    slots: dict[Buffer, _Slot] = {}
    end = _to_page(_REPORT_BYTES)
    for step, unit in zip(bound.passes, units, strict=True):
        arrays = {spec.name: spec for spec in (*step.inputs, *step.outputs)}
        for buffer in unit.buffers:
            if buffer not in slots:
                array = arrays[buffer.array]
                writable = buffer.what == DATA and array.name in written
                init = step.init_value if array in step.outputs else None
                slots[buffer] = _Slot(buffer, array, _content_of(buffer, array), end + PAGE, writable, init)
                end = slots[buffer].end
            elif step.init_value is not None and arrays[buffer.array] in step.outputs:
                words = f"pass '{step.name}' initializes '{buffer.array}', which an earlier pass has used"
                raise KernelFault("launch", words, pass_name=step.name)
    return slots


def _content_of(buffer: Buffer, array: ArraySpec) -> ArraySpec:
    if buffer.what in (DATA, ARGUMENTS):
        return array
    dtype = DTYPES["int32" if buffer.what == SHAPE else "int64"]
    return ArraySpec(f"{array.name}_{buffer.what}", (len(array.shape),), dtype)


def _shared_file(size: int) -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("ksearch-arrays", os.MFD_ALLOW_SEALING), "r+b", buffering=0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    file.truncate(size)
    if hasattr(fcntl, "F_ADD_SEALS"):  # a file that shrinks under a mapping kills whoever reads there: this process
        fcntl.fcntl(file.fileno(), fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return file


def _fill(memory: mmap.mmap, slot: _Slot, inputs: Mapping[str, Array], *, zero: bool) -> None:
    """Write pads, and the contents: the values of what ``inputs`` has, an output's initial value, or poison.

    With ``zero`` (only some threadgroups run, and later passes read what others left) zeros, which are safe indices.
    """
    begin = slot.offset - PAGE
    np.frombuffer(memory, np.uint16, (slot.end - begin) // 2, begin)[:] = POISON if slot.writable else INPUT_PADS
    content = np.frombuffer(memory, np.uint8, slot.spec.nbytes, slot.offset)
    shape = slot.array.shape
    if slot.buffer.what == SHAPE:
        values = np.array(shape, np.int32)
    elif slot.buffer.what == STRIDES:
        values = np.array(slot.array.strides or _row_strides(shape), np.int64)
    elif not slot.writable or slot.buffer.array in inputs:
        values = np.ascontiguousarray(inputs[slot.buffer.array], dtype=slot.spec.dtype.storage)
        if values.nbytes != slot.spec.nbytes:
            raise ValueError(f"'{slot.buffer.array}' has shape {values.shape}, not {shape}")
        if slot.array.strides:
            values = _as_it_lies(values.reshape(shape), slot.array.strides)
    elif slot.init_value is not None:
        values = slot.spec.dtype.encode(np.full(shape, slot.init_value))
    elif zero:
        content[:] = 0
        return
    else:
        return
    content[:] = values.reshape(-1).view(np.uint8)


def _row_strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _as_it_lies(values: Array, strides: tuple[int, ...]) -> Array:
    """Return the elements of ``values`` in the order in which an array with ``strides`` keeps them, without gaps."""
    order = sorted(range(values.ndim), key=lambda axis: (-strides[axis], values.shape[axis]))
    moved = np.ascontiguousarray(values.transpose(order))
    if any(
        extent > 1 and strides[axis] != moved.strides[place] // moved.itemsize
        for place, (axis, extent) in enumerate(zip(order, moved.shape, strict=True))
    ):
        raise ValueError(f"strides {strides} of shape {values.shape} leave gaps or overlap")
    return moved


def _describe(
    bound: BoundProgram,
    units: tuple[Unit, ...],
    libraries: tuple[Path, ...],
    slots: Mapping[Buffer, _Slot],
    limits: Limits,
) -> str:
    seconds = math.ceil(limits.seconds + _GRACE_SECONDS)
    lines = [
        f"limits {int(limits.budget > 0)} {limits.workers} {seconds} {(limits.line_bytes - 1).bit_length()} "
        f"{(limits.block_bytes - 1).bit_length()} {limits.threadgroup_bytes} {limits.budget}"
    ]
    if limits.seed is not None:
        milliseconds = int(1000 * limits.seconds * CHECKING_SHARE / len(bound.passes))
        lines.append(f"check {limits.seed} {int(limits.in_turns)} {milliseconds}")
    for slot in slots.values():
        lines.append(f"array {slot.offset} {slot.spec.nbytes} {int(slot.writable)} {int(slot.constant)}")
    numbers = {buffer: number for number, buffer in enumerate(slots)}
    for step, unit, library in zip(bound.passes, units, libraries, strict=True):
        words = [
            *step.grid,
            *step.threadgroup,
            unit.dynamic_bytes,
            len(unit.buffers),
            *(numbers[buffer] for buffer in unit.buffers),
        ]
        lines.append(f"pass {' '.join(map(str, words))} {library}")
    return "\n".join([*lines, "end\n"])


def _execute(runner: Path, descriptor: int, description: str, seconds: float) -> bool:
    """Run the process to its end; return False when its time ran out and it was killed."""
    process = subprocess.Popen(
        [str(runner), str(descriptor)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(descriptor,),
        # One heap for all threads: choosing among several, glibc reads how many processors there are from a file.
        env={"MALLOC_ARENA_MAX": "1"},
    )
    try:
        process.communicate(description.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.kill()
        process.wait()
    return True


def _fault(
    report: Report,
    in_time: bool,
    bound: BoundProgram,
    units: tuple[Unit, ...],
    slots: Mapping[Buffer, _Slot],
    limits: Limits,
) -> KernelFault | None:
    if report.state == FAULT and (lack := lacking(report)):
        raise DeviceUnavailable(lack)
    step, unit = bound.passes[report.step], units[report.step]
    if report.state == FAULT:
        arrays = [(slot.spec, slot.writable) for slot in slots.values()]
        return explain(report, step, unit, arrays, limits.threadgroup_bytes)
    if not in_time:
        return KernelFault(
            "timeout",
            f"pass '{step.name}' was still running after {limits.seconds:g} s: a loop that never ends, "
            "or threads that wait for each other",
            pass_name=step.name,
        )
    if report.state != DONE:
        return KernelFault("crash", "the kernel's process ended before the kernel did", pass_name=step.name)
    return None


def _read(memory: mmap.mmap, slot: _Slot) -> Array:
    content = np.frombuffer(memory, np.uint8, slot.spec.nbytes, slot.offset).copy()
    return content.view(slot.spec.dtype.storage).reshape(slot.spec.shape)


def _overrun(memory: mmap.mmap, slot: _Slot) -> bool:
    end = slot.offset + slot.spec.nbytes
    poison = np.array([POISON] * PAGE, np.uint16).tobytes()
    return any(
        memory[begin:stop] != poison[begin % 2 :][: stop - begin]
        for begin, stop in ((slot.offset - PAGE, slot.offset), (end, slot.end))
    )


def _counts(memory: mmap.mmap, index: int) -> RawCounts:
    values = iter(_PASS.unpack_from(memory, REPORT.size + index * _PASS.size))
    named: dict[str, Any] = {
        entry.name: tuple(islice(values, _LISTS[entry.name])) if entry.name in _LISTS else next(values)
        for entry in fields(RawCounts)
    }
    return RawCounts(**named)
