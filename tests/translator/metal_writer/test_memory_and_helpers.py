"""Address spaces, shared memory and the functions that a kernel calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

TWO_SPACES = """\
__device__ float total(const float* values, int count) {
  float sum = 0.f;
  const float* end = values + count;
  while (values < end) sum += *values++;
  return sum;
}
__global__ void rows(const float* x, float* y, int n) {
  __shared__ float tile[32];
  tile[threadIdx.x] = 2.f * x[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = total(tile, 32) - total(x + blockIdx.x * 32, 32);
}
"""


def test_a_function_given_shared_and_device_memory_takes_either(run: Runner, random: np.random.Generator) -> None:
    made = translate(
        TWO_SPACES, plan([launch("rows", "n", "32", "x, y, =n")], {"x": "in float32 32 * n", "y": "out float32 n"})
    )
    x = random.standard_normal(96).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, n=3)["y"], x.reshape(3, 32).sum(1), rtol=1e-4, atol=1e-4)


def test_shared_memory_of_functions_is_declared_in_the_kernel_and_passed(run: Runner) -> None:
    source = """\
template <typename T>
__device__ T block_sum(T v) {
  __shared__ T partial[32];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += partial[i];
  __syncthreads();
  return sum;
}
__device__ int twice(int v) { return block_sum(2 * v); }
__global__ void sums(const int* x, int* y) {
  int own = x[blockIdx.x * blockDim.x + threadIdx.x];
  int sum = block_sum(own) + twice(own);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
    made = translate(source, plan([launch("sums", "n", "64", "x, y")], {"x": "in int32 64 * n", "y": "out int32 n"}))
    assert made.passes[0].source.count("threadgroup int partial[32];") == 1
    x = np.arange(128, dtype=np.int32)
    assert list(run(made, {"x": x}, n=2)["y"]) == [3 * x[:64].sum(), 3 * x[64:].sum()]


def test_dynamic_shared_memory_is_carved_by_pointer_casts(run: Runner) -> None:
    source = """\
__global__ void reverse(const float* x, const int* order, float* y, int n) {
  extern __shared__ char smem[];
  float* values = (float*)smem;
  int* places = (int*)(values + n);
  values[threadIdx.x] = x[threadIdx.x];
  places[threadIdx.x] = order[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = values[places[threadIdx.x]];
}
"""
    arrays = {"x": "in float32 n", "order": "in int32 n", "y": "out float32 n"}
    made = translate(source, plan([launch("reverse", "1", "n", "x, order, y, =n", shared="n * 8")], arrays))
    assert "alignas(16) threadgroup char smem[shared_bytes];" in made.passes[0].source
    assert ("shared_bytes", "n * 8") in made.passes[0].template
    x = np.arange(50, dtype=np.float32)
    result = run(made, {"x": x, "order": np.arange(50, dtype=np.int32)[::-1].copy()}, n=50)["y"]
    np.testing.assert_array_equal(result, x[::-1])


def test_vector_loads_name_the_memory_that_they_read(run: Runner, random: np.random.Generator) -> None:
    source = """\
__global__ void scale(const float* __restrict__ x, float* __restrict__ y, int quads, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  float4 v = reinterpret_cast<const float4*>(x)[i];
  v.x *= by; v.y *= by; v.z *= by; v.w *= by;
  *reinterpret_cast<float4*>(&y[4 * i]) = make_float4(v.w, v.z, v.y, v.x);
}
"""
    arrays = {"x": "in float32 4 * n", "y": "out float32 4 * n"}
    made = translate(source, plan([launch("scale", "ceildiv(n, 64)", "64", "x, y, =n, .by")], arrays, scalars="by"))
    assert "reinterpret_cast<const device float4*>(x)[i]" in made.passes[0].source
    assert "reinterpret_cast<device float4*>(&y[4 * i])" in made.passes[0].source
    assert made.notes == ("'x' must have at least 8 elements: MLX passes smaller inputs in constant memory",)
    x = random.standard_normal(120).astype(np.float32)
    result = run(made, {"x": x, "by": np.float32(3)}, n=30)["y"]
    np.testing.assert_allclose(result.reshape(30, 4), 3 * x.reshape(30, 4)[:, ::-1], rtol=1e-6)


def test_references_structs_and_operators_come_along(run: Runner) -> None:
    source = """\
struct Best {
  float value;
  int index;
  __device__ bool beats(const Best& other) const { return value > other.value; }
};
__device__ Best operator+(Best a, Best b) { return a.beats(b) ? a : b; }
__device__ void offer(Best& best, float value, int index) {
  Best other = {value, index};
  best = best + other;
}
__global__ void argmax(const float* x, int* y, int n) {
  Best best = {-INFINITY, -1};
  for (int i = 0; i < n; ++i) offer(best, x[i], i);
  y[0] = best.index;
}
"""
    made = translate(source, plan([launch("argmax", "1", "1", "x, y, =n")], {"x": "in float32 n", "y": "out int32 1"}))
    assert "inline void offer(thread Best& best, float value, int index)" in made.passes[0].header
    x = np.array([1, 5, 2, 4], np.float32)
    assert run(made, {"x": x}, n=4)["y"][0] == 1


def test_constant_tables_and_macros_go_into_the_header(run: Runner) -> None:
    source = """\
#define TAPS 3
#define CLAMPED(i, n) ((i) < 0 ? 0 : (i) < (n) ? (i) : (n) - 1)
#define LANE (threadIdx.x % 32)
__constant__ float kernel_taps[TAPS] = {0.25f, 0.5f, 0.25f};
__global__ void smooth(const float* x, float* y, int n) {
  int i = blockIdx.x * 32 + LANE;
  if (i >= n) return;
  float sum = 0.f;
  for (int t = 0; t < TAPS; ++t) sum += kernel_taps[t] * x[CLAMPED(i + t - 1, n)];
  y[i] = sum;
}
"""
    made = translate(
        source,
        plan([launch("smooth", "ceildiv(n, 32)", "32", "x, y, =n")], {"x": "in float32 n", "y": "out float32 n"}),
    )
    assert "constant float kernel_taps[TAPS] = {0.25f, 0.5f, 0.25f};" in made.passes[0].header
    assert "LANE" not in made.passes[0].header
    x = np.arange(40, dtype=np.float32) ** 2
    padded = np.pad(x, 1, mode="edge")
    expected = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    np.testing.assert_allclose(run(made, {"x": x}, n=40)["y"], expected, rtol=1e-6)


def test_names_that_mean_something_else_in_metal_are_changed(run: Runner) -> None:
    source = """\
__device__ float clamp(float v, float low, float high) { return fminf(fmaxf(v, low), high); }
__global__ void fit(const float* device, float* y, int n) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int grid_size = gridDim.x;
  int device_shape = n;
  if (thread < device_shape) y[thread] = clamp(device[thread], 0.f, 1.f) + grid_size;
}
"""
    made = translate(
        source,
        plan(
            [launch("fit", "ceildiv(n, 32)", "32", "device, y, =n")], {"device": "in float32 n", "y": "out float32 n"}
        ),
    )
    assert made.inputs[0].name == "device_"
    assert made.inputs[0].origin == "device"
    x = np.array([-1, 0.5, 2], np.float32)
    np.testing.assert_array_equal(run(made, {"device_": x}, n=3)["y"], [1, 1.5, 2])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("__shared__ float big[9000]; big[0] = x[0]; y[0] = big[0];", "36,000 bytes of shared memory"),
        ("auto f = [](float v) { return v; }; y[0] = f(x[0]);", "a lambda"),
        ("double d = x[0]; y[0] = d;", "'double'"),
        ("volatile float* v = y; v[0] = x[0];", "'volatile'"),
        ("y[0] = mystery(x[0]);", "'mystery' is not known"),
        ("y[0] = tex2D<float>(0, 1.f, 1.f);", "'tex2D' is not known"),
        ("y[0] = x[0]; asm volatile(\"bar.sync 1, 64;\");", "inline PTX"),
        ("long long address = (long long)x; y[0] = address;", "a pointer is made a number"),
        ("goto end; end: y[0] = x[0];", "goto"),
    ],
)  # fmt: skip
def test_what_metal_has_not_is_refused_by_name(body: str, reason: str) -> None:
    source = f"__global__ void k(const float* x, float* y) {{ {body} }}"
    found = refusals(source, plan([launch("k", "1", "32", "x, y")], {"x": "in float32 n", "y": "out float32 n"}))
    assert any(reason in text for text in found), found


def test_a_function_that_changes_what_it_is_given_has_a_copy_for_each_memory(run: Runner) -> None:
    source = """\
template <typename T>
__device__ void exchange(T& a, T& b) {
  T kept = a;
  a = b;
  b = kept;
}
__global__ void k(const float* x, float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  float low = 1.f, high = 5.f;
  exchange(low, high);
  __syncthreads();
  if (threadIdx.x < 16) exchange(s[threadIdx.x], s[31 - threadIdx.x]);
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x] + low;
}
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], {"x": "in float32 32", "y": "out float32 32"}))
    header = made.passes[0].header
    assert "inline void exchange(thread T& a, thread T& b)" in header
    assert "inline void exchange_threadgroup(threadgroup T& a, threadgroup T& b)" in header
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=1)["y"], x[::-1] + 5)


def test_operators_on_vectors_are_metals_own_where_they_mean_the_same(run: Runner) -> None:
    source = """\
__device__ float4 operator*(float s, float4 v) { return make_float4(s * v.x, s * v.y, s * v.z, s * v.w); }
__device__ float4 operator/(float4 a, float4 b) { return make_float4(a.x / b.w, a.y, a.z, a.w); }
__global__ void k(const float4* x, float4* y) { y[threadIdx.x] = 2.f * x[threadIdx.x]; }
"""
    arrays = {"x": "in float32 8", "y": "out float32 8"}
    made = translate(source, plan([launch("k", "1", "2", "x, y")], arrays))
    assert made.passes[0].header == ""
    assert "const device float4* x_ = reinterpret_cast<const device float4*>(x);" in made.passes[0].source
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=1)["y"], 2 * x)
    wrong = source.replace("2.f * x[threadIdx.x]", "x[0] / x[1]")
    assert "not componentwise" in refusals(wrong, plan([launch("k", "1", "2", "x, y")], arrays))[0]
