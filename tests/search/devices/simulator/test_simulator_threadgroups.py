"""Barriers, threadgroup memory, edge groups, atomics, and the grid spread over cores."""

from __future__ import annotations

import numpy as np
import pytest

TREE = """
threadgroup float tile[256];
uint t = thread_index_in_threadgroup, i = thread_position_in_grid.x;
tile[t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint half_size = threads_per_threadgroup.x / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) tile[t] += tile[t + half_size];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (t == 0) out[threadgroup_position_in_grid.x] = tile[0];
"""


@pytest.mark.parametrize("threads", [32, 256])
def test_a_tree_in_threadgroup_memory_sums_each_group(bench, threads):
    values = np.arange(threads * 50, dtype=np.float32) % 97
    out = bench.run(
        TREE, inputs={"x": values}, outputs={"out": ((50,), "float32")}, grid=threads * 50, threadgroup=threads
    )["out"]
    np.testing.assert_array_equal(out, values.reshape(50, threads).sum(axis=1))


def test_two_level_reduction_with_1024_threads(bench):
    source = """
    threadgroup float partial[32];
    float s = simd_sum(x[thread_position_in_grid.x]);
    if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup == 0) {
        s = simd_sum(partial[thread_index_in_simdgroup]);
        if (thread_index_in_simdgroup == 0) partial[0] = s;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[thread_position_in_grid.x] = partial[0];
    """
    values = np.arange(3072, dtype=np.float32)
    out = bench.run(source, inputs={"x": values}, outputs={"out": ((3072,), "float32")}, grid=3072, threadgroup=1024)[
        "out"
    ]
    np.testing.assert_array_equal(out.reshape(3, 1024), np.repeat([[523776], [1572352], [2620928]], 1024, axis=1))


def test_every_form_of_threadgroup_declaration_is_storage(bench):
    source = """
    constexpr int N = 4;
    threadgroup float a[N], b[N][N + 1], single;
    threadgroup alignas(16) half h[2 *
                                   N];
    static threadgroup metal::vec<float, 4> v[N];
    threadgroup atomic_uint count;
    uint t = thread_index_in_threadgroup;
    threadgroup float* p = a; threadgroup float4& first = v[0]; const threadgroup half* q = h;
    if (t == 0) { single = 5; atomic_store_explicit(&count, 0, memory_order_relaxed); first = float4(1, 2, 3, 4); }
    if (t < N) { p[t] = t; b[t][N] = 10 * t; h[t + N] = half(100 * t); }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&count, t, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[t] = a[t % N] + b[t % N][N] + float(q[t % N + N]) + single + v[0].w
           + 10000 * atomic_load_explicit(&count, memory_order_relaxed) + 100000 * (sizeof(b) / sizeof(float));
    """
    out = bench.run(source, outputs={"out": ((40,), "float32")}, grid=40, threadgroup=40)["out"]
    k = np.arange(40) % 4
    np.testing.assert_array_equal(out, k * 111 + 9 + 10000 * 780 + 100000 * 20)


def test_threadgroup_memory_starts_as_not_a_number_in_every_group(bench):
    source = """
    threadgroup float tile[32];
    uint t = thread_index_in_threadgroup;
    out[thread_position_in_grid.x] = tile[t];
    tile[t] = 1.0f;
    """
    out = bench.run(source, outputs={"out": ((640,), "float32")}, grid=640, threadgroup=32)["out"]
    assert np.isnan(out).all()


def test_edge_groups_are_trimmed_and_small_grids_shrink_the_group(bench):
    source = """
    uint3 p = thread_position_in_grid;
    uint i = (p.z * grid_size.y + p.y) * grid_size.x + p.x;
    out[i * 4 + 0] = threads_per_threadgroup.x * 10000 + threads_per_threadgroup.y * 100 + threads_per_threadgroup.z;
    out[i * 4 + 1] = thread_index_in_threadgroup;
    out[i * 4 + 2] = simdgroups_per_threadgroup * 100 + dispatch_simdgroups_per_threadgroup;
    out[i * 4 + 3] = threadgroups_per_grid.x * 10000 + threadgroups_per_grid.y * 100
                   + dispatch_threads_per_threadgroup.y;
    """
    out = bench.run(source, outputs={"out": ((1, 3, 11, 4), "uint32")}, grid=(11, 3, 1), threadgroup=(8, 8, 4))["out"][
        0
    ]
    # The group is min(8x8x4, 11x3x1) = 8x3x1 threads; two groups in x, the second trimmed to 3.
    np.testing.assert_array_equal(out[:, :8, 0], np.full((3, 8), 80301))
    np.testing.assert_array_equal(out[:, 8:, 0], np.full((3, 3), 30301))
    np.testing.assert_array_equal(out[:, :8, 1], np.arange(24).reshape(3, 8))
    np.testing.assert_array_equal(out[:, 8:, 1], np.arange(9).reshape(3, 3))
    np.testing.assert_array_equal(out[..., 2], np.full((3, 11), 101))
    np.testing.assert_array_equal(out[..., 3], np.full((3, 11), 20103))


def test_attributes_number_threads_as_metal_does(bench):
    source = """
    uint3 p = thread_position_in_grid, g = threadgroup_position_in_grid, l = thread_position_in_threadgroup;
    uint i = (p.z * threads_per_grid.y + p.y) * threads_per_grid.x + p.x;
    out[i] = uint4(g.x + 10 * g.y + 100 * g.z, l.x + 10 * l.y + 100 * l.z,
                   thread_index_in_simdgroup + 100 * simdgroup_index_in_threadgroup,
                   thread_index_in_quadgroup + 100 * quadgroup_index_in_threadgroup + 10000 * threads_per_simdgroup);
    """
    out = bench.run(
        source.replace("out[i] =", "((device uint4*)out)[i] ="),
        outputs={"out": ((4, 6, 8, 4), "uint32")},
        grid=(8, 6, 4),
        threadgroup=(4, 3, 4),
    )["out"]
    z, y, x = np.meshgrid(np.arange(4), np.arange(6), np.arange(8), indexing="ij")
    index = (z * 3 + y % 3) * 4 + x % 4
    np.testing.assert_array_equal(out[..., 0], x // 4 + 10 * (y // 3))
    np.testing.assert_array_equal(out[..., 1], x % 4 + 10 * (y % 3) + 100 * z)
    np.testing.assert_array_equal(out[..., 2], index % 32 + 100 * (index // 32))
    np.testing.assert_array_equal(out[..., 3], index % 4 + 100 * (index // 4) + 320000)


def test_atomics_of_groups_on_several_cores_lose_nothing(bench):
    source = """
    uint i = thread_position_in_grid.x;
    device atomic_int* sums = (device atomic_int*)out;
    atomic_fetch_add_explicit(&sums[i % 3], 1, memory_order_relaxed);
    atomic_fetch_max_explicit(&sums[3], int(i), memory_order_relaxed);
    atomic_fetch_min_explicit(&sums[4], -int(i), memory_order_relaxed);
    atomic_fetch_or_explicit(&sums[5], 1 << (i % 16), memory_order_relaxed);
    device atomic_float* f = (device atomic_float*)sum;
    atomic_fetch_add_explicit(f, 0.5f, memory_order_relaxed);
    int expected = atomic_load_explicit(&sums[6], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&sums[6], &expected, expected + 2, memory_order_relaxed,
                                                  memory_order_relaxed)) {}
    """
    zero = "if (thread_position_in_grid.x < 8) out[thread_position_in_grid.x] = 0; sum[0] = 0;"
    clear = bench.bind(zero, outputs={"out": ((8,), "int32"), "sum": ((1,), "float32")}, grid=8, threadgroup=8)
    add = bench.bind(source, outputs={"out": ((8,), "int32"), "sum": ((1,), "float32")}, grid=30000, threadgroup=64)
    both = type(clear)((*clear.passes, *add.passes), ("out", "sum"))
    result = bench.device.run(both, {}, time_limit=20).outputs
    np.testing.assert_array_equal(result["out"], [10000, 10000, 10000, 29999, -29999, 65535, 60000, 0])
    assert result["sum"][0] == 15000.0


def test_a_barrier_in_a_helper_and_in_a_loop(bench):
    header = """
    template <typename T>
    T block_sum(T v, threadgroup T* slots, uint lane, uint group, uint groups) {
        v = simd_sum(v);
        if (lane == 0) slots[group] = v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        T total = 0;
        for (uint g = 0; g < groups; ++g) total += slots[g];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        return total;
    }
    """
    source = """
    threadgroup int slots[8];
    int v = 1;
    for (int k = 0; k < 3; ++k)
        v = block_sum(v, slots, thread_index_in_simdgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup);
    out[thread_position_in_grid.x] = v;
    """
    out = bench.run(source, header=header, outputs={"out": ((100,), "int32")}, grid=100, threadgroup=100)["out"]
    np.testing.assert_array_equal(out, [1_000_000] * 100)


def test_simdgroup_matrices_multiply(bench, random):
    source = """
    simdgroup_matrix<float, 8, 8> a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < 16; k += 8) {
        simdgroup_load(a, x + k, 16);
        simdgroup_load(b, y + k, 16, ulong2(0), true);
        simdgroup_multiply_accumulate(c, a, b, c);
    }
    simdgroup_store(c, out, 8);
    """
    x = random.integers(-8, 8, (8, 16)).astype(np.float32)
    y = random.integers(-8, 8, (8, 16)).astype(np.float32)
    out = bench.run(source, inputs={"x": x, "y": y}, outputs={"out": ((8, 8), "float32")}, grid=32, threadgroup=32)
    np.testing.assert_array_equal(out["out"], x @ y.T)
