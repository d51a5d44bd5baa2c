"""Functions that are template arguments, and arguments that are left to a function's defaults."""

from __future__ import annotations

import numpy as np

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

REDUCTIONS = """\
using reduction = float (*)(float);
__device__ float total(float v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__device__ float largest(float v) {
  for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}
template <reduction over>
__device__ float block(float v, bool again = false, float none = 0.f) {
  __shared__ float part[32];
  v = over(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float w = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : none;
  return again ? over(over(w)) : over(w);
}
__global__ void k(const float* x, float* y) {
  float most = block<largest>(x[threadIdx.x], false, -INFINITY);
  float sum = block<total>(x[threadIdx.x]);
  if (threadIdx.x == 0) { y[0] = most; y[1] = sum; }
}
"""


def test_a_template_of_functions_is_written_once_for_each(run: Runner) -> None:
    arrays = {"x": "in float32 96", "y": "out float32 2"}
    made = translate(REDUCTIONS, plan([launch("k", "1", "96", "x, y")], arrays))
    step = made.passes[0]
    assert "block_largest(x[thread_position_in_threadgroup.x], false, -INFINITY" in step.source
    assert "block_total(x[thread_position_in_threadgroup.x], false, 0.f" in step.source
    x = np.arange(96, dtype=np.float32) - 70
    np.testing.assert_array_equal(run(made, {"x": x})["y"], [25, x.sum()])


def test_the_lines_of_a_copy_are_those_of_its_original() -> None:
    arrays = {"x": "in float32 96", "y": "out float32 2"}
    step = translate(REDUCTIONS, plan([launch("k", "1", "96", "x, y")], arrays)).passes[0]
    text = REDUCTIONS.split("\n")
    for line, number in zip(step.header.split("\n"), step.header_lines, strict=True):
        if "threadgroup_barrier" in line:
            assert text[number - 1].strip() == "__syncthreads();"
    assert max(step.header_lines) <= len(text)


def test_a_kernel_gets_the_function_that_it_is_launched_with(run: Runner) -> None:
    source = """\
template <typename T> __device__ T square(const T& v) { return v * v; }
template <typename T, T (*act)(const T&)> __global__ void k(const T* x, T* y) { y[threadIdx.x] = act(x[threadIdx.x]); }
"""
    step = launch("k", "1", "n", "x, y", template=("float", "square<float>"))
    made = translate(source, plan([step], {"x": "in float32 n", "y": "out float32 n"}))
    assert made.passes[0].source.endswith("square<float>(x[thread_position_in_threadgroup.x]);")
    np.testing.assert_array_equal(run(made, {"x": np.arange(5, dtype=np.float32)}, n=5)["y"], [0, 1, 4, 9, 16])


def test_what_is_refused_in_a_copy_is_told_at_the_line_of_the_original() -> None:
    source = """\
__device__ float half_of(float v) { return 0.5f * v; }
template <float (*act)(float)> __device__ float apply(float v) {
  double d = v;
  return act(d);
}
__global__ void k(const float* x, float* y) { y[threadIdx.x] = apply<half_of>(x[threadIdx.x]); }
"""
    found = refusals(source, plan([launch("k", "1", "n", "x, y")], {"x": "in float32 n", "y": "out float32 n"}))
    assert found[0].startswith("3:3: 'double' has no counterpart")


def test_template_arguments_with_defaults_are_left_to_them(run: Runner) -> None:
    source = """\
#define BARRIER() __syncthreads()
template <typename T, int W = 32> __device__ T scan(T v) {
  for (int d = 1; d < W; d *= 2) {
    T o = __shfl_up_sync(0xffffffffu, v, d, W);
    if ((threadIdx.x & (W - 1)) >= d) v += o;
  }
  BARRIER();
  return v;
}
__global__ void k(const int* x, int* y) { y[threadIdx.x] = scan(x[threadIdx.x]) - scan<int, 8>(x[threadIdx.x]); }
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], {"x": "in int32 32", "y": "out int32 32"}))
    assert "threadgroup_barrier" in made.passes[0].header, "a macro without parameters is put in place"
    x = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], x.cumsum() - x.reshape(4, 8).cumsum(1).ravel())
