"""From what the runner counted in a sample of threadgroups to the work of the whole pass."""

from __future__ import annotations

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile
from search.devices.simulator.assembly import KINDS
from search.devices.simulator.job import RawCounts


def pass_counts(name: str, raw: RawCounts, profile: HardwareProfile) -> PassCounts:
    """Return the counts of pass ``name`` scaled from the sampled threadgroups to all of them."""
    scale = raw.threadgroups / raw.sampled
    kinds = {kind: count * scale for kind, count in zip(KINDS, raw.kinds, strict=False)}
    flops = kinds.pop("flop")
    return PassCounts(
        name=name,
        threadgroups=raw.threadgroups,
        threads_per_threadgroup=raw.threads,
        threadgroup_memory_bytes=raw.threadgroup_bytes,
        device_read_bytes=raw.device_read_lines * profile.cache_line_bytes * scale,
        device_write_bytes=raw.device_write_lines * profile.cache_line_bytes * scale,
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
        atomics=raw.atomics * scale,
        sampled_threadgroups=raw.sampled,
    )
