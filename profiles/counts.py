"""What a kernel did, counted: the numbers that a hardware profile turns into a modelled time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PassCounts:
    """Work of one pass over the whole grid (scaled up where only a sample of threadgroups ran).

    Lane counts are per thread; a *simd* count is per simdgroup instruction (all 32 lanes at once).

    - ``device_read_bytes``/``device_write_bytes``: after coalescing each simdgroup access into cache lines.
    - ``read_reuse``/``write_reuse``: of those bytes, what a core's first-level cache saves, by depth: bytes at index n
      are saved when a simdgroup's share of it has more than n lines. What is in none comes back too late for any share.
      For writes that is memory that is written again before it leaves the cache.
    - ``device_blocks``: pieces of lines that the first-level cache moves, ``l1_bytes_per_cycle`` of the profile in each
      cycle: 32 floats side by side are two of 64 bytes, 32 lanes on lines of their own are 32.
    - ``footprint_read_bytes``/``footprint_write_bytes``: distinct bytes touched, what must cross DRAM at least once.
    - ``threadgroup_lane_accesses``: loads and stores of threadgroup memory by lanes; ``threadgroup_bank_cycles``: what
      they cost in cycles of a 32-bank memory, conflicts included, broadcast free.
    - ``registers_per_thread``: 32-bit values that a thread keeps alive, an estimate; 0 where nobody knows.
    - ``barriers``: threadgroup barriers, one for all threads of a group. ``atomics``: lane operations on device memory.
    - ``flops``: lane floating-point operations, a fused multiply-add counted as 2.
    - ``special``: lane evaluations of each special function (``exp2``, ``log2``, ``rsqrt``, ``recip``, ``sqrt``,
      ``sin``, ``tanh`` ...).
    """

    name: str
    threadgroups: int
    threads_per_threadgroup: int
    threadgroup_memory_bytes: int
    device_read_bytes: float
    device_write_bytes: float
    footprint_read_bytes: float
    footprint_write_bytes: float
    device_simd_accesses: float
    threadgroup_lane_accesses: float
    threadgroup_bank_cycles: float
    barriers: float
    simd_shuffles: float
    simd_reductions: float
    flops: float
    special: dict[str, float]
    registers_per_thread: int = 0
    matrix_flops: float = 0.0
    device_blocks: float = 0.0
    read_reuse: tuple[float, ...] = ()
    write_reuse: tuple[float, ...] = ()
    atomics: float = 0.0
    sampled_threadgroups: int = 0
