"""Shuffles, votes, barriers and atomics: CUDA's meaning to the last lane."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

ARRAYS = {"x": "in int32 n", "y": "out int32 n"}


def shuffled(call: str) -> str:
    return f"__global__ void k(const int* x, int* y) {{ int i = threadIdx.x; int v = x[i]; y[i] = {call}; }}"


def by_lane(kind: str, lane: int, step: int, width: int) -> int:
    """Return the lane that CUDA reads: its own where the other lies outside of its segment."""
    begin, inside = lane // width * width, lane % width
    if kind == "up":
        return lane - step if inside >= step else lane
    if kind == "down":
        return lane + step if inside + step < width else lane
    if kind == "xor":
        return lane ^ step if lane ^ step < begin + width else lane
    return begin + step % width


@pytest.mark.parametrize("width", [32, 16, 8, 4])
@pytest.mark.parametrize(("kind", "step"), [("up", 3), ("down", 5), ("xor", 2), ("xor", 9), ("", 6), ("", 37)])
def test_shuffles_stay_within_their_width(run: Runner, kind: str, step: int, width: int) -> None:
    name = f"__shfl_{kind}_sync" if kind else "__shfl_sync"
    made = translate(
        shuffled(f"{name}(0xffffffff, v, {step}, {width})"), plan([launch("k", "1", "32", "x, y")], ARRAYS)
    )
    x = np.arange(100, 132, dtype=np.int32)
    expected = [x[by_lane(kind, lane, step, width)] for lane in range(32)]
    assert list(run(made, {"x": x}, n=32)["y"]) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("__ballot_sync(0xffffffffu, v % 3 == 0)", sum(1 << lane for lane in range(32) if lane % 3 == 0)),
        ("__popc(__ballot_sync(0xffffffffu, v > 9))", 22),
        ("__any_sync(0xffffffffu, v == 31) + 2 * __all_sync(0xffffffffu, v > 0)", 1),
        ("__ffs(v & 0) + __ffs(__ballot_sync(0xffffffff, v == 7))", 8),
        ("__clz(1) + __reduce_add_sync(0xffffffff, v)", 31 + 496),
        ("__shfl_sync(0xffffffff, (long long)v << 40, 3) >> 40", 3),
    ],
)
def test_votes_and_bits_mean_the_same(run: Runner, call: str, expected: int) -> None:
    made = translate(shuffled(call), plan([launch("k", "1", "32", "x, y")], ARRAYS))
    result = run(made, {"x": np.arange(32, dtype=np.int32)}, n=32)["y"].astype(np.uint32)
    assert set(result.tolist()) == {expected}


def test_a_block_counts_its_votes(run: Runner) -> None:
    source = """\
__global__ void k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  int count = __syncthreads_count(x[i] > 0);
  int all = __syncthreads_and(x[i] > -100), any = __syncthreads_or(x[i] == 5);
  if (threadIdx.x == 0) y[blockIdx.x] = count + 1000 * all + 10000 * any;
}
"""
    made = translate(source, plan([launch("k", "n", "64", "x, y")], {"x": "in int32 64 * n", "y": "out int32 n"}))
    x = np.r_[np.full(60, -1), np.full(4, 5), np.full(64, 1)].astype(np.int32)
    assert list(run(made, {"x": x}, n=2)["y"]) == [4 + 1000 + 10000, 64 + 1000]


def test_atomics_on_shared_and_device_memory(run: Runner) -> None:
    source = """\
__global__ void k(const float* x, const int* bin, float* sums, int* most, unsigned* turns, int n) {
  __shared__ float part[4];
  if (threadIdx.x < 4) part[threadIdx.x] = 0.f;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&part[bin[i]], x[i]);
    atomicMax(most + bin[i], i);
    atomicInc(turns, 4);
  }
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&sums[threadIdx.x], part[threadIdx.x]);
}
"""
    arrays = {"x": "in float32 n", "bin": "in int32 n", "sums": "zeroed out float32 4", "most": "zeroed out int32 4",
              "turns": "zeroed out uint32 1"}  # fmt: skip
    made = translate(source, plan([launch("k", "ceildiv(n, 32)", "32", "x, bin, sums, most, turns, =n")], arrays))
    assert made.passes[0].init_value == 0.0
    x, bins = np.arange(70, dtype=np.float32), np.arange(70, dtype=np.int32) % 4
    result = run(made, {"x": x, "bin": bins}, n=70)
    np.testing.assert_allclose(result["sums"], [x[bins == b].sum() for b in range(4)])
    assert list(result["most"]) == [68, 69, 66, 67]
    assert result["turns"][0] == 70 % 5


def test_a_float_maximum_by_compare_and_swap(run: Runner, random: np.random.Generator) -> None:
    source = """\
__device__ float atomic_max(float* address, float value) {
  int* bits = (int*)address;
  int old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(y, x[i]);
}
"""
    made = translate(
        source,
        plan([launch("k", "ceildiv(n, 32)", "32", "x, y, =n")], {"x": "in float32 n", "y": "zeroed out float32 1"}),
    )
    x = random.standard_normal(100).astype(np.float32)
    assert run(made, {"x": x}, n=100)["y"][0] == x.max()


def test_atomics_on_an_array_that_holds_values_are_added_afterwards(run: Runner) -> None:
    source = """\
__global__ void k(const int* at, float* y, int n) { int i = threadIdx.x; if (i < n) atomicAdd(&y[at[i]], 1.f); }
"""
    made = translate(source, plan([launch("k", "1", "64", "at, y, =n")], {"at": "in int32 n", "y": "inout float32 3"}))
    assert [step.outputs for step in made.passes] == [("y_sum",), ("y_out",)]
    result = run(made, {"at": np.array([0, 2, 2], np.int32), "y": np.array([10, 20, 30], np.float32)}, n=3)
    assert list(result["y_out"]) == [11, 20, 32]


@pytest.mark.parametrize(
    ("kind", "call"), [("unsigned long long", "atomicAdd(p, 1ull)"), ("float", "atomicMax(p, 1.f)")]
)
def test_atomics_that_metal_has_not_are_refused(kind: str, call: str) -> None:
    dtype = "uint64" if "long" in kind else "float32"
    found = refusals(
        f"__global__ void k({kind}* p) {{ {call}; }}",
        plan([launch("k", "1", "1", "p")], {"p": f"zeroed out {dtype} 1"}),
    )
    assert len(found) == 1
    assert "atomic" in found[0]


def test_groups_become_the_words_for_what_they_do(run: Runner) -> None:
    source = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* x, int* y) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  __shared__ int last;
  int v = x[block.thread_rank()];
  for (int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o);
  if (block.thread_rank() == 63) last = v;
  block.sync();
  y[block.thread_rank()] = tile.thread_rank() == 0 ? v : last;
}
"""
    made = translate(source, plan([launch("k", "1", "64", "x, y")], {"x": "in int32 64", "y": "out int32 64"}))
    assert "tile" not in made.passes[0].source
    x = np.arange(64, dtype=np.int32)
    result = run(made, {"x": x}, n=1)["y"]
    assert list(result[::16]) == [x[begin : begin + 16].sum() for begin in range(0, 64, 16)]
    assert set(result[1:16].tolist()) == {63 * 2**4}  # its last lane adds its own value each time


def test_a_barrier_over_the_grid_is_refused() -> None:
    source = "__global__ void k(float* y) { cg::grid_group grid = cg::this_grid(); grid.sync(); y[0] = 1.f; }"
    found = refusals(source, plan([launch("k", "1", "32", "y")], {"y": "out float32 1"}))
    assert "a barrier over the whole grid has no counterpart" in found[0]


def test_blocks_that_wait_for_others_are_refused() -> None:
    last = """\
__global__ void k(const float* x, float* part, float* y, unsigned* done) {
  part[blockIdx.x] = x[blockIdx.x];
  __threadfence();
  if (atomicInc(done, gridDim.x) == gridDim.x - 1) for (int i = 0; i < gridDim.x; ++i) y[0] += part[i];
}
"""
    lock = "__global__ void k(int* lock, float* y) { while (atomicCAS(lock, 0, 1)) {} y[0] += 1; atomicExch(lock, 0); }"
    arrays = {"x": "in float32 n", "part": "scratch float32 n", "y": "zeroed out float32 1",
              "done": "zeroed scratch uint32 1", "lock": "zeroed scratch int32 1"}  # fmt: skip
    assert "make it two launches" in refusals(last, plan([launch("k", "n", "1", "x, part, y, done")], arrays))[0]
    assert "waits for other threads" in refusals(lock, plan([launch("k", "n", "1", "lock, y")], arrays))[0]


def test_votes_and_reductions_are_over_the_lanes_of_their_mask(run: Runner) -> None:
    source = """\
__global__ void k(const int* x, int* y) {
  int i = threadIdx.x, v = x[i];
  unsigned mask = i % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  y[i] = __any_sync(mask, v > 90) + 2 * __all_sync(mask, v > 5) + 4 * __reduce_add_sync(mask, v);
  y[64 + i] = __reduce_max_sync(mask, v) - __reduce_min_sync(mask, v);
  y[128 + i] = __popc(__match_any_sync(mask, v / 50));
}
"""
    made = translate(source, plan([launch("k", "1", "64", "x, y")], {"x": "in int32 64", "y": "out int32 192"}))
    x = np.random.default_rng(3).integers(100, size=64).astype(np.int32)
    halves = x.reshape(4, 16)
    votes = (halves > 90).any(1) + 2 * (halves > 5).all(1) + 4 * halves.sum(1)
    same = (halves[:, :, None] // 50 == halves[:, None, :] // 50).sum(2)
    want = np.concatenate([np.repeat(votes, 16), np.repeat(np.ptp(halves, axis=1), 16), same.ravel()])
    np.testing.assert_array_equal(run(made, {"x": x})["y"], want)


def test_an_operation_within_an_operation_keeps_its_parentheses(run: Runner) -> None:
    source = """\
#define TWICE(x) x * 2.f
__global__ void k(const __half2* q, const float* x, float* y) {
  int i = threadIdx.x;
  __half2 w = __hmul2(__hsub2(q[i], __float2half2_rn(8.f)), __float2half2_rn(0.5f));
  y[i] = __low2float(w) + __fdividef(__fadd_rn(x[i], 1.f), __fsub_rn(x[i], 9.f)) + TWICE(__fadd_rn(x[i], 1.f));
}
"""
    arrays = {"q": "in float16 2 * n", "x": "in float32 n", "y": "out float32 n"}
    made = translate(source, plan([launch("k", "1", "n", "q, x, y")], arrays))
    x = np.arange(8, dtype=np.float32)
    q = np.arange(16, dtype=np.float16)
    want = (q[0::2] - 8) * 0.5 + (x + 1) / (x - 9) + (x + 1) * 2
    np.testing.assert_allclose(run(made, {"q": q, "x": x}, n=8)["y"], want, rtol=1e-5)


def test_a_barrier_of_some_lanes_is_refused() -> None:
    source = """\
__global__ void k(float* y) {
  __shared__ float s[32];
  if (threadIdx.x < 16) { s[threadIdx.x] = 1.f; __syncwarp(0xffff); y[threadIdx.x] = s[threadIdx.x ^ 1]; }
}
"""
    found = refusals(source, plan([launch("k", "1", "32", "y")], {"y": "out float32 16"}))
    assert found[0].startswith("3:49: '__syncwarp' of a part of the warp")


def test_a_factor_of_more_than_24_bits_loses_the_others(run: Runner) -> None:
    source = "__global__ void k(const int* x, int* y) { y[threadIdx.x] = __mul24(x[threadIdx.x], 3); }"
    made = translate(source, plan([launch("k", "1", "3", "x, y")], {"x": "in int32 3", "y": "out int32 3"}))
    y = run(made, {"x": np.array([5, (1 << 24) + 7, 0x00FFFFFF], np.int32)})["y"]
    assert list(y) == [15, 21, -3]


def test_bytes_and_words_are_put_together_as_cuda_does(run: Runner) -> None:
    source = """\
__global__ void k(unsigned* y) {
  y[0] = __byte_perm(0x33221100u, 0x77665544u, 0x7520);
  y[1] = __byte_perm(0x80u, 0u, 0x888a);
  y[2] = __funnelshift_l(0x80000001u, 0x0000000fu, 4);
  y[3] = __funnelshift_r(0x80000001u, 0x0000000fu, 36);
}
"""
    made = translate(source, plan([launch("k", "1", "1", "y")], {"y": "out uint32 4"}))
    assert [hex(word) for word in run(made, {})["y"]] == ["0x77552200", "0xffffff00", "0xf8", "0xf8000000"]
