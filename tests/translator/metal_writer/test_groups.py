"""Cooperative groups: the block and its tiles, as members, as parameters, reduced and voted over."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

ARRAYS = {"x": "in float32 64", "y": "out float32 64"}
STEPS = plan([launch("k", "1", "64", "x, y")], ARRAYS)


def kernel(body: str, helpers: str = "") -> str:
    return f"""\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
{helpers}
__global__ void k(const float* x, float* y) {{
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  auto half_warp = cg::tiled_partition<16>(block);
  int i = block.thread_rank();
  float v = x[i];
  {body}
}}
"""


X = np.sin(np.arange(64, dtype=np.float32)) * 8
TILES = np.repeat(X.reshape(4, 16).sum(1), 16)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("y[i] = cg::reduce(warp, v, cg::plus<float>());", np.repeat(X.reshape(2, 32).sum(1), 32)),
        ("y[i] = cg::reduce(half_warp, v, cg::plus<float>{});", TILES),
        ("y[i] = cg::reduce(half_warp, v, cg::greater<float>{});", np.repeat(X.reshape(4, 16).max(1), 16)),
        ("y[i] = cg::reduce(half_warp, int(v), cg::less<int>{});", np.repeat(np.trunc(X).reshape(4, 16).min(1), 16)),
        ("y[i] = half_warp.meta_group_rank() * 100 + half_warp.thread_rank();",
         np.arange(64) // 16 * 100 + np.arange(64) % 16),
        ("y[i] = half_warp.meta_group_size() + 10 * warp.meta_group_size() + 100 * half_warp.size() + block.size();",
         np.full(64, 4 + 20 + 1600 + 64)),
        ("y[i] = half_warp.any(v > 7.9f) + 2 * half_warp.all(v > -7.9f);",
         np.repeat((X.reshape(4, 16) > 7.9).any(1) + 2 * (X.reshape(4, 16) > -7.9).all(1), 16)),
        ("y[i] = half_warp.ballot(half_warp.thread_rank() < 3);", np.full(64, 7)),
        ("y[i] = half_warp.shfl(v, 3);", np.repeat(X.reshape(4, 16)[:, 3], 16)),
        ("y[i] = half_warp.shfl_xor(v, 1); half_warp.sync();", X.reshape(32, 2)[:, ::-1].reshape(-1)),
        ("y[i] = v; cg::sync(block); block.sync(); cg::this_thread_block().sync();", X),
        ("y[i] = total(half_warp, v);", TILES),
        ("y[i] = mirrored(block, v);", X[::-1]),
    ],
)  # fmt: skip
def test_groups_do_what_cuda_says(run: Runner, body: str, want: np.ndarray) -> None:
    helpers = """\
__device__ float total(const cg::thread_block_tile<16>& tile, float v) {
  for (int step = tile.size() / 2; step > 0; step /= 2) v += tile.shfl_xor(v, step);
  return v;
}
__device__ float mirrored(cg::thread_block block, float v) {
  __shared__ float all[64];
  all[block.thread_rank()] = v;
  block.sync();
  return all[block.size() - 1 - block.thread_rank()];
}"""
    made = translate(kernel(body, helpers), STEPS)
    np.testing.assert_allclose(run(made, {"x": X})["y"], want, rtol=1e-5, atol=1e-5)


def test_a_barrier_of_the_block_counts_as_one(run: Runner) -> None:
    said = refusals(kernel("if (v > 0.f) block.sync(); y[i] = v;"), STEPS)
    assert "a barrier in a branch that threads take differently" in said[0]


@pytest.mark.parametrize(
    "body",
    [
        "auto grid = cg::this_grid(); grid.sync(); y[i] = v;",
        "auto active = cg::coalesced_threads(); y[i] = active.size();",
        "y[i] = cg::reduce(block, v, cg::plus<float>());",
        "y[i] = cg::reduce(warp, (long long)v, cg::plus<long long>());",
    ],
)
def test_groups_that_metal_has_no_words_for_are_refused(body: str) -> None:
    assert refusals(kernel(body), STEPS)
