"""The runner's report of a fault, in words that a person or a model can act on."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from search.devices.base import KernelFault
from search.devices.simulator.dialect import storage_in
from search.devices.simulator.trails import lines_of, where
from search.devices.simulator.unit import Unit
from search.kernels.program import ArraySpec, BoundPass

RUNNING, DONE, FAULT = 1, 2, 3
REPORT = struct.Struct("<3Q8q")
"""State, number of the pass, kind of the fault, its details (``Report`` in runtime/job.h)."""

_OUT_OF_BOUNDS, _OUTSIDE, _THREADGROUP, _STACK, _ARITHMETIC, _ILLEGAL = 1, 2, 3, 4, 5, 6
_DIVERGED, _TOO_MUCH_MEMORY, _NOT_LOADED, _OUT_OF_MEMORY = 7, 8, 9, 10
_REFUSED_CALL = 11
_NO_SANDBOX = 12
_ASSERTION = 13
_THREAD_ELSEWHERE = 14
_THREADS_RETURNED = 1
_VERBS = {0: "touches", 1: "reads", 2: "writes", 3: "jumps to", 4: "accesses"}


@dataclass(frozen=True)
class Report:
    """What the runner left behind."""

    state: int
    step: int
    kind: int
    detail: tuple[int, ...]

    @staticmethod
    def unpack(data: bytes) -> Report:
        """Read a report from the start of the shared memory."""
        state, step, kind, *detail = REPORT.unpack(data[: REPORT.size])
        return Report(state, step, kind, tuple(detail))


def lacking(report: Report) -> str | None:
    """Return what the system lacks that no kernel can run without, if that is what ``report`` says."""
    if report.kind == _NO_SANDBOX:
        why = os.strerror(report.detail[0] & 0xFFF)
        return f"this system does not let the simulator lock a kernel in ({why}), so none is run"
    if report.kind == _THREAD_ELSEWHERE:
        return "this system's C library keeps its notes of a thread away from the thread's stack, so no kernel is run"
    return None


def explain(
    report: Report, step: BoundPass, unit: Unit, arrays: list[tuple[ArraySpec, bool]], limit: int
) -> KernelFault:
    """Return the fault of ``report``; ``arrays`` (with: writable) are numbered as in the job, ``limit`` in bytes."""
    kind, detail = report.kind, report.detail
    name = step.name
    if kind == _OUT_OF_BOUNDS:
        spec, writable = arrays[detail[0]]
        return KernelFault("bounds", _bounds(spec, writable, detail[1], detail[2]), pass_name=name)
    if kind == _OUTSIDE:
        verb = _VERBS[detail[2]]
        if verb == _VERBS[3]:
            return KernelFault("bounds", "the kernel jumps to a place that holds no code", pass_name=name)
        if verb == _VERBS[4]:
            words = "the kernel accesses a vector at no multiple of its size, or memory at no possible address"
            return KernelFault("misaligned", words, pass_name=name)
        return KernelFault("bounds", f"the kernel {verb} memory far outside of every array", pass_name=name)
    if kind == _THREADGROUP:
        return KernelFault(
            "bounds", f"the kernel goes past its threadgroup memory: to byte {detail[0]} of it", pass_name=name
        )
    if kind == _STACK:
        return KernelFault("crash", "a thread ran out of private memory (256 KiB): is there recursion?", pass_name=name)
    if kind == _ARITHMETIC:
        return KernelFault("crash", "an integer was divided by zero", pass_name=name)
    if kind == _ILLEGAL:
        return KernelFault("crash", "the kernel reached a point that it may not reach", pass_name=name)
    if kind == _DIVERGED:
        return _divergence(detail, unit, name)
    if kind == _TOO_MUCH_MEMORY:
        return _too_much_memory(detail[0], limit, step)
    if kind == _NOT_LOADED:
        return KernelFault("crash", "the compiled kernel could not be loaded", pass_name=name)
    if kind == _OUT_OF_MEMORY:
        return KernelFault("memory", "this machine has no memory left to run the kernel", pass_name=name)
    if kind == _ASSERTION:
        return _assertion(detail, step, unit)
    if kind == _REFUSED_CALL:
        return KernelFault("sandbox", _refused_call(detail), pass_name=name)
    return KernelFault("crash", "the kernel's process ended before the kernel did", pass_name=name)


def _too_much_memory(size: int, limit: int, step: BoundPass) -> KernelFault:
    declared = storage_in(step.source)
    listed = ", ".join(f"'{name}' in line {line}" for name, line in declared)
    words = f"{size} bytes of threadgroup memory are declared{f' ({listed})' if listed else ''}; the limit is {limit}"
    return KernelFault("memory", words, pass_name=step.name, line=declared[0][1] if declared else None)


def _bounds(spec: ArraySpec, writable: bool, byte: int, access: int) -> str:
    element, size = byte // spec.dtype.itemsize, spec.nbytes // spec.dtype.itemsize
    shape = "x".join(str(extent) for extent in spec.shape) or "scalar"
    if 0 <= byte < spec.nbytes and not writable:
        return f"the kernel writes to the input '{spec.name}' (element {element}), which is read-only"
    return f"the kernel {_VERBS[access]} '{spec.name}' at element {element}; it has {size} ({shape})"


def _refused_call(detail: tuple[int, ...]) -> str:
    number, *packed = detail[:3]
    name = struct.pack("<2q", *packed).rstrip(b"\0").decode("ascii", "replace")
    which = f"'{name}'" if name else f"number {number}" if number >= 0 else "of another kind of processor"
    return f"the kernel made the system call {which}: a kernel may compute and nothing else, so its process was ended"


def _assertion(detail: tuple[int, ...], step: BoundPass, unit: Unit) -> KernelFault:
    line, thread, x, y, z = detail[:5]
    place = unit.locate(line)
    rows = step.source.split("\n")
    asserted = f": `{rows[place[0] - 1].strip()}`" if place and place[0] <= len(rows) else ""
    words = f"an assertion fails in thread {thread} of threadgroup ({x}, {y}, {z}){where(unit, line)}{asserted}"
    return KernelFault("crash", words, pass_name=step.name, line=place[0] if place else None)


def _divergence(detail: tuple[int, ...], unit: Unit, name: str) -> KernelFault:
    what, trail, other, waiting, missing, thread, other_thread = detail[:7]
    place = unit.locate(lines_of(trail)[0])
    line, in_header = place if place else (None, False)
    if what == _THREADS_RETURNED:
        words = (
            f"{waiting} threads wait at the threadgroup_barrier{where(unit, trail)}, but {missing} returned before it "
            f"(thread {other_thread} of the threadgroup, for one): every thread must reach a barrier"
        )
    else:
        words = (
            f"threads wait at two different barriers: thread {thread} of the threadgroup at the one{where(unit, trail)}"
            f", thread {other_thread} at the one{where(unit, other)}: every thread must reach the same barrier"
        )
    return KernelFault("divergence", words, pass_name=name, line=line, in_header=in_header)
