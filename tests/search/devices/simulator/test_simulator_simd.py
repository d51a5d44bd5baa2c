"""Every simdgroup and quadgroup operation against numpy: full groups, partial groups, divergent flow."""

from __future__ import annotations

import numpy as np
import pytest

LANES = 32
OPERATIONS = """
out[0 * n + i] = simd_sum(v);
out[1 * n + i] = simd_product(v);
out[2 * n + i] = simd_max(v);
out[3 * n + i] = simd_min(v);
out[4 * n + i] = simd_prefix_inclusive_sum(v);
out[5 * n + i] = simd_prefix_exclusive_sum(v);
out[6 * n + i] = simd_prefix_inclusive_product(v);
out[7 * n + i] = simd_prefix_exclusive_product(v);
out[8 * n + i] = quad_sum(v);
out[9 * n + i] = quad_max(v);
out[10 * n + i] = simd_broadcast_first(v);
"""


def expected_of(values: np.ndarray) -> list[np.ndarray]:
    """What `OPERATIONS` give one simdgroup whose active lanes hold ``values``."""
    n = len(values)
    quads = [values[begin : begin + 4] for begin in range(0, n, 4)]
    per_quad = lambda f: np.concatenate([np.full(len(quad), f(quad)) for quad in quads])  # noqa: E731
    return [
        np.full(n, values.sum()),
        np.full(n, values.prod()),
        np.full(n, values.max()),
        np.full(n, values.min()),
        np.cumsum(values),
        np.cumsum(values) - values,
        np.cumprod(values),
        np.concatenate([[1], np.cumprod(values)[:-1]]),
        per_quad(np.sum),
        per_quad(np.max),
        np.full(n, values[0]),
    ]


@pytest.mark.parametrize("threads", [32, 64, 20, 45, 1])
def test_reductions_and_scans_combine_the_lanes_that_are_there(bench, threads):
    # Powers of two: every product and sum of them is exact.
    values = np.float32(2.0) ** ((np.arange(threads) * 7) % 5 - 2)
    values = values.astype(np.float32)
    source = "uint i = thread_position_in_grid.x, n = threads_per_grid.x; float v = x[i];" + OPERATIONS
    out = bench.run(
        source, inputs={"x": values}, outputs={"out": ((11, threads), "float32")}, grid=threads, threadgroup=threads
    )["out"]
    groups = [expected_of(values[begin : begin + LANES].astype(np.float64)) for begin in range(0, threads, LANES)]
    for operation in range(11):
        wanted = np.concatenate([group[operation] for group in groups])
        np.testing.assert_array_equal(out[operation], wanted.astype(np.float32), err_msg=f"operation {operation}")


def test_shuffles_move_values_as_metal_says(bench):
    lane = np.arange(LANES)
    source = """
    uint i = thread_index_in_simdgroup; int v = x[i];
    out[0 * 32 + i] = simd_shuffle(v, (i * 5 + 3) % 32);
    out[1 * 32 + i] = simd_shuffle_xor(v, 9);
    out[2 * 32 + i] = simd_shuffle_up(v, 3);
    out[3 * 32 + i] = simd_shuffle_down(v, 3);
    out[4 * 32 + i] = simd_shuffle_rotate_up(v, 5);
    out[5 * 32 + i] = simd_shuffle_rotate_down(v, 5);
    out[6 * 32 + i] = simd_shuffle_and_fill_up(v, -v, 4);
    out[7 * 32 + i] = simd_shuffle_and_fill_down(v, -v, 4);
    out[8 * 32 + i] = simd_broadcast(v, 17);
    out[9 * 32 + i] = quad_shuffle(v, 2);
    out[10 * 32 + i] = quad_shuffle_xor(v, 1);
    out[11 * 32 + i] = quad_broadcast(v, 3);
    out[12 * 32 + i] = quad_shuffle_up(v, 1);
    out[13 * 32 + i] = quad_shuffle_down(v, 1);
    """
    values = (lane * lane + 1).astype(np.int32)
    out = bench.run(source, inputs={"x": values}, outputs={"out": ((14, 32), "int32")}, grid=32, threadgroup=32)["out"]
    quad = lane // 4 * 4
    wanted = [
        values[(lane * 5 + 3) % 32],
        values[lane ^ 9],
        np.where(lane >= 3, values[lane - 3], values),
        np.where(lane + 3 < 32, values[(lane + 3) % 32], values),
        values[(lane - 5) % 32],
        values[(lane + 5) % 32],
        np.where(lane >= 4, values[lane - 4], -values[(lane - 4) % 32]),
        np.where(lane + 4 < 32, values[(lane + 4) % 32], -values[(lane + 4) % 32]),
        np.full(32, values[17]),
        values[quad + 2],
        values[lane ^ 1],
        values[quad + 3],
        np.where(lane % 4 >= 1, values[lane - 1], values),
        np.where(lane % 4 < 3, values[(lane + 1) % 32], values),
    ]
    for row, want in enumerate(wanted):
        np.testing.assert_array_equal(out[row], want, err_msg=f"row {row}")


def test_votes_and_bits(bench):
    source = """
    uint i = thread_index_in_simdgroup; uint v = i * 2654435761u;
    out[0 * 32 + i] = (uint)(simd_vote::vote_t)simd_ballot(i % 3 == 0);
    out[1 * 32 + i] = simd_all(i < 32) ? 1 : 0;
    out[2 * 32 + i] = simd_all(i < 31) ? 1 : 0;
    out[3 * 32 + i] = simd_any(i == 31) ? 1 : 0;
    out[4 * 32 + i] = simd_any(i == 32) ? 1 : 0;
    out[5 * 32 + i] = simd_is_first() ? 1 : 0;
    out[6 * 32 + i] = simd_and(v | 1u);
    out[7 * 32 + i] = simd_or(v);
    out[8 * 32 + i] = simd_xor(v);
    out[9 * 32 + i] = (uint)(simd_vote::vote_t)simd_active_threads_mask();
    """
    out = bench.run(source, outputs={"out": ((10, 32), "uint32")}, grid=32, threadgroup=32)["out"]
    lane = np.arange(32, dtype=np.uint64)
    v = (lane * 2654435761 % 2**32).astype(np.uint32)
    wanted = [
        sum(1 << int(i) for i in lane if i % 3 == 0),
        1,
        0,
        1,
        0,
        None,
        np.bitwise_and.reduce(v | np.uint32(1)),
        np.bitwise_or.reduce(v),
        np.bitwise_xor.reduce(v),
        0xFFFFFFFF,
    ]
    for row, want in enumerate(wanted):
        np.testing.assert_array_equal(out[row], np.full(32, want) if want is not None else (lane == 0))


def test_vector_and_half_values_take_part(bench):
    source = """
    uint i = thread_index_in_simdgroup;
    float4 v = float4(i, i + 1, i + 2, i + 3);
    float4 s = simd_sum(v), t = simd_shuffle_xor(v, 1);
    half h = simd_max(half(i)); bfloat b = simd_sum(bfloat(1.0f)); ushort u = simd_min(ushort(i + 7));
    out[i] = s.w + t.x * 1000.0f + float(h) * 100000.0f;
    more[i] = float(b) + float(u);
    """
    result = bench.run(source, outputs={"out": ((32,), "float32"), "more": ((32,), "float32")}, grid=32, threadgroup=32)
    lane = np.arange(32)
    np.testing.assert_array_equal(result["out"], (496 + 96) + (lane ^ 1) * 1000 + 3_100_000)
    np.testing.assert_array_equal(result["more"], np.full(32, 32 + 7))


def test_only_lanes_that_took_a_branch_take_part_in_it(bench):
    source = """
    uint i = thread_index_in_simdgroup;
    int inside = -1, outside = 0;
    if (i < 12) {
        inside = simd_sum(1);
    } else if (i < 20) {
        inside = simd_sum(100);
        inside += simd_max(int(i));
    }
    outside = simd_sum(int(i));
    a[i] = inside; b[i] = outside;
    """
    out = bench.run(source, outputs={"a": ((32,), "int32"), "b": ((32,), "int32")}, grid=32, threadgroup=32)
    np.testing.assert_array_equal(out["a"], [12] * 12 + [819] * 8 + [-1] * 12)
    np.testing.assert_array_equal(out["b"], [496] * 32)


def test_lanes_leave_a_loop_after_different_numbers_of_trips(bench):
    # Trip k is made by lanes with i % 4 >= k: 32, 24, 16, 8 lanes; lane i sums over its own trips.
    source = """
    uint i = thread_index_in_simdgroup;
    int total = 0;
    for (uint k = 0; k <= i % 4; ++k)
        total += simd_sum(1);
    int rest = simd_sum(1);
    a[i] = total; b[i] = rest;
    """
    out = bench.run(source, outputs={"a": ((32,), "int32"), "b": ((32,), "int32")}, grid=32, threadgroup=32)
    np.testing.assert_array_equal(out["a"], [[32, 56, 72, 80][i % 4] for i in range(32)])
    np.testing.assert_array_equal(out["b"], [32] * 32)


def test_lanes_that_returned_take_no_part(bench):
    source = """
    uint i = thread_index_in_simdgroup;
    out[i] = -5;
    if (i >= 10) return;
    out[i] = simd_sum(2);
    """
    out = bench.run(source, outputs={"out": ((32,), "int32")}, grid=32, threadgroup=32)["out"]
    np.testing.assert_array_equal(out, [20] * 10 + [-5] * 22)


def test_a_value_from_a_lane_that_is_not_there_is_not_a_number(bench):
    source = "uint i = thread_index_in_simdgroup; out[i] = simd_shuffle_xor(float(i), 16);"
    out = bench.run(source, outputs={"out": ((20,), "float32")}, grid=20, threadgroup=20)["out"]
    np.testing.assert_array_equal(out[:4], [16, 17, 18, 19])
    assert np.isnan(out[4:16]).all()
    np.testing.assert_array_equal(out[16:], [0, 1, 2, 3])


def test_a_helper_in_the_header_runs_for_one_simdgroup_of_two(bench):
    header = "inline int total(int v) {\n  return simd_sum(v);\n}"
    source = """
    uint i = thread_position_in_grid.x;
    int r = total(1);
    if (simdgroup_index_in_threadgroup == 1) r += total(3);
    out[i] = r;
    """
    out = bench.run(source, header=header, outputs={"out": ((64,), "int32")}, grid=64, threadgroup=64)["out"]
    np.testing.assert_array_equal(out, [32] * 32 + [128] * 32)
