"""What the checked mode found, in words that a person or a model can act on.

The layout of a finding is that of ``runtime/findings.h``.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from search.devices.base import CheckReport, KernelFault
from search.devices.simulator.trails import lines_of, parting, where
from search.devices.simulator.unit import Unit
from search.kernels.program import ArraySpec, BoundPass

MAX_FINDINGS = 64
SIMD_WIDTH = 32

_RACE, _OUTSIDE, _UNWRITTEN, _MISALIGNED, _ABSENT_LANE, _PARTIAL, _RETURNED, _NAMED, _INDEX = range(1, 10)
_WRITE_WRITE, _WRITE_READ = 0, 1
_HEAD = struct.Struct("<3Q")
_FINDING = struct.Struct("<9Q2q8Q40s")
_INDEXED = re.compile(r"\b([A-Za-z_]\w*)\s*\[")
_SHARED = re.compile(r"\bthreadgroup\b[^;{}()=*&]*;")
_LOOP = re.compile(r"\b(for|while|do)\b")
FINDINGS_BYTES = _HEAD.size + MAX_FINDINGS * _FINDING.size


@dataclass(frozen=True)
class Finding:
    """One finding as the runner left it: places are trails of lines of the compiled text, positions are numbers."""

    kind: int
    step: int
    place: int
    other_place: int
    thread: int
    other_thread: int
    group: int
    other_group: int
    detail: int
    array: int
    byte: int
    size: int
    array_bytes: int
    element_bytes: int
    row_bytes: int
    before: int
    after: int
    settled: int
    unfenced: int
    name: str

    @property
    def line(self) -> int:
        """Line of the compiled text that it happened in."""
        return lines_of(self.place)[0]

    @property
    def other_line(self) -> int:
        """Line of the earlier access of a race."""
        return lines_of(self.other_place)[0]

    @property
    def harmless(self) -> bool:
        """Whether it is a race of two writes of one value."""
        written = self.kind == _RACE and self.detail == _WRITE_WRITE and self.settled
        return bool(written) and self.before == self.after


@dataclass(frozen=True)
class Findings:
    """What was found, and how many threadgroups of how many ran in the time there was."""

    found: tuple[Finding, ...]
    groups_run: int
    groups: int


def read_findings(memory: mmap.mmap, offset: int) -> Findings:
    """Read what the runner left at ``offset`` of the shared memory."""
    count, groups_run, groups = _HEAD.unpack_from(memory, offset)
    found = []
    for index in range(min(count, MAX_FINDINGS)):
        *numbers, name = _FINDING.unpack_from(memory, offset + _HEAD.size + index * _FINDING.size)
        values = (*numbers, name.split(b"\0")[0].decode("utf-8", "replace"))
        found.append(Finding(*values))
    return Findings(tuple(found), groups_run, groups)


def reports_of(
    findings: Findings, steps: Sequence[BoundPass], units: Sequence[Unit], arrays: Sequence[ArraySpec]
) -> tuple[CheckReport, ...]:
    """Return each finding in words; ``arrays`` are numbered as in the job.

    What a race lets be read before it is written is told as the race alone, an index past an array's type as the access
    past the array, if it was one.
    """
    found = [finding for finding in findings.found if finding.step < len(steps)]
    outside = {(entry.step, entry.line) for entry in found if entry.kind == _OUTSIDE}
    raced = {(entry.step, line) for entry in found if entry.kind == _RACE for line in (entry.line, entry.other_line)}
    return tuple(
        _Writer(finding, steps[finding.step], units[finding.step], arrays).report()
        for finding in found
        if (finding.kind, (finding.step, finding.line) in raced) != (_UNWRITTEN, True)
        and (finding.kind, (finding.step, finding.line) in outside) != (_INDEX, True)
    )


@dataclass(frozen=True)
class _Writer:
    finding: Finding
    step: BoundPass
    unit: Unit
    arrays: Sequence[ArraySpec]

    def report(self) -> CheckReport:
        words = {
            _RACE: self._race,
            _OUTSIDE: self._outside,
            _UNWRITTEN: self._unwritten,
            _MISALIGNED: self._misaligned,
            _ABSENT_LANE: self._absent_lane,
            _PARTIAL: self._partial,
            _INDEX: self._index,
            _RETURNED: self._returned,
            _NAMED: self._named,
        }
        stage, message = words[self.finding.kind]()
        place = self.unit.locate(self.finding.line)
        other = self.unit.locate(self.finding.other_line) if self.finding.kind == _RACE else None
        return CheckReport(
            stage=stage,
            message=message,
            pass_name=self.step.name,
            line=place[0] if place else None,
            in_header=place[1] if place else False,
            other_line=other[0] if other else None,
            other_in_header=other[1] if other else False,
            certain=self._certain(),
        )

    def _certain(self) -> bool:
        """Whether it is an error whatever came of it."""
        if self.finding.kind == _INDEX:
            return not self._indexed_shared()
        return self.finding.kind not in (_ABSENT_LANE, _RETURNED) and not self.finding.harmless

    def _race(self) -> tuple[str, str]:
        found = self.finding
        earlier = "reads" if found.detail not in (_WRITE_WRITE, _WRITE_READ) else "writes"
        later = "reads" if found.detail == _WRITE_READ else "writes"
        here, there = self._line(found.place), self._line(found.other_place)
        apart = found.group != found.other_group
        if apart:
            who = f"{self._thread(found.other_thread, found.other_group)} {earlier} it{there}, "
            who += f"{self._thread(found.thread, found.group)} {later} it{here}"
        else:
            who = (
                f"{self._thread(found.other_thread)} {earlier} it{there}, {self._thread(found.thread)} {later} it{here}"
            )
            if self._groups() > 1:
                who += f" (threadgroup {self._group(found.group)})"
        return (
            "race",
            f"data race on {self._element()}: {who}, and nothing orders the two. {self._values()}{self._cure(apart)}",
        )

    def _values(self) -> str:
        found = self.finding
        if found.detail != _WRITE_WRITE or not found.settled:
            return ""
        if found.harmless:
            return "Both write the same value, which does no harm as long as it is so. "
        before, after = self._value(found.before), self._value(found.after)
        return f"The value was {before} and becomes {after}: which one stays is left to chance. "

    def _cure(self, apart: bool) -> str:
        found = self.finding
        shared = found.array < 0
        if apart:
            return (
                "Threadgroups run in any order and at once: give each its own elements, use an atomic operation, "
                "or split the kernel in two passes."
            )
        flag = "mem_flags::mem_threadgroup" if shared else "mem_flags::mem_device"
        if found.unfenced:
            kind = "threadgroup" if shared else "device"
            return f"The threadgroup_barrier{self._line(found.unfenced)} does not order {kind} memory: give it {flag}."
        x, y, z = self.step.threadgroup
        barrier = "simdgroup_barrier" if shared and x * y * z <= SIMD_WIDTH else "threadgroup_barrier"
        first, second = parting(found.other_place, found.place)
        if first == second:
            if found.detail == _WRITE_WRITE:
                return "Let one thread write it, or give each thread its own element."
            return f"Read into a variable, put {barrier}({flag}) there, and write after it."
        low, high = sorted((first, second))
        cure = f"Put {barrier}({flag}){self._line(low, 'between')} and{self._line(high, '')}"
        if self._loops(low):
            cure += ", or at the end of the loop around them"
        if found.thread // SIMD_WIDTH == found.other_thread // SIMD_WIDTH and barrier == "threadgroup_barrier":
            cure += "; simdgroup_barrier is enough if only lanes of one simdgroup share it"
        return cure + "."

    def _loops(self, line: int) -> bool:
        """Whether a loop begins before or in ``line``: what stands later in it may run earlier."""
        place = self.unit.locate(line)
        if place is None:
            return False
        rows = (self.step.header if place[1] else self.step.source).split("\n")
        return any(_LOOP.search(row) for row in rows[: place[0]])

    def _outside(self) -> tuple[str, str]:
        found = self.finding
        verb = "writes" if found.detail else "reads"
        if not found.array_bytes:
            return (
                "bounds",
                f"{self._thread()} {verb} memory of no array{self._line(found.place)}{self._text(found.line)}",
            )
        size = found.array_bytes // self._element_bytes()
        who = f"{self._thread(found.thread, found.group)} {verb} {self._element()}{self._line(found.place)}"
        hint = "Compare the index with the size before the access."
        if found.array < 0:
            return "bounds", f"{who}; it has {size} elements{self._text(found.line)}. {hint}"
        spec = self.arrays[found.array]
        shape = "x".join(map(str, spec.shape)) or "scalar"
        what = "input" if spec.name in {entry.name for entry in self.step.inputs} else "array"
        return "bounds", f"{who}; the {what} has {size} elements ({shape}){self._text(found.line)}. {hint}"

    def _index(self) -> tuple[str, str]:
        found = self.finding
        kind = found.name.strip("'").replace(" [", "[")
        what = f"{self._thread(found.thread, found.group)} uses the index {found.byte} of {self._array()}`{kind}`"
        end = f"{self._line(found.place)}{self._text(found.line)}."
        if self._indexed_shared():
            return "bounds", f"{what}{end} What lies there is the next row: right if that is what is meant."
        return "bounds", f"{what}{end} Nothing of it lies there: compare the index with the size before."

    def _array(self) -> str:
        arrays = {spec.name for spec in (*self.step.inputs, *self.step.outputs)}
        names = set(_INDEXED.findall(self._row(self.finding.line))) - arrays
        return f"'{names.pop()}', a " if len(names) == 1 else "a "

    def _indexed_shared(self) -> bool:
        """Whether the line indexes an array in threadgroup memory, whose rows lie one behind the other."""
        shared = {name for text in _SHARED.findall(self.step.source) for name in _INDEXED.findall(text)}
        return bool(shared & set(_INDEXED.findall(self._row(self.finding.line))))

    def _unwritten(self) -> tuple[str, str]:
        found = self.finding
        what = f"{self._element()}{self._line(found.place)}"
        return "uninitialised", (
            f"{self._thread(found.thread, found.group)} reads {what}, which no thread of its threadgroup has written: "
            f"threadgroup memory begins with any contents{self._text(found.line)}. "
            "Write it first, for every element that is read."
        )

    def _misaligned(self) -> tuple[str, str]:
        found = self.finding
        what = f"{found.detail} bytes at once at {self._element()}{self._line(found.place)}"
        return "misaligned", (
            f"{self._thread(found.thread, found.group)} accesses {what}, "
            f"which is no multiple of {found.detail} bytes into memory{self._text(found.line)}. "
            "Use a packed type, or scalar accesses where rows don't begin at such a multiple."
        )

    def _absent_lane(self) -> tuple[str, str]:
        found = self.finding
        what = f"the value of lane {found.detail}{self._line(found.place)}"
        return "divergence", (
            f"lane {found.thread % SIMD_WIDTH} takes {what}, but that lane {self._gone(found.detail)}: "
            f"what comes is undefined{self._text(found.line)}. "
            "Let all lanes reach the operation, and choose afterwards."
        )

    def _partial(self) -> tuple[str, str]:
        found = self.finding
        active, live = found.detail.bit_count(), found.other_thread.bit_count()
        absent = next(lane for lane in range(SIMD_WIDTH) if not found.detail >> lane & 1)
        return "divergence", (
            f"{active} lanes of simdgroup {found.thread // SIMD_WIDTH} reach the operation{self._line(found.place)}, "
            f"{live} are alive; lane {absent} {self._gone(absent)}{self._text(found.line)}. "
            "Every lane of the simdgroup must reach it."
        )

    def _gone(self, lane: int) -> str:
        """Say where a lane is that takes no part."""
        lives = self.finding.other_thread >> lane & 1
        return "is elsewhere (another branch)" if lives else "has returned or never was"

    def _returned(self) -> tuple[str, str]:
        found = self.finding
        return "divergence", (
            f"threads wait at the threadgroup_barrier{self._line(found.place)} and {found.detail} others never come: "
            f"thread {found.other_thread}, for one, had returned before it{self._text(found.line)}. CUDA's hardware "
            "takes them for arrived, other GPUs may wait forever: let every thread reach it and guard the work instead."
        )

    def _named(self) -> tuple[str, str]:
        found = self.finding
        warp, lane = divmod(found.thread, SIMD_WIDTH)
        who = f"lane {lane} of simdgroup {warp}"
        if not found.detail >> lane & 1:
            return "divergence", (
                f"{who} calls this{self._line(found.place)} with a mask that does not name it{self._text(found.line)}. "
                "Name every lane that calls it."
            )
        absent = found.detail & ~found.other_thread
        first = next(lane for lane in range(SIMD_WIDTH) if absent >> lane & 1)
        return "divergence", (
            f"the mask of {who} names {found.detail.bit_count()} live lanes{self._line(found.place)}, and "
            f"{absent.bit_count()} of them do not come: lane {first}, for one, is elsewhere (another branch)"
            f"{self._text(found.line)}. The result is undefined: let all named lanes reach it, or name those that do."
        )

    def _line(self, trail: int, preposition: str = "in") -> str:
        return where(self.unit, trail, preposition)

    def _text(self, line: int) -> str:
        row = self._row(line)
        return f": `{row}`" if row else ""

    def _row(self, line: int) -> str:
        """Return the kernel's text in ``line``."""
        place = self.unit.locate(line)
        if place is None:
            return ""
        rows = (self.step.header if place[1] else self.step.source).split("\n")
        return rows[place[0] - 1].strip() if place[0] <= len(rows) else ""

    def _thread(self, thread: int | None = None, group: int | None = None) -> str:
        number = self.finding.thread if thread is None else thread
        place = f"simdgroup {number // SIMD_WIDTH}, lane {number % SIMD_WIDTH}"
        if group is not None and self._groups() > 1:
            place += f"; threadgroup {self._group(group)}"
        return f"thread {number} ({place})"

    def _extents(self) -> list[int]:
        return [-(-grid // min(group, grid)) for grid, group in zip(self.step.grid, self.step.threadgroup, strict=True)]

    def _groups(self) -> int:
        x, y, z = self._extents()
        return x * y * z

    def _group(self, index: int) -> str:
        x, y, _ = self._extents()
        return f"({index % x}, {index // x % y}, {index // x // y})"

    def _element_bytes(self) -> int:
        found = self.finding
        return found.element_bytes or (self.arrays[found.array].dtype.itemsize if found.array >= 0 else 1)

    def _element(self) -> str:
        found = self.finding
        name = found.name if found.array < 0 else self.arrays[found.array].name
        if not name:
            return "threadgroup memory"
        element = self._element_bytes()
        if found.array < 0 and found.row_bytes > element and 0 <= found.byte < found.array_bytes:
            row, rest = divmod(found.byte, found.row_bytes)
            return f"{name}[{row}][{rest // element}]"
        return f"{name}[{found.byte // element}]"

    def _value(self, bits: int) -> str:
        found = self.finding
        kind = {2: "<e", 4: "<f", 8: "<d"}.get(found.size)
        if found.array >= 0:
            dtype = self.arrays[found.array].dtype
            if dtype.floating and dtype.name == "bfloat16":
                return f"{struct.unpack('<f', (bits << 16).to_bytes(4, 'little'))[0]:g}"
            if not dtype.floating:
                return str(bits)
        if kind is None:
            return str(bits)
        value = struct.unpack(kind, bits.to_bytes(found.size, "little"))[0]
        return f"{value:g}" if found.array >= 0 else f"{value:g} (as a float; {bits:#x})"


def report_of(fault: KernelFault) -> CheckReport:
    """Return the fault that ended a checked run as one of its reports."""
    return CheckReport(fault.stage, fault.message, fault.pass_name, fault.line, fault.in_header)
