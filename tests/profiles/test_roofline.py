"""The model of a pass, on a made-up GPU whose figures make each term a number that one can work out by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile, load_profile
from profiles.roofline import TERMS, dram_bytes, hit_share, least_seconds, missed_bytes, modelled_pass, occupancy

MIB = 2**20

GPU = HardwareProfile(
    name="made-up",
    title="Made up",
    family="none",
    cores=10,
    clock_ghz=1.0,
    bandwidth_gbs=100.0,
    dram_efficiency=0.5,
    cache_bandwidth_gbs=320.0,
    cache_latency_ns=100.0,
    memory_latency_ns=300.0,
    slc_mb=1.0,
    cache_line_bytes=128,
    l1_bytes=8192,
    l1_bytes_per_cycle=64,
    l1_latency_ns=50.0,
    dynamic_caching=False,
    threadgroup_memory_bytes=32768,
    threadgroup_memory_per_core_bytes=65536,
    fp32_flops=256.0,
    fp16_flops=512.0,
    matrix_fp16_flops=1024.0,
    simdgroup_matrix_flops=128.0,
    special={"exp2": 32.0, "sin": 8.0},
    simd_shuffle_cycles=2.0,
    simd_reduction_cycles=16.0,
    schedulers=4,
    dependent_issue_cycles=4.0,
    threadgroup_words=16.0,
    barrier_cycles=20.0,
    max_threads_per_core=1024,
    register_file_bytes=131072,
    max_registers=128,
    dispatch_us=5.0,
    simd_width=32,
    confidence={},
)

NOTHING = PassCounts(
    name="pass",
    threadgroups=100,
    threads_per_threadgroup=256,
    threadgroup_memory_bytes=0,
    device_read_bytes=0.0,
    device_write_bytes=0.0,
    footprint_read_bytes=0.0,
    footprint_write_bytes=0.0,
    device_simd_accesses=0.0,
    threadgroup_lane_accesses=0.0,
    threadgroup_bank_cycles=0.0,
    barriers=0.0,
    simd_shuffles=0.0,
    simd_reductions=0.0,
    flops=0.0,
    special={},
)


def work(**counts: Any) -> PassCounts:
    return dataclasses.replace(NOTHING, **counts)


def copy_of(bytes_each_way: float, **counts: Any) -> PassCounts:
    return work(
        device_read_bytes=bytes_each_way,
        device_write_bytes=bytes_each_way,
        footprint_read_bytes=bytes_each_way,
        footprint_write_bytes=bytes_each_way,
        **counts,
    )


@pytest.mark.parametrize(
    ("counts", "term", "milliseconds"),
    [
        (copy_of(50e6), "memory", 2.0),  # 100 MB at half of 100 GB/s
        (copy_of(50e6), "cache", 0.3125),  # 100 MB at 320 GB/s
        (work(atomics=2.5e6), "cache", 1.0),  # a line of 128 bytes each: 320 MB
        (work(flops=2.56e9), "arithmetic", 1.0),  # 1e7 core cycles, 10 cores at 1 GHz
        (work(matrix_flops=1.28e9), "arithmetic", 1.0),
        (work(special={"exp2": 3.2e8}), "special", 1.0),
        (work(special={"exp2": 3.2e8, "sin": 8e7}), "special", 2.0),
        (work(special={"erf": 8e7}), "special", 1.0),  # no rate of its own: as slow as the slowest, sin
        (work(simd_shuffles=1e7), "simd", 0.5),  # 2e7 scheduler cycles on 40 schedulers
        (work(simd_reductions=1e7), "simd", 4.0),
        (work(threadgroup_bank_cycles=5e6), "threadgroup", 1.0),  # 16 of 32 words a cycle: twice as long
        (work(device_blocks=1e7), "l1", 1.0),  # one a cycle on each of 10 cores at 1 GHz
        (work(barriers=1e6), "latency", 0.5),  # 2e7 cycles, 10 cores with 4 threadgroups each
        (NOTHING, "dispatch", 0.005),
    ],
)
def test_each_term_is_work_over_rate(counts, term, milliseconds):
    modelled = modelled_pass(counts, GPU)
    assert set(modelled.terms) == set(TERMS)
    assert modelled.terms[term] * 1e3 == pytest.approx(milliseconds)
    if milliseconds >= 0.5:
        assert modelled.bound_by == term


def test_issue_terms_add_and_hide_behind_memory_when_it_is_slower():
    issue = {"flops": 2.56e9, "special": {"exp2": 3.2e8}, "simd_shuffles": 1e7, "threadgroup_bank_cycles": 5e6}
    assert modelled_pass(work(**issue), GPU).seconds * 1e3 == pytest.approx(1 + 1 + 0.5 + 1 + 0.005)
    hidden = modelled_pass(copy_of(100e6, **issue), GPU)
    assert hidden.seconds * 1e3 == pytest.approx(4 + 0.005)
    assert hidden.bound_by == "memory"


def test_fewer_threadgroups_than_cores_leave_cores_idle():
    assert modelled_pass(work(flops=2.56e9, threadgroups=5), GPU).terms["arithmetic"] * 1e3 == pytest.approx(2.0)
    assert modelled_pass(copy_of(50e6, threadgroups=5), GPU).terms["cache"] * 1e3 == pytest.approx(0.625)


def test_a_last_wave_of_one_threadgroup_nearly_doubles_the_time():
    full, spilled = (modelled_pass(work(flops=2.56e8 * n, threadgroups=n), GPU) for n in (10, 11))
    assert full.terms["arithmetic"] * 1e3 == pytest.approx(1.0)
    assert spilled.terms["arithmetic"] * 1e3 == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("counts", "cores", "threadgroups", "simdgroups"),
    [
        (work(), 10.0, 4, 32),  # 1024 threads a core / 256
        (work(threadgroup_memory_bytes=32768), 10.0, 2, 16),  # 64 KiB a core / 32 KiB
        (work(threadgroup_memory_bytes=32768, threadgroups=10), 10.0, 1, 8),  # no second one to hold
        (work(threadgroups=7), 7.0, 1, 8),
        (work(threadgroups=15), 7.5, 2, 16),
        (work(threads_per_threadgroup=40), 10.0, 10, 20),  # 40 threads take two simdgroups: 64 slots, 16 would fit
        (work(threads_per_threadgroup=1024), 10.0, 1, 32),
    ],
)
def test_occupancy_follows_thread_slots_threadgroup_memory_and_the_grid(counts, cores, threadgroups, simdgroups):
    lie = occupancy(counts, GPU)
    assert (lie.cores, lie.threadgroups, lie.simdgroups) == (cores, threadgroups, simdgroups)


# Threads of one threadgroup at most, by registers of 16 bits: Mesa's table for Apple's GPUs (agx_performance.c).
MESA = [(104, 1024), (112, 896), (128, 832), (136, 768), (144, 704), (160, 640), (184, 576), (208, 512), (232, 448)]


@pytest.mark.parametrize(("halves", "threads"), [*MESA, (256, 384)])
def test_registers_leave_as_many_threads_as_mesa_s_driver_knows(halves, threads):
    counts = work(threads_per_threadgroup=32, threadgroups=10_000_000, registers_per_thread=halves // 2)
    assert occupancy(counts, load_profile("apple-m1")).simdgroups * 32 == threads


@pytest.mark.parametrize(
    ("registers", "simdgroups"),
    [(0, 32), (32, 32), (33, 24), (64, 16), (128, 8), (500, 8)],  # 131072 bytes: 1024 threads of 32, 512 of 64 ...
)
def test_occupancy_falls_with_registers_down_to_as_many_as_a_thread_can_have(registers, simdgroups):
    assert occupancy(work(registers_per_thread=registers), GPU).simdgroups == simdgroups


def test_a_threadgroup_too_large_for_the_registers_counts_with_the_simdgroups_that_fit():
    # 128 registers leave room for 256 threads; a threadgroup of 512 has twice as many.
    lie = occupancy(work(threads_per_threadgroup=512, registers_per_thread=128), GPU)
    assert (lie.threadgroups, lie.simdgroups) == (1, 8)


def test_dynamic_caching_makes_a_cache_of_free_registers():
    # 8 simdgroups of 64 registers take 64 KiB, half of the file: 64 lines + 512 (threadgroup memory) + 512, 136 each.
    dynamic = dataclasses.replace(GPU, dynamic_caching=True)
    reread = work(threadgroups=10, registers_per_thread=64, device_read_bytes=10.0, read_reuse=(*[0.0] * 135, 8.0))
    assert missed_bytes(reread, dynamic) == pytest.approx(2.0)
    assert missed_bytes(dataclasses.replace(reread, registers_per_thread=72), dynamic) > 2.1


def test_one_simdgroup_a_core_waits_for_its_own_results():
    # A quarter simdgroup a scheduler where four hide the latency: 16 times as long, 15 of them waiting.
    modelled = modelled_pass(work(flops=2.56e9, threadgroups=10, threads_per_threadgroup=32), GPU)
    assert modelled.terms["latency"] * 1e3 == pytest.approx(15.0)
    assert modelled.bound_by == "latency"


def test_few_loads_in_flight_leave_memory_waiting():
    # 10 simdgroups with 2 loads each under way, 300 ns to DRAM: 1e6 loads take 15 ms, of which memory is busy 0.0256.
    lonely = copy_of(64e6 / 100, threadgroups=10, threads_per_threadgroup=32, device_simd_accesses=1e6)
    modelled = modelled_pass(lonely, GPU)
    assert modelled.terms["latency"] * 1e3 == pytest.approx(15.0 - 0.0256)
    crowded = dataclasses.replace(lonely, threadgroups=320)
    assert modelled_pass(crowded, GPU).terms["latency"] * 1e3 == pytest.approx(15.0 / 32 - 0.0256)


def test_loads_that_hit_the_cache_wait_less():
    # All bytes leave the core, a tenth comes from DRAM: 100 + 0.1 * 200 = 120 ns, so 6 ms, less what memory and cache
    # are busy.
    reread = work(
        device_read_bytes=10e5,
        footprint_read_bytes=1e5,
        threadgroups=10,
        threads_per_threadgroup=32,
        device_simd_accesses=1e6,
    )
    busy = max(1e5 / 50e9, 10e5 / 320e9)
    assert modelled_pass(reread, GPU).terms["latency"] == pytest.approx(6e-3 - busy)


def test_loads_that_hit_the_core_s_own_cache_wait_least():
    # One simdgroup a core has all 64 lines, so 9 of 10 bytes come back in time: 50 + 0.1 * 50 + 0.1 * 200 = 75 ns.
    reread = work(
        device_read_bytes=10e5,
        footprint_read_bytes=1e5,
        read_reuse=(*[0.0] * 40, 9e5),
        threadgroups=10,
        threads_per_threadgroup=32,
        device_simd_accesses=1e6,
    )
    assert modelled_pass(reread, GPU).terms["latency"] == pytest.approx(75e-9 * 1e6 / 20 - 1e5 / 50e9)


@pytest.mark.parametrize(
    ("depth", "lines", "share"),
    [(0, 1.0, 1.0), (9, 10.0, 1.0), (10, 1000.0, 1.0), (19, 10.0, 0.2032), (29, 10.0, 0.0595), (99, 1.0, 0.0)],
)
def test_a_line_stays_as_long_as_all_that_are_touched_meanwhile_fit_and_ever_less_likely_beyond(depth, lines, share):
    # Twice as many lines as fit: m = 1 - exp(-2 m) has the solution 0.7968; three times: 0.9405.
    assert hit_share(depth, lines) == pytest.approx(share, abs=1e-4)


def test_simdgroups_in_flight_share_the_first_level_cache():
    # 64 lines for the 32 simdgroups of 4 threadgroups of 256: two each. Four of eight saved bytes need more than that:
    # those behind three lines are 4/2 times too many (0.2032 of them hit), those behind 200 don't hit at all.
    reread = work(device_read_bytes=10.0, read_reuse=(1.0, 1.0, 0.0, 2.0, *[0.0] * 196, 2.0), write_reuse=(0.0, 2.0))
    reread = dataclasses.replace(reread, device_write_bytes=2.0)
    assert missed_bytes(reread, GPU) == pytest.approx(12.0 - 4.0 - 2 * 0.2032, abs=1e-3)
    alone = dataclasses.replace(reread, threadgroups=10, threads_per_threadgroup=32)
    assert missed_bytes(alone, GPU) == pytest.approx(12.0 - 6.0 - 2 * hit_share(200, 64.0))


def test_dynamic_caching_makes_a_cache_of_free_threadgroup_memory():
    # 64 lines and 512 that no threadgroup uses, for 32 simdgroups: 18 each. With 32 KiB a threadgroup nothing is free.
    dynamic = dataclasses.replace(GPU, dynamic_caching=True)
    reread = work(device_read_bytes=10.0, read_reuse=(*[0.0] * 17, 8.0))
    assert missed_bytes(reread, GPU) > 9.9
    assert missed_bytes(reread, dynamic) == pytest.approx(2.0)
    full = dataclasses.replace(reread, threadgroup_memory_bytes=32768)
    assert missed_bytes(full, dynamic) == missed_bytes(full, GPU)


def test_what_a_simdgroup_comes_back_to_itself_stays_in_the_last_level_cache():
    # 10 MiB in flight don't fit 1 MiB, but what 80 simdgroups walk over again at depth 40 does: 8192 lines, 102 each.
    reread = work(
        device_read_bytes=30 * MIB, footprint_read_bytes=10 * MIB, threadgroups=10, read_reuse=(*[0.0] * 40, 20.0 * MIB)
    )
    assert dram_bytes(reread, GPU) == pytest.approx(10 * MIB)


def test_what_is_read_again_misses_as_far_as_the_working_set_exceeds_the_cache():
    # All ten threadgroups run at once over 10 MiB with 1 MiB of cache: nine tenths of the 20 MiB read again miss.
    reread = work(device_read_bytes=30 * MIB, footprint_read_bytes=10 * MIB, threadgroups=10)
    assert dram_bytes(reread, GPU) == pytest.approx(28 * MIB)


def test_threadgroups_in_flight_share_what_they_read_again():
    # 100 threadgroups, 10 at a time (64 KiB each): a tenth of 10 MiB is in use, which the cache holds.
    reread = work(device_read_bytes=30 * MIB, footprint_read_bytes=10 * MIB, threadgroup_memory_bytes=65536)
    assert dram_bytes(reread, GPU) == pytest.approx(10 * MIB)


@pytest.mark.parametrize(
    ("bytes_moved", "flops", "dtype", "seconds"),
    [
        (10**9, 0, "float32", 0.01),
        (0, 2_560_000_000, "float32", 1e-3),
        (0, 10_240_000_000, "float16", 1e-3),
        (0, 10_240_000_000, "bfloat16", 1e-3),
        (10**6, 2_560_000_000, "float32", 1e-3),
        (10**9, 2_560_000_000, "float32", 0.01),
    ],
)
def test_the_roofline_is_the_slower_of_bytes_and_flops(bytes_moved, flops, dtype, seconds):
    assert least_seconds(bytes_moved, flops, dtype, GPU) == pytest.approx(seconds)


# Milliseconds of MLX on real GPUs (mlx-benchmark, public), each with about 0.2 ms of evaluation in it.
COPIES = [("apple-m1", 17.6), ("apple-m2", 11.35), ("apple-m3-max", 3.12), ("apple-m4", 11.4), ("apple-m4-max", 2.6)]
SOFTMAXES = [("apple-m1", 9.31, 13.33), ("apple-m2", 6.16, 8.8), ("apple-m3", 6.32, 8.85), ("apple-m3-pro", 4.25, 6.0)]
EVALUATION_MS = 0.2


@pytest.mark.parametrize(("name", "measured_ms"), COPIES)
def test_a_copy_takes_about_what_it_takes_on_the_real_gpu(name, measured_ms):
    elements = 128_000_000
    counts = copy_of(
        4.0 * elements, threadgroups=elements // 1024, threads_per_threadgroup=256, device_simd_accesses=elements / 64
    )
    modelled_ms = modelled_pass(counts, load_profile(name)).seconds * 1e3 + EVALUATION_MS
    assert modelled_ms == pytest.approx(measured_ms, rel=0.2)


def softmax(rows: int, columns: int, reads: int) -> PassCounts:
    """Count MLX's row-per-threadgroup softmax: ``reads`` times through each row, four elements a load."""
    threads = min(1024, columns // 4)
    elements = float(rows * columns)
    return work(
        threadgroups=rows,
        threads_per_threadgroup=threads,
        threadgroup_memory_bytes=256,
        device_read_bytes=4 * elements * reads,
        device_write_bytes=4 * elements,
        footprint_read_bytes=4 * elements,
        footprint_write_bytes=4 * elements,
        device_simd_accesses=elements * (reads + 1) / 128,
        barriers=4.0 * rows,
        simd_reductions=4.0 * rows * threads / 32,
        flops=5 * elements,
        special={"exp2": elements * reads},
    )


@pytest.mark.parametrize(("name", "short_ms", "long_ms"), SOFTMAXES)
def test_a_softmax_that_must_read_long_rows_twice_takes_longer_as_on_the_real_gpu(name, short_ms, long_ms):
    profile = load_profile(name)
    short = modelled_pass(softmax(65536, 1024, reads=1), profile).seconds * 1e3 + EVALUATION_MS
    long = modelled_pass(softmax(64, 1_000_000, reads=2), profile).seconds * 1e3 + EVALUATION_MS
    assert short == pytest.approx(short_ms, rel=0.25)
    assert long == pytest.approx(long_ms, rel=0.25)
