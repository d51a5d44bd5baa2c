"""Operations of quadgroups and simdgroups beyond the common ones, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

LANES = np.arange(32)
PLACE, QUAD = LANES % 4, LANES // 4 * 4

CASES = {
    "quad_prefix_inclusive_sum(lane)": [sum(range(q, q + p + 1)) for q, p in zip(QUAD, PLACE, strict=True)],
    "quad_prefix_exclusive_sum(lane)": [sum(range(q, q + p)) for q, p in zip(QUAD, PLACE, strict=True)],
    "quad_prefix_inclusive_product(lane % 4 + 1)": [[1, 2, 6, 24][p] for p in PLACE],
    "quad_prefix_exclusive_product(lane % 4 + 1)": [[1, 1, 2, 6][p] for p in PLACE],
    "quad_shuffle_rotate_up(lane, 1)": QUAD + (PLACE - 1) % 4,
    "quad_shuffle_rotate_down(lane, 1)": QUAD + (PLACE + 1) % 4,
    "quad_shuffle_and_fill_up(lane, 100 + lane, 1)": np.where(PLACE >= 1, LANES - 1, 100 + LANES + 3),
    "quad_shuffle_and_fill_down(lane, 100 + lane, 1)": np.where(PLACE < 3, LANES + 1, 100 + LANES - 3),
    "simd_shuffle_and_fill_up(lane, 100 + lane, 3)": np.where(LANES >= 3, LANES - 3, 100 + LANES + 29),
    "simd_shuffle_and_fill_down(lane, 100 + lane, 3, 8)": np.where(LANES % 8 < 5, LANES + 3, 100 + LANES - 5),
    "int(uint(quad_ballot(lane % 3 == 0)))": [sum(1 << i for i in range(4) if (q + i) % 3 == 0) for q in QUAD],
    "quad_all(lane < 4)": LANES < 4,
    "quad_any(lane == 5)": (LANES >= 4) & (LANES < 8),
    "quad_is_first()": PLACE == 0,
    "quad_broadcast_first(lane)": QUAD,
    "simd_sum(int2(lane, 1)).y + simd_max(int2(lane, 1)).x": [32 + 31] * 32,
    "simd_shuffle_xor(half4(lane), 1).w": LANES ^ 1,
    "simd_broadcast(lane == 5, 5) ? 1 : 0": np.ones(32),
    "simd_shuffle_xor(lane < 8, 4) ? 1 : 0": (LANES ^ 4) < 8,
    "quad_broadcast_first(lane % 4 == 0) ? 1 : 0": np.ones(32),
    "simd_broadcast(char2(lane, -lane), 7).y": [-7] * 32,
    "int(simd_shuffle_down(ulong(lane) << 33, 1) >> 33)": np.minimum(LANES + 1, 31),
}


@pytest.mark.parametrize("expression", CASES)
def test_lanes_exchange_what_metal_says(bench, expression):
    source = f"int lane = thread_index_in_simdgroup; out[lane] = {expression};"
    out = bench.run(source, outputs={"out": ((32,), "int32")}, grid=32, threadgroup=32)["out"]
    np.testing.assert_array_equal(out, np.asarray(CASES[expression]).astype(int))


def test_a_quad_vote_counts_only_the_lanes_that_are_there(bench):
    source = """
    uint lane = thread_index_in_simdgroup;
    out[lane] = 0;
    if (lane % 4 == 0) return;
    out[lane] = int(uint(quad_active_threads_mask())) * 10 + quad_is_first();
    """
    out = bench.run(source, outputs={"out": ((32,), "int32")}, grid=32, threadgroup=32)["out"]
    assert out[:8].tolist() == [0, 141, 140, 140, 0, 141, 140, 140]


def test_bfloats_are_summed_in_float_and_rounded_once(bench):
    # 1 and 31 times 2^-9: each alone is lost beside 1 in a bfloat, together they make 1.0605, which rounds to 1.0625.
    source = "uint i = thread_index_in_simdgroup; out[i] = simd_sum(i ? bfloat(0.001953125f) : bfloat(1.0f));"
    out = bench.run(source, outputs={"out": ((32,), "float32")}, grid=32, threadgroup=32)["out"]
    assert set(out.tolist()) == {1.0625}


@pytest.mark.parametrize("kind", ["float", "half", "bfloat"])
def test_simdgroup_matrices_load_with_strides_transposed_and_multiply(bench, random, kind):
    header = f"typedef {kind} T;"
    source = """
    threadgroup T tile[8 * 10];
    uint t = thread_index_in_simdgroup;
    for (uint i = t; i < 64; i += 32) tile[i / 8 * 10 + i % 8] = T(x[i]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<T, 8, 8> a, b;
    simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
    simdgroup_load(a, tile, 10);
    simdgroup_load(b, tile, 10, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(c, a, b, c);
    simdgroup_store(c, out, 8);
    """
    x = random.integers(-4, 5, (8, 8)).astype(np.float32)
    launch = {"header": header, "inputs": {"x": x}, "grid": 32, "threadgroup": 32}
    out = bench.run(source, outputs={"out": ((8, 8), "float32")}, **launch)["out"]
    np.testing.assert_array_equal(out, x @ x.T + 1)
