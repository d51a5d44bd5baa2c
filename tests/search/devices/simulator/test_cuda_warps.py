"""What the lanes of a warp do together in CUDA: shuffles, votes, matches, reductions, barriers, groups."""

from __future__ import annotations

import numpy as np
import pytest

LANES = np.arange(32)
X = np.arange(32, dtype=np.float32) * 10


def kernel(body, *, before=""):
    begin = "__global__ void k(const float* x, float* out) {\n  int t = threadIdx.x;\n  float v = x[t];"
    return f"{before}\n{begin}\n{body}\n}}\n"


@pytest.fixture
def lanes(cuda):
    """Return a function that runs one warp over `X` and returns what each lane writes."""

    def run(body, *, before="", x=X):
        launch = cuda.launch("k", 1, len(x), "x", "out")
        return cuda.run(kernel(body, before=before), launch, inputs={"x": x}, outputs={"out": (len(x), "float32")})[
            "out"
        ]

    return run


def segments(width):
    return LANES // width * width


@pytest.mark.parametrize("width", [8, 16, 32])
def test_a_shuffle_up_keeps_the_own_value_at_the_begin_of_each_segment(lanes, width):
    got = lanes(f"  out[t] = __shfl_up_sync(0xffffffff, v, 3, {width});")
    source = np.where(LANES - segments(width) >= 3, LANES - 3, LANES)
    np.testing.assert_array_equal(got, X[source])


@pytest.mark.parametrize("width", [8, 16, 32])
def test_a_shuffle_down_keeps_the_own_value_at_the_end_of_each_segment(lanes, width):
    got = lanes(f"  out[t] = __shfl_down_sync(0xffffffff, v, 5, {width});")
    last = segments(width) + width - 1
    source = np.where(last >= LANES + 5, LANES + 5, LANES)
    np.testing.assert_array_equal(got, X[source])


def test_a_shuffle_xor_reaches_earlier_segments_and_not_later_ones(lanes):
    got = lanes("  out[t] = __shfl_xor_sync(0xffffffff, v, 8, 8);")
    source = np.where(segments(8) + 7 >= LANES ^ 8, LANES ^ 8, LANES)
    np.testing.assert_array_equal(got, X[source])


def test_a_shuffle_takes_its_lane_modulo_the_width(lanes):
    got = lanes("  out[t] = __shfl_sync(0xffffffff, v, 11, 8) + __shfl_sync(0xffffffff, v, -1);")
    np.testing.assert_array_equal(got, X[segments(8) + 3] + X[31])


def test_shuffles_move_doubles_pairs_of_halves_and_long_integers(lanes):
    got = lanes(
        "  double d = __shfl_sync(~0u, (double)v + 1e-9, 2);\n"
        "  half2 h = __shfl_xor_sync(~0u, __floats2half2_rn(v, -v), 1);\n"
        "  unsigned long long u = __shfl_down_sync(~0u, (1ull << 40) + t, 1);\n"
        "  out[t] = (d == 20.0 + 1e-9 ? 1 : 0) + __high2float(h) + (float)(u - (1ull << 40));"
    )
    expected = 1 - X[LANES ^ 1] + np.minimum(LANES + 1, 31)
    np.testing.assert_array_equal(got, expected)


def test_only_the_lanes_of_the_mask_vote(lanes):
    got = lanes(
        "  if (t < 8) out[t] = __ballot_sync(0xffu, t % 2 == 1);\n"
        "  else out[t] = __popc(__ballot_sync(0xffffff00u, t > 20)) + 100 * __any_sync(0xffffff00u, t == 31)\n"
        "      + 1000 * __all_sync(0xffffff00u, t >= 8);"
    )
    np.testing.assert_array_equal(got, np.where(LANES < 8, 0b10101010, 11 + 100 + 1000))


def test_lanes_with_the_same_value_find_each_other(lanes):
    got = lanes(
        "  int all;\n"
        "  unsigned same = __match_any_sync(~0u, t % 3), every = __match_all_sync(~0u, 7, &all);\n"
        "  out[t] = __popc(same) + 100 * __ffs(same) + (all && every == ~0u ? 10000 : 0);"
    )
    count = np.array([11, 11, 10])[LANES % 3]
    np.testing.assert_array_equal(got, count + 100 * (LANES % 3 + 1) + 10000)


def test_warp_reductions_of_integers(lanes):
    got = lanes(
        "  out[t] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, -t) * 1000 + __reduce_min_sync(~0u, t + 2)\n"
        "      + (int)__reduce_xor_sync(~0u, (unsigned)t) + (int)__reduce_or_sync(~0u, 64u << t % 2);"
    )
    np.testing.assert_array_equal(got, 31 * 32 // 2 + 0 + 2 + 0 + 192)


def test_the_forms_without_sync_take_the_lanes_that_are_there(lanes):
    got = lanes("  if (t < 20) out[t] = __shfl_down(v, 1) + __popc(__ballot(1)) + __any(t == 30); else out[t] = 0;")
    source = np.where(LANES < 19, LANES + 1, LANES)
    np.testing.assert_array_equal(got[:19], X[source][:19] + 20)
    np.testing.assert_array_equal(got[20:], 0)


def test_both_halves_of_a_warp_may_call_one_helper_from_two_branches(lanes):
    helper = (
        "__device__ float half_sum(unsigned mask, float v) {\n"
        "  for (int o = 8; o; o /= 2) v += __shfl_xor_sync(mask, v, o, 16);\n  return v;\n}"
    )
    got = lanes(
        "  if (t < 16) out[t] = half_sum(0xffffu, v);\n  else out[t] = half_sum(0xffff0000u, v) * 2;", before=helper
    )
    np.testing.assert_array_equal(got, np.where(LANES < 16, X[:16].sum(), 2 * X[16:].sum()))


def test_lanes_of_two_branches_meet_in_syncwarp(lanes):
    got = lanes(
        "  __shared__ float s[32];\n"
        "  if (t % 2) { s[t] = v; __syncwarp(); } else { s[t] = -v; __syncwarp(); }\n"
        "  out[t] = s[31 - t];"
    )
    mirrored = 31 - LANES
    np.testing.assert_array_equal(got, np.where(mirrored % 2 == 1, X[mirrored], -X[mirrored]))


def test_tiles_of_a_warp_are_groups(lanes):
    got = lanes(
        "  auto tile = cg::tiled_partition<8>(cg::this_thread_block());\n"
        "  float sum = cg::reduce(tile, v, cg::plus<float>());\n"
        "  out[t] = sum + tile.thread_rank() + 1000 * tile.meta_group_rank() + tile.shfl(v, 0) + tile.ballot(t % 2);",
        before="#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
    )
    sums = X.reshape(4, 8).sum(1)[LANES // 8]
    np.testing.assert_array_equal(got, sums + LANES % 8 + 1000 * (LANES // 8) + X[segments(8)] + 0b10101010)


def test_a_block_counts_its_votes_at_a_barrier(cuda):
    text = (
        "__global__ void k(int* out) {\n  int t = threadIdx.x;\n"
        "  int n = __syncthreads_count(t % 3 == 0);\n  int some = __syncthreads_or(t == 69);\n"
        "  int every = __syncthreads_and(t < 69);\n  for (int i = 0; i < 3; ++i) n += __syncthreads_count(t < i);\n"
        "  out[blockIdx.x * blockDim.x + t] = n + 1000 * some + 5000 * every;\n}"
    )
    got = cuda.run(text, cuda.launch("k", 3, 70, "out"), outputs={"out": (210, "int32")})["out"]
    np.testing.assert_array_equal(got, 24 + 0 + 1 + 2 + 1000)


def test_a_block_that_is_no_multiple_of_a_warp_has_a_short_last_warp(cuda):
    text = (
        "__global__ void k(unsigned* out) {\n"
        "  unsigned here = __activemask();\n  out[threadIdx.x] = here - __popc(__ballot_sync(here, 1));\n}"
    )
    got = cuda.run(text, cuda.launch("k", 1, 45, "out"), outputs={"out": (45, "uint32")})["out"]
    np.testing.assert_array_equal(got, np.where(np.arange(45) < 32, 2**32 - 1 - 32, 2**13 - 1 - 13))


def test_lanes_that_wait_in_different_operations_keep_their_own_values(lanes):
    body = """
  double wide = t;
  if (t < 16) out[t] = __shfl_xor_sync(0x0000ffffu, wide, 1);
  else out[t] = __shfl_xor_sync(0xffff0000u, t, 1) + __shfl_xor_sync(0xffff0000u, 100 * t, 2);
"""
    np.testing.assert_array_equal(lanes(body), np.where(LANES < 16, LANES ^ 1, (LANES ^ 1) + 100 * (LANES ^ 2)))
