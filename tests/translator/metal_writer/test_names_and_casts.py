"""Locals that are renamed keep apart from others; casts to references; loops that begin elsewhere in each thread."""

from __future__ import annotations

import numpy as np

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

ARRAYS = {"x": "in float32 n", "y": "out float32 n"}


def test_a_renamed_local_is_none_that_another_name_stands_for(run: Runner) -> None:
    source = """\
__global__ void k(const float* _x, float* _y) {
  __shared__ float x[32], _w[32];
  x[threadIdx.x] = _x[threadIdx.x];
  _w[threadIdx.x] = 2.f;
  __syncthreads();
  { const float x_ = x[31 - threadIdx.x]; const float w = _w[threadIdx.x]; _y[threadIdx.x] = x_ * w; }
}
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], ARRAYS))
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=32)["y"], 2 * x[::-1])


def test_a_parameter_of_a_method_is_not_the_member_that_it_is_named_after(run: Runner) -> None:
    source = """\
struct Pair { float v; __device__ Pair(float _v) { v = _v; } __device__ float plus(float _v) const { return v + _v; } };
__device__ float twice(float _x) { float s = 0.f; for (int j = 0; j < 2; ++j) { float x = _x + j; s += x; } return s; }
__global__ void k(const float* x, float* y) { Pair p(x[threadIdx.x]); y[threadIdx.x] = p.plus(twice(1.f)); }
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], ARRAYS))
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=32)["y"], x + 3)


def test_a_cast_to_a_reference_is_the_object_there(run: Runner) -> None:
    source = """\
__device__ unsigned bits(uint32_t const& of) { return reinterpret_cast<uint32_t const&>(of) >> 31; }
__global__ void k(const float* x, float* y) {
  __shared__ __align__(16) float s[32];
  float own[4] = {0.f};
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float4& four = (float4&)(s[threadIdx.x / 4 * 4]);
  float4& mine = (float4&)own[0]; float v = x[threadIdx.x];
  mine.y = four.x + four.w;
  y[threadIdx.x] = own[1] + bits((uint32_t&)v);
}
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], ARRAYS))
    x = np.arange(32, dtype=np.float32) - 9
    four = x.reshape(8, 4)
    want = np.repeat(four[:, 0] + four[:, 3], 4) + (x < 0)
    np.testing.assert_array_equal(run(made, {"x": x}, n=32)["y"], want)


STRIDED = """\
__global__ void k(const float* x, float* y, int rows) {
  __shared__ float s[32];
  const int i = threadIdx.x, first = 0;
  float sum = 0.f;
  for (int t = first * 32 + i; t < BOUND + i; t += 32) {
    __syncthreads();
    s[i] = x[t];
    __syncthreads();
    sum += s[31 - i];
  }
  y[i] = sum;
}
"""


def test_a_barrier_in_a_loop_that_moves_with_the_thread_is_reached_by_all(run: Runner) -> None:
    arrays = {"x": "in float32 32 * rows", "y": "out float32 32"}
    launches = plan([launch("k", "1", "32", "x, y, =rows")], arrays, axes="rows")
    made = translate(STRIDED.replace("BOUND", "(first + rows) * 32"), launches)
    x = np.arange(96, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, rows=3)["y"], x.reshape(3, 32).sum(0)[::-1])
    (said,) = refusals(STRIDED.replace("BOUND", "(first + rows) * 32 - 2 *"), launches)
    assert "a barrier in a loop that threads of the block leave differently" in said


def test_a_struct_may_check_what_it_is(run: Runner) -> None:
    source = """\
template <int N> struct alignas(8) Two { static_assert(N == 2, "two"); float v[N]; };
__global__ void k(const float* x, float* y) { Two<2> t; t.v[1] = x[threadIdx.x]; y[threadIdx.x] = t.v[1]; }
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], ARRAYS))
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=32)["y"], x)
