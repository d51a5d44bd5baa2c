"""From what the runner counted in a sample of threadgroups to the work of the whole pass."""

from __future__ import annotations

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile
from search.devices.simulator.assembly import KINDS
from search.devices.simulator.job import RawCounts

BARE_FRAME_BYTES = 128
"""What a stack frame holds besides arrays and spills: saved registers, return address, alignment."""

LEAST_REGISTERS = 16
"""What a thread needs for positions, addresses and counters; the CPU has as many registers of its own for them."""


def registers_per_thread(frame_bytes: int) -> int:
    """Return about how many 32-bit registers a thread keeps alive, given the CPU's ``frame_bytes`` (0: unknown).

    A GPU keeps in registers what a CPU's compiler keeps in its few registers and on the stack.
    """
    return LEAST_REGISTERS + max(0, frame_bytes - BARE_FRAME_BYTES) // 4 if frame_bytes else 0


def pass_counts(name: str, raw: RawCounts, profile: HardwareProfile, *, registers: int = 0) -> PassCounts:
    """Return the counts of pass ``name`` scaled from the sampled threadgroups to all of them."""
    scale = raw.threadgroups / raw.sampled
    line = profile.cache_line_bytes * scale
    kinds = {kind: count * scale for kind, count in zip(KINDS, raw.kinds, strict=False)}
    flops = kinds.pop("flop")
    return PassCounts(
        name=name,
        threadgroups=raw.threadgroups,
        threads_per_threadgroup=raw.threads,
        threadgroup_memory_bytes=raw.threadgroup_bytes,
        registers_per_thread=registers,
        device_read_bytes=sum(raw.device_read_lines) * line,
        device_write_bytes=sum(raw.device_write_lines) * line,
        footprint_read_bytes=float(raw.footprint_read),
        footprint_write_bytes=float(raw.footprint_written),
        device_simd_accesses=raw.device_accesses * scale,
        threadgroup_lane_accesses=raw.threadgroup_accesses * scale,
        threadgroup_bank_cycles=raw.threadgroup_cycles * scale,
        barriers=raw.barriers * scale,
        simd_shuffles=raw.shuffles * scale,
        simd_reductions=raw.reductions * scale,
        flops=flops,
        special={kind: count for kind, count in kinds.items() if count},
        matrix_flops=raw.matrix_flops * scale,
        device_blocks=raw.device_blocks * scale,
        read_reuse=tuple(lines * line for lines in raw.device_read_lines[:-1]),
        write_reuse=tuple(lines * line for lines in raw.device_write_lines[:-1]),
        atomics=raw.atomics * scale,
        sampled_threadgroups=raw.sampled,
    )
