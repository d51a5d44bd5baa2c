"""From counted work and a hardware profile to seconds: the roofline, and a model with one term for each resource.

The model is the usual bound of a throughput machine. Each resource is busy for *work / rate*; DRAM, the on-chip cache
and the instruction issue of the cores work at the same time, so the slowest of the three counts; what waiting remains
uncovered is added as latency, and a dispatch costs what it costs::

    seconds = max(memory, cache, arithmetic + special + simd + threadgroup) + latency + dispatch

The four issue terms add because they go through the same schedulers. That is pessimistic where a core overlaps its
pipes; integer and address arithmetic, which isn't counted, makes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile

ISSUE_TERMS = ("arithmetic", "special", "simd", "threadgroup")
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

    A core holds as many threadgroups as fit its thread slots and its threadgroup memory; registers, which the profile
    of a compiled kernel alone knows, are left out.
    """
    simdgroups = math.ceil(counts.threads_per_threadgroup / profile.simd_width)
    rounds = math.ceil(counts.threadgroups / profile.cores)
    fit = profile.max_threads_per_core // (simdgroups * profile.simd_width)
    if counts.threadgroup_memory_bytes:
        fit = min(fit, profile.threadgroup_memory_per_core_bytes // counts.threadgroup_memory_bytes)
    in_flight = max(1, min(fit, rounds))
    return Occupancy(counts.threadgroups / rounds, in_flight, in_flight * simdgroups)


def dram_bytes(counts: PassCounts, profile: HardwareProfile) -> float:
    """Return the bytes that cross DRAM: the footprint once, and the share of repeated accesses that misses the cache.

    Threadgroups start in order, so what is read again soon belongs to those in flight: the working set is their part of
    the footprint. Of the repeated bytes, the part of the working set that the last-level cache can't hold misses.
    """
    footprint = counts.footprint_read_bytes + counts.footprint_write_bytes
    repeated = max(0.0, counts.device_read_bytes + counts.device_write_bytes - footprint)
    in_flight = occupancy(counts, profile).threadgroups * profile.cores
    working_set = footprint * min(1.0, in_flight / counts.threadgroups)
    held = min(1.0, profile.slc_mb * 2**20 / working_set) if working_set else 1.0
    return footprint + repeated * (1.0 - held)


def modelled_pass(counts: PassCounts, profile: HardwareProfile) -> ModelledPass:
    """Return the modelled time of one pass with its terms; see the module for how they combine.

    - memory: `dram_bytes` over the DRAM bandwidth that a copy reaches.
    - cache: coalesced device bytes over the cache bandwidth of the cores in use. An atomic moves a line of its own.
    - arithmetic: FLOPs over the FP32 rate (FP16 is as fast up to Apple9), matrix FLOPs over that of simdgroup_matrix.
    - special: evaluations over their rates; a function without a rate counts as the slowest that has one.
    - simd: shuffles and reductions, spread over a core's schedulers.
    - threadgroup: cycles of a 32-bank memory, stretched to the words that a core moves per cycle.
    - latency: see `_latency`.
    """
    lie = occupancy(counts, profile)
    core_cycles_per_second = lie.cores * profile.clock_hz
    device_bytes = counts.device_read_bytes + counts.device_write_bytes
    memory_bytes = dram_bytes(counts, profile)
    slowest = min(profile.special.values())

    memory = memory_bytes / (profile.bandwidth_gbs * 1e9 * profile.dram_efficiency)
    cache_rate = profile.cache_bandwidth_gbs * 1e9 * lie.cores / profile.cores
    cache = (device_bytes + counts.atomics * profile.cache_line_bytes) / cache_rate
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
    }
    issue = sum(terms[name] for name in ISSUE_TERMS)
    busy = max(memory, cache, issue)
    missing = min(1.0, memory_bytes / device_bytes) if device_bytes else 0.0
    terms["latency"] = _latency(counts, profile, lie, issue=issue, busy=busy, missing=missing)
    terms["dispatch"] = profile.dispatch_us * 1e-6
    return ModelledPass(busy + terms["latency"] + terms["dispatch"], terms, max(terms, key=terms.__getitem__))


def _latency(
    counts: PassCounts, profile: HardwareProfile, lie: Occupancy, *, issue: float, busy: float, missing: float
) -> float:
    """Return the seconds of waiting that other threads don't cover.

    - Barriers: each costs its cycles; threadgroups in flight on one core wait at the same time.
    - Dependent instructions: a scheduler with fewer simdgroups than ``dependent_issue_cycles`` issues that much slower.
    - Device accesses: by Little's law, accesses x latency / accesses in flight, as far as it exceeds the busy time.
    """
    barriers = counts.barriers * profile.barrier_cycles / (lie.cores * lie.threadgroups * profile.clock_hz)
    per_scheduler = lie.simdgroups / profile.schedulers
    stretched_issue = issue * max(1.0, profile.dependent_issue_cycles / per_scheduler)
    access_ns = profile.cache_latency_ns + missing * (profile.memory_latency_ns - profile.cache_latency_ns)
    waits = counts.device_simd_accesses * access_ns * 1e-9 / (lie.cores * lie.simdgroups * LOADS_IN_FLIGHT)
    return barriers + max(0.0, stretched_issue - busy, waits - busy)
