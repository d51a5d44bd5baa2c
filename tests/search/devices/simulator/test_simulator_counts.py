"""Counts of kernels whose work can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from search.devices.simulator.compilers import find_compiler

X = np.arange(1024, dtype=np.float32)
OUT = {"out": ((1024,), "float32")}
I = "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;\n"  # noqa: E741
LAUNCH = {"inputs": {"x": X}, "outputs": OUT, "grid": 1024, "threadgroup": 64}


def test_arithmetic_and_special_functions_are_those_that_ran(bench):
    # Of 1024 threads: a mul and an add; a quarter makes three trips with an fma (2); then an exp2, an rsqrt and a
    # divide (itself an operation) whose results take 3 adds; 4 adds; an fma and a mul of the exp2's argument.
    source = (
        I
        + """
    float v = x[i] * 3.0f + 1.0f;
    for (uint k = 0; k < trips[i]; ++k) v = fma(v, v, 1.0f);
    v = v + exp2(fma(v, 0.5f, 1.0f) * v) + rsqrt(x[i]) + 1.0f / v;
    for (int k = 0; k < 4; ++k) v += x[k];
    out[i] = v;
    """
    )
    trips = np.where(np.arange(1024) % 4 == 0, 3, 0).astype(np.uint32)
    counts = bench.counts(source, **{**LAUNCH, "inputs": {"x": X, "trips": trips}})
    assert counts.flops == 1024 * (2 + 1 + 3 + 4 + 2 + 1) + 256 * 3 * 2
    assert counts.special == {"exp2": 1024, "rsqrt": 1024, "divide": 1024}
    assert counts.sampled_threadgroups == counts.threadgroups == 16


@pytest.mark.parametrize(
    ("divide", "times", "offset", "lines"),
    [(1, 1, 0, 1), (1, 2, 0, 2), (1, 32, 0, 32), (32, 32, 0, 1), (1, 1, 1, 2), (1024, 1, 0, 1)],
)
def test_device_reads_cost_the_cache_lines_that_a_simdgroup_touches(bench, divide, times, offset, lines):
    # 32 simdgroups; a line is 32 floats. Shifted by one, a simdgroup touches two (the last one wraps).
    numbers = {"divide": divide, "times": times, "offset": offset}
    scalars = {name: np.array(value, np.int32) for name, value in numbers.items()}
    launch = {**LAUNCH, "inputs": {"x": X, **scalars}}
    counts = bench.counts(I + "out[i] = x[(i / divide * times + offset) % 1024];", **launch)
    assert counts.device_read_bytes == 32 * lines * 128
    assert counts.device_write_bytes == 32 * 128
    assert counts.device_simd_accesses == 64
    assert counts.footprint_write_bytes == 4096


@pytest.mark.parametrize(("divide", "times", "blocks"), [(1, 1, 2), (2, 1, 1), (1, 16, 32), (1, 32, 32), (32, 1, 1)])
def test_the_first_level_cache_moves_64_bytes_of_one_line_at_a_time(bench, divide, times, blocks):
    numbers = {"divide": np.array(divide, np.int32), "times": np.array(times, np.int32)}
    counts = bench.counts(I + "out[i] = x[i / divide * times % 1024];", **{**LAUNCH, "inputs": {"x": X, **numbers}})
    assert counts.device_blocks == 32 * (blocks + 2)  # 32 simdgroups, which write 32 floats each


def test_a_lane_that_walks_its_own_line_comes_back_to_it_after_those_of_the_others(bench):
    # Each of 32 lanes reads the 32 floats of its own line: all but the first time, 31 other lines lie between.
    source = I + "float v = 0; for (int k = 0; k < n; ++k) v += x[i * 32 + k]; out[i] = v;"
    launch = {"outputs": {"out": ((32,), "float32")}, "grid": 32, "threadgroup": 32}
    counts = bench.counts(source, inputs={"x": X, "n": np.array(32, np.int32)}, **launch)
    assert counts.device_read_bytes == 32 * 32 * 128
    assert counts.read_reuse[31] == sum(counts.read_reuse) == 31 * 32 * 128
    assert sum(counts.write_reuse) == 0


def test_what_is_written_again_is_saved_by_a_cache_that_held_it_all_the_time(bench):
    # Between two writes of its line a simdgroup reads one other line (of x), so a cache of two lines holds it.
    source = I + "for (int k = 0; k < n; ++k) out[i] += x[k];"
    launch = {"outputs": {"out": ((32,), "float32")}, "grid": 32, "threadgroup": 32}
    counts = bench.counts(source, inputs={"x": X, "n": np.array(10, np.int32)}, **launch)
    assert counts.device_write_bytes == 10 * 128
    assert counts.write_reuse[1] == sum(counts.write_reuse) == 9 * 128


def test_threadgroups_do_not_profit_from_what_those_before_them_read(bench):
    counts = bench.counts("out[thread_position_in_grid.x] = x[0] + x[1];", **LAUNCH)  # one load of two floats
    assert counts.device_read_bytes == 32 * 128
    assert sum(counts.read_reuse) == 0


def test_loops_of_a_fixed_length_are_unrolled_so_that_neighbouring_loads_are_one(bench):
    fixed, open_ended = (
        bench.counts(
            I
            + f"float v = 0; for (int r = 0; r < n; ++r) for (int k = 0; k < {end}; ++k) v += x[r * 32 + k]; y[i] = v;",
            inputs={"x": X, "n": np.array(32, np.int32)},
            outputs={"y": ((1024,), "float32")},
            grid=1024,
            threadgroup=64,
        )
        for end in ("32", "n")
    )
    assert fixed.device_simd_accesses == 32 * (32 * 32 / 4 + 1)
    assert open_ended.device_simd_accesses == 32 * (32 * 32 + 1)


ROW = """
float sums[{size}];
for (int d = 0; d < {size}; ++d) sums[d] = 0.0f;
for (int k = 0; k < n; ++k)
    for (int d = 0; d < {size}; ++d) sums[d] = sums[d] * 0.5f + x[(k * {size} + d) % 1024];
for (int d = 0; d < {size}; ++d) out[i * {size} + d] = sums[d];
"""


@pytest.mark.skipif(find_compiler().zig, reason="zig does not write what a stack frame takes")
@pytest.mark.parametrize(("size", "least", "most"), [(4, 16, 40), (64, 64, 112), (128, 128, 176)])
def test_a_row_of_private_values_takes_as_many_registers(bench, size, least, most):
    counts = bench.counts(
        I + ROW.format(size=size),
        inputs={"x": X, "n": np.array(8, np.int32)},
        outputs={"out": ((64 * size,), "float32")},
        grid=64,
        threadgroup=64,
    )
    # What clang keeps in the CPU's own registers is in no frame.
    assert least - (8 if find_compiler().clang else 0) <= counts.registers_per_thread <= most


def test_footprints_count_what_was_touched_once(bench):
    counts = bench.counts(I + "out[i % 128] = x[i % 256] + x[i % 256];", **LAUNCH)
    assert counts.footprint_read_bytes == 1024
    assert counts.footprint_write_bytes == 512
    assert counts.device_read_bytes == 4096


@pytest.mark.parametrize(
    ("stride", "cycles"),
    [(1, 1), (2, 2), (32, 32), (33, 1), (4, 4), (0, 1)],
)
def test_threadgroup_memory_costs_the_cycles_of_its_busiest_bank(bench, stride, cycles):
    # 16 groups of two simdgroups store with a stride and load in order (1 cycle).
    source = (
        I
        + """
    threadgroup float tile[32 * 34];
    tile[(t % 32) * stride] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[t];
    """
    )
    counts = bench.counts(source, **{**LAUNCH, "inputs": {"x": X, "stride": np.array(stride, np.int32)}})
    assert counts.threadgroup_bank_cycles == 32 * (cycles + 1)
    assert counts.threadgroup_lane_accesses == 2 * 1024
    assert counts.threadgroup_memory_bytes == 32 * 34 * 4
    assert counts.barriers == 16


def test_a_vector_is_one_access(bench):
    source = "uint i = thread_position_in_grid.x; ((device float4*)out)[i] = ((const device float4*)x)[i] * 2.0f;"
    counts = bench.counts(source, inputs={"x": X}, outputs=OUT, grid=256, threadgroup=64)
    assert counts.device_simd_accesses == 16
    assert counts.device_read_bytes == counts.device_write_bytes == 4096
    assert counts.flops == 1024


def test_simdgroup_operations_are_counted_once_a_simdgroup(bench):
    source = (
        I
        + """
    float v = simd_sum(x[i]) + simd_max(x[i]);
    for (int k = 1; k < 32; k *= 2) v += simd_shuffle_xor(v, k);
    if (t < 32) v = simd_prefix_inclusive_sum(v);
    out[i] = simd_broadcast(v, 3);
    """
    )
    counts = bench.counts(source, **LAUNCH)
    assert counts.simd_reductions == 32 * 2 + 16
    assert counts.simd_shuffles == 32 * 6
    assert counts.flops == 1024 * (1 + 5)


def test_lanes_that_return_early_or_loop_longer_are_counted_for_what_they_did(bench):
    # Lanes of odd index return; even ones make i % 8 trips: 0, 2, 4, 6 adds.
    source = (
        I
        + """
    if (i % 2) return;
    float v = 1.0f;
    for (uint k = 0; k < i % 8; ++k) v += x[i];
    out[i] = v;
    """
    )
    counts = bench.counts(source, **LAUNCH)
    added = 128 * (0 + 2 + 4 + 6)
    assert added <= counts.flops <= added + (128 if find_compiler().clang else 0)  # its loop adds once before it looks
    assert counts.device_write_bytes == 32 * 128


def test_a_sample_of_threadgroups_scales_to_all(bench):
    source = """
    uint i = thread_position_in_grid.x;
    float v = 0;
    for (uint k = 0; k < 512; ++k) v += x[(i + k * 32) % 65536] * 2.0f;
    out[i] = v;
    """
    launch = {
        "inputs": {"x": np.zeros(65536, np.float32)},
        "outputs": {"out": ((65536,), "float32")},
        "grid": 65536,
        "threadgroup": 256,
    }
    sampled = bench.counts(source, budget=2_000_000, **launch)
    assert 2 <= sampled.sampled_threadgroups < 32
    assert sampled.threadgroups == 256
    assert sampled.flops == 65536 * 1024
    assert sampled.device_read_bytes == 2048 * 512 * 128
    assert sampled.device_write_bytes == 65536 * 4
    assert sampled.footprint_read_bytes == 65536 * 4


def test_more_accesses_than_a_log_holds_are_all_counted(bench):
    source = I + "float v = 0; for (uint k = 0; k < 3000; ++k) v += x[(t + 32 * k) % 1024]; out[i] = v;"
    counts = bench.counts(source, inputs={"x": X}, outputs=OUT, grid=64, threadgroup=64)
    assert counts.device_read_bytes == 2 * 3000 * 128
    assert counts.flops == 64 * 3000


def test_a_loop_that_some_lanes_leave_early_does_not_part_them_for_good(bench):
    # Lane i reads i + 1000 values (each a broadcast: one line), then all read 2000 more in step.
    source = (
        I
        + """
    float v = 0;
    for (uint k = 0; k < 1000 + i; ++k) v += x[k % 1024];
    for (uint k = 0; k < 2000; ++k) v += x[(k * 7) % 1024];
    out[i] = v;
    """
    )
    counts = bench.counts(source, inputs={"x": X}, outputs=OUT, grid=32, threadgroup=32)
    assert counts.device_read_bytes == (1031 + 2000) * 128
    assert counts.device_write_bytes == 128
    assert counts.flops == sum(1000 + i for i in range(32)) + 32 * 2000


def test_atomics_and_matrix_products_are_counted(bench):
    source = """
    simdgroup_matrix<float, 8, 8> a(1.0f), b(2.0f), c(0.0f);
    simdgroup_multiply_accumulate(c, a, b, c);
    simdgroup_store(c, out, 8);
    device atomic_int* n = (device atomic_int*)total;
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
    """
    counts = bench.counts(
        source, outputs={"out": ((8, 8), "float32"), "total": ((1,), "int32")}, grid=32, threadgroup=32
    )
    assert counts.matrix_flops == 2 * 8 * 8 * 8
    assert counts.atomics == 32


def test_scalars_and_shapes_cost_no_traffic(bench):
    source = I + "out[i] = scale + x_shape[0];"
    counts = bench.counts(
        source, inputs={"x": X, "scale": np.array(2.0, np.float32)}, outputs=OUT, grid=1024, threadgroup=64
    )
    assert counts.device_read_bytes == 0


def test_half_and_bfloat_arithmetic_counts_as_what_was_written(bench):
    source = (
        "uint i = thread_position_in_grid.x; half h = half(x[i]); bfloat b = bfloat(x[i]);"
        "h = h * h + h; b = b * b + b; out[i] = float(h) + float(b);"
    )
    counts = bench.counts(source, **LAUNCH)
    assert counts.flops == 1024 * 5
