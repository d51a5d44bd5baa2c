"""From counted work and a hardware profile to seconds: the roofline, and a model with one term for each resource.

The model is the usual bound of a throughput machine. Each resource is busy for *work / rate*; DRAM, the on-chip cache
and the cores work at the same time, so the slowest of the three counts; what waiting remains uncovered is added as
latency, and a dispatch costs what it costs::

    seconds = max(memory, cache, arithmetic + special + simd + threadgroup + l1) + latency + dispatch

The five issue terms add because they go through the same schedulers. That is pessimistic where a core overlaps its
pipes; integer and address arithmetic, which isn't counted, makes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile

ISSUE_TERMS = ("arithmetic", "special", "simd", "threadgroup", "l1")
TERMS = ("memory", "cache", *ISSUE_TERMS, "latency", "dispatch")

LOADS_IN_FLIGHT = 2
"""Device accesses that one simdgroup has under way at a time: an assumption, the next one issued before a use waits."""

HALF_PRECISION = ("float16", "bfloat16")


@dataclass(frozen=True)
class ModelledPass:
    """Modelled seconds of one pass, its terms (seconds by name, every name of `TERMS`), and the largest term's name."""

    seconds: float
    terms: Mapping[str, float]
    bound_by: str


@dataclass(frozen=True)
class Occupancy:
    """How a grid lies on the cores.

    ``cores`` is the number of cores' worth of throughput that the grid can use: fewer threadgroups than cores leave
    cores idle, and so does a last wave that doesn't fill them (41 groups on 40 cores are two rounds: 20.5).
    ``threadgroups`` and ``simdgroups`` are those in flight on one core.
    """

    cores: float
    threadgroups: int
    simdgroups: int


def least_seconds(bytes_moved: int, flops: int, dtype: str, profile: HardwareProfile) -> float:
    """Return the roofline: no kernel that moves these bytes and does these FLOPs can be faster, caches cold.

    ``max(bytes / DRAM bandwidth, FLOPs / peak)`` with specified figures; for 16-bit types the peak is that of the
    matrix units where they are faster.
    """
    per_cycle = profile.fp32_flops
    if dtype in HALF_PRECISION:
        per_cycle = max(profile.fp16_flops, profile.matrix_fp16_flops)
    peak = per_cycle * profile.cores * profile.clock_hz
    return max(bytes_moved / (profile.bandwidth_gbs * 1e9), flops / peak)


def occupancy(counts: PassCounts, profile: HardwareProfile) -> Occupancy:
    """Return how the pass's threadgroups lie on the cores.

    A core holds as many threadgroups as fit its thread slots, its registers (those of two simdgroups are given out at a
    time, and no thread has more than the profile's ``max_registers``) and its threadgroup memory. One that is too large
    for the registers counts with the simdgroups that fit: Metal refuses it, or its compiler spills until it fits, and
    which of the two an estimate of registers can't tell.
    """
    simdgroups = math.ceil(counts.threads_per_threadgroup / profile.simd_width)
    rounds = math.ceil(counts.threadgroups / profile.cores)
    threads = profile.max_threads_per_core
    if counts.registers_per_thread:
        step = 2 * profile.simd_width
        threads = min(threads, profile.register_file_bytes // _register_bytes(counts, profile) // step * step)
    fit = threads // (simdgroups * profile.simd_width)
    if counts.threadgroup_memory_bytes:
        fit = min(fit, profile.threadgroup_memory_per_core_bytes // counts.threadgroup_memory_bytes)
    in_flight = max(1, min(fit, rounds))
    return Occupancy(
        counts.threadgroups / rounds, in_flight, min(in_flight * simdgroups, max(1, threads // profile.simd_width))
    )


def _register_bytes(counts: PassCounts, profile: HardwareProfile) -> int:
    """Return the bytes of a thread's registers."""
    return 4 * min(counts.registers_per_thread, profile.max_registers)


def missed_bytes(counts: PassCounts, profile: HardwareProfile) -> float:
    """Return the device bytes that the cores' first-level caches don't save: what they ask of the on-chip cache.

    The simdgroups in flight on a core share its first-level cache equally, and none profits from another's lines (which
    is pessimistic where they go over the same data in step).
    """
    lie = occupancy(counts, profile)
    size = profile.l1_bytes
    if profile.dynamic_caching:
        in_use = lie.threadgroups * counts.threadgroup_memory_bytes
        size += max(0, profile.threadgroup_memory_per_core_bytes - in_use)
        if counts.registers_per_thread:
            in_use = lie.simdgroups * profile.simd_width * _register_bytes(counts, profile)
            size += max(0, profile.register_file_bytes - in_use)
    total = counts.device_read_bytes + counts.device_write_bytes
    return total - _saved_bytes(counts, size / profile.cache_line_bytes / lie.simdgroups)


def _saved_bytes(counts: PassCounts, lines: float) -> float:
    """Return the bytes that a cache saves of which each simdgroup in flight has ``lines``."""
    reuse = (*enumerate(counts.read_reuse), *enumerate(counts.write_reuse))
    return sum(amount * hit_share(depth, max(1.0, lines)) for depth, amount in reuse if amount)


def hit_share(depth: int, lines: float) -> float:
    """Return how often a line is still there after ``depth`` others were touched, in a cache of ``lines``.

    Always as long as all fit. A loop over more lines than fit would never hit if the least recently used one were
    dropped; GPUs drop one that is close to random, for which the share of misses m is the greatest solution of
    ``m = 1 - exp(-m (depth + 1) / lines)``: a line stays for m * (depth + 1) misses, each of which drops it with a
    chance of 1 / lines.
    """
    ratio = (depth + 1) / lines
    if ratio <= 1.0:
        return 1.0
    misses = 1.0
    for _ in range(64):
        misses = 1.0 - math.exp(-ratio * misses)
    return 1.0 - misses


def dram_bytes(counts: PassCounts, profile: HardwareProfile) -> float:
    """Return the bytes that cross DRAM: the footprint once, and the share of repeated accesses that misses the cache.

    What a simdgroup itself comes back to soon (``read_reuse``, ``write_reuse``) misses the last-level cache as
    `missed_bytes` says of the first, each simdgroup in flight on any core having its part. What else is read again
    belongs to threadgroups in flight, as they start in order: their part of the footprint is the working set, and the
    part of it that the last-level cache can't hold misses.
    """
    lie = occupancy(counts, profile)
    size = profile.slc_mb * 2**20
    footprint = counts.footprint_read_bytes + counts.footprint_write_bytes
    simdgroups = lie.simdgroups * min(profile.cores, counts.threadgroups)
    saved = _saved_bytes(counts, size / profile.cache_line_bytes / simdgroups)
    repeated = max(0.0, counts.device_read_bytes + counts.device_write_bytes - saved - footprint)
    in_flight = lie.threadgroups * profile.cores
    working_set = footprint * min(1.0, in_flight / counts.threadgroups)
    held = min(1.0, size / working_set) if working_set else 1.0
    return footprint + repeated * (1.0 - held)


def modelled_pass(counts: PassCounts, profile: HardwareProfile) -> ModelledPass:
    """Return the modelled time of one pass with its terms; see the module for how they combine.

    - memory: `dram_bytes` over the DRAM bandwidth that a copy reaches.
    - cache: `missed_bytes` over the cache bandwidth of the cores in use. An atomic moves a line of its own.
    - arithmetic: FLOPs over the FP32 rate (FP16 is as fast up to Apple9), matrix FLOPs over that of simdgroup_matrix.
    - special: evaluations over their rates; a function without a rate counts as the slowest that has one.
    - simd: shuffles and reductions, spread over a core's schedulers.
    - threadgroup: cycles of a 32-bank memory, stretched to the words that a core moves per cycle.
    - l1: pieces of cache lines that the first-level cache moves, one a cycle.
    - latency: see `_latency`.
    """
    lie = occupancy(counts, profile)
    core_cycles_per_second = lie.cores * profile.clock_hz
    missed = missed_bytes(counts, profile)
    memory_bytes = dram_bytes(counts, profile)
    slowest = min(profile.special.values())

    memory = memory_bytes / (profile.bandwidth_gbs * 1e9 * profile.dram_efficiency)
    cache_rate = profile.cache_bandwidth_gbs * 1e9 * lie.cores / profile.cores
    cache = (missed + counts.atomics * profile.cache_line_bytes) / cache_rate
    arithmetic = counts.flops / profile.fp32_flops + counts.matrix_flops / profile.simdgroup_matrix_flops
    special = sum(count / profile.special.get(name, slowest) for name, count in counts.special.items())
    simd = counts.simd_shuffles * profile.simd_shuffle_cycles + counts.simd_reductions * profile.simd_reduction_cycles
    threadgroup = counts.threadgroup_bank_cycles * profile.simd_width / profile.threadgroup_words
    terms = {
        "memory": memory,
        "cache": cache,
        "arithmetic": arithmetic / core_cycles_per_second,
        "special": special / core_cycles_per_second,
        "simd": simd / profile.schedulers / core_cycles_per_second,
        "threadgroup": threadgroup / core_cycles_per_second,
        "l1": counts.device_blocks / core_cycles_per_second,
    }
    issue = sum(terms[name] for name in ISSUE_TERMS)
    busy = max(memory, cache, issue)
    access_ns = _access_ns(counts, profile, missed=missed, memory=memory_bytes)
    dependent = issue - terms["l1"]
    terms["latency"] = _latency(counts, profile, lie, dependent=dependent, issue=issue, busy=busy, access_ns=access_ns)
    terms["dispatch"] = profile.dispatch_us * 1e-6
    return ModelledPass(busy + terms["latency"] + terms["dispatch"], terms, max(terms, key=terms.__getitem__))


def _access_ns(counts: PassCounts, profile: HardwareProfile, *, missed: float, memory: float) -> float:
    """Return the mean latency of a device access: the bytes that leave the core, and those that leave the chip."""
    total = counts.device_read_bytes + counts.device_write_bytes
    if not total:
        return profile.l1_latency_ns
    beyond_core, beyond_chip = missed / total, min(1.0, memory / total)
    return (
        profile.l1_latency_ns
        + beyond_core * (profile.cache_latency_ns - profile.l1_latency_ns)
        + beyond_chip * (profile.memory_latency_ns - profile.cache_latency_ns)
    )


def _latency(
    counts: PassCounts,
    profile: HardwareProfile,
    lie: Occupancy,
    *,
    dependent: float,
    issue: float,
    busy: float,
    access_ns: float,
) -> float:
    """Return the seconds of waiting that other threads don't cover.

    - Barriers: each costs its cycles; threadgroups in flight on one core wait at the same time.
    - Dependent instructions: a scheduler with fewer simdgroups than ``dependent_issue_cycles`` issues that much slower
      (not what the first-level cache moves, which is busy meanwhile).
    - Device accesses: by Little's law, accesses x latency / accesses in flight, as far as it exceeds the busy time.
    """
    barriers = counts.barriers * profile.barrier_cycles / (lie.cores * lie.threadgroups * profile.clock_hz)
    per_scheduler = lie.simdgroups / profile.schedulers
    stretch = max(1.0, profile.dependent_issue_cycles / per_scheduler)
    stretched_issue = issue + dependent * (stretch - 1.0)
    waits = counts.device_simd_accesses * access_ns * 1e-9 / (lie.cores * lie.simdgroups * LOADS_IN_FLIGHT)
    return barriers + max(0.0, stretched_issue - busy, waits - busy)
