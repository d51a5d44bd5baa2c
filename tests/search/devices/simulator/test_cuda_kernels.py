"""CUDA files on the simulator: where threads stand, shared and constant memory, templates, launches in sequence."""

from __future__ import annotations

import numpy as np

from profiles.hardware import load_profile


def test_threads_know_where_they_stand_in_three_dimensions_also_in_device_functions(cuda):
    text = """
__device__ int place() {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    return block * (blockDim.x * blockDim.y * blockDim.z) + thread;
}
__global__ void k(int* out) {
    dim3 b = blockDim;
    uint3 t = threadIdx;
    out[place()] = 10000 * blockIdx.z + 1000 * blockIdx.x + 100 * t.z + 10 * t.y + t.x + 0 * b.x;
}"""
    got = cuda.run(text, cuda.launch("k", (2, 1, 3), (5, 4, 2), "out"), outputs={"out": (240, "int32")})["out"]
    z, x, tz, ty, tx = np.meshgrid(*map(np.arange, (3, 2, 2, 4, 5)), indexing="ij")
    np.testing.assert_array_equal(got, (10000 * z + 1000 * x + 100 * tz + 10 * ty + tx).ravel())


def test_a_grid_has_whole_blocks(cuda):
    text = "__global__ void k(int* n) { atomicAdd(n, 1); }"
    got = cuda.run(text, cuda.launch("k", 3, 100, "n"), zeroed={"n": (1, "int32")})["n"]
    assert got[0] == 300


def test_a_tile_in_two_dimensions_transposes(cuda, random):
    text = """
#define TILE 8
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x < cols && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * cols + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < rows && y < cols) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}"""
    x = random.standard_normal((11, 21)).astype(np.float32)
    launch = cuda.launch("transpose", (3, 2, 1), (8, 8, 1), "x", "out", 11, 21)
    got = cuda.run(text, launch, inputs={"x": x}, outputs={"out": (231, "float32")})["out"]
    np.testing.assert_array_equal(got.reshape(21, 11), x.T)


def test_dynamic_shared_memory_is_cut_into_arrays_of_several_types(cuda):
    text = """
__global__ void k(float* out, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    float* values = reinterpret_cast<float*>(raw);
    int* counts = (int*)(values + n);
    __shared__ float fixed[3];
    int t = threadIdx.x;
    values[t] = 0.5f * t;
    counts[t] = 2 * t;
    if (t < 3) fixed[t] = 100.0f;
    __syncthreads();
    out[t] = values[n - 1 - t] + counts[n - 1 - t] + fixed[t % 3];
}"""
    launch = cuda.launch("k", 1, 40, "out", 40, shared=40 * 8)
    got = cuda.run(text, launch, outputs={"out": (40, "float32")})["out"]
    np.testing.assert_array_equal(got, 2.5 * (39 - np.arange(40)) + 100)


def test_dynamic_shared_memory_is_aligned_after_static_arrays_of_odd_sizes(cuda):
    text = """
extern __shared__ float4 vectors[];
__shared__ char odd[5];
__device__ float fourth(const float4* vectors, int t) { return vectors[t].w; }
__device__ void put(int t) { vectors[t] = make_float4(t, 1, 2, 3); odd[t % 5] = 7; }
__global__ void k(float* out) {
    put(threadIdx.x);
    __syncthreads();
    float4 v = vectors[15 - threadIdx.x];
    out[threadIdx.x] = v.x + fourth(vectors, 3) + odd[threadIdx.x % 5];
}"""
    got = cuda.run(text, cuda.launch("k", 1, 16, "out", shared=256), outputs={"out": (16, "float32")})["out"]
    np.testing.assert_array_equal(got, 15 - np.arange(16) + 3 + 7)


def test_shared_memory_of_a_template_and_of_a_device_function_belongs_to_each_of_them(cuda):
    text = """
template <typename T, int N> __device__ T rotated(T v) {
    __shared__ T ring[N];
    ring[threadIdx.x] = v;
    __syncthreads();
    T r = ring[(threadIdx.x + 1) % N];
    __syncthreads();
    return r;
}
struct Pair { float a; int b; };
template <int N> __global__ void k(float* out) {
    __shared__ Pair pairs[N], first;
    int t = threadIdx.x;
    pairs[t] = {rotated<float, N>(t), rotated<int, N>(10 * t)};
    if (t == 0) first.a = 1000.0f;
    __syncthreads();
    out[t] = pairs[N - 1 - t].a + pairs[N - 1 - t].b + first.a;
}"""
    got = cuda.run(text, cuda.launch("k", 2, 48, "out", template=("48",)), outputs={"out": (48, "float32")})["out"]
    np.testing.assert_array_equal(got, 11 * ((48 - np.arange(48)) % 48) + 1000)


def test_template_arguments_are_deduced_from_those_of_the_launch(cuda):
    text = """
template <int N, typename T> __global__ void scale(const T* x, T* y, T by, int n) {
    static_assert(sizeof(T) == 4);
    for (int i = threadIdx.x; i < n; i += N) y[i] = x[i] * by;
}"""
    launch = cuda.launch("scale", 1, 32, "x", "y", 1.5, 50, template=("32",))
    got = cuda.run(text, launch, inputs={"x": np.arange(50, dtype=np.float32)}, outputs={"y": (50, "float32")})["y"]
    np.testing.assert_array_equal(got, 1.5 * np.arange(50))


def test_launches_run_in_order_with_scratch_between_them(cuda, random):
    text = """
__global__ void partial(const float* x, float* sums, int n) {
    __shared__ float s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = 32; half > 0; half >>= 1) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}
__global__ void finish(const float* sums, float* out, int blocks) {
    float sum = 0;
    for (int b = 0; b < blocks; ++b) sum += sums[b];
    *out = sum;
}"""
    x = random.integers(0, 100, 300).astype(np.float32)
    first = cuda.launch("partial", 5, 64, "x", "sums", 300)
    second = cuda.launch("finish", 1, 1, "sums", "out", 5)
    arrays = {"inputs": {"x": x}, "scratch": {"sums": (5, "float32")}, "outputs": {"out": (1, "float32")}}
    got = cuda.run(text, first, second, **arrays)
    assert set(got) == {"out"}
    assert got["out"][0] == x.sum()


def test_arrays_that_are_read_and_written_begin_with_what_is_given(cuda):
    text = "__global__ void k(float* y, const float* x, float a) { int i = threadIdx.x; y[i] = a * x[i] + y[i]; }"
    x, y = np.arange(33, dtype=np.float32), np.full(33, 0.5, np.float32)
    got = cuda.run(text, cuda.launch("k", 1, 33, "y", "x", 2.0), inputs={"x": x}, inout={"y": y})["y"]
    np.testing.assert_array_equal(got, 2 * x + 0.5)


def test_a_pointer_may_point_into_an_array_and_a_null_pointer_is_known(cuda):
    text = """
__global__ void k(const float* a, const float* b, const float* bias, float* out) {
    out[threadIdx.x] = a[threadIdx.x] + 100 * b[threadIdx.x] + (bias != nullptr ? bias[0] : 0.0f);
}"""
    x = np.arange(24, dtype=np.float32)
    launch = cuda.launch("k", 1, 8, "x", ("x", 16), 0, ("out", 4))
    got = cuda.run(text, launch, inputs={"x": x}, inout={"out": np.zeros(12, np.float32)})["out"]
    np.testing.assert_array_equal(got, [0, 0, 0, 0, *(x[:8] + 100 * x[16:])])


def test_a_struct_is_passed_whole(cuda):
    text = """
struct Params { const float* __restrict__ x; float* out; int n; float scale; bool flip; size_t stride; };
__global__ void k(const Params p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.out[i] = p.scale * p.x[i * p.stride] * (p.flip ? -1.0f : 1.0f);
}"""
    x = np.arange(40, dtype=np.float32)
    launch = cuda.launch("k", 2, 16, ["x", "out", 20, 0.25, 1, 2])
    got = cuda.run(text, launch, inputs={"x": x}, outputs={"out": (20, "float32")})["out"]
    np.testing.assert_array_equal(got, -0.25 * x[::2])


def test_constant_memory_has_the_values_of_the_source_or_those_of_the_array_of_its_name(cuda):
    text = """
__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
static __constant__ const float one = 1.0f;
static __device__ __constant__ int hundreds[2] = {
    100, 200};
__constant__ int offsets[4];
struct Shape { int rows, cols; };
__constant__ __device__ Shape shape;
__device__ float weight(int i) { return weights[i]; }
__global__ void k(float* out) {
    int t = threadIdx.x;
    out[t] = weight(t % 3) * offsets[t % 4] + shape.cols + one + hundreds[1];
}"""
    given = {"offsets": np.array([4, 8, 12, 16], np.int32), "shape": np.array([1, 100], np.int32)}
    got = cuda.run(text, cuda.launch("k", 2, 12, "out"), inputs=given, outputs={"out": (12, "float32")})["out"]
    expected = np.tile([0.25, 0.5, 0.25], 4) * np.tile([4, 8, 12, 16], 3) + 100 + 1 + 200
    np.testing.assert_array_equal(got, expected)


def test_the_last_block_to_finish_sums_up_with_a_device_counter(cuda):
    text = """
__device__ unsigned int done = 0;
__device__ float partial[8];
__global__ void k(const float* x, float* out) {
    __shared__ bool last;
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += partial[b];
        out[0] = sum + done;
    }
}"""
    x = np.arange(256, dtype=np.float32)
    got = cuda.run(text, cuda.launch("k", 8, 32, "x", "out"), inputs={"x": x}, outputs={"out": (1, "float32")})["out"]
    assert got[0] == x.sum()


def test_an_early_return_before_a_barrier_is_tolerated(cuda):
    text = """
__global__ void k(float* out, int n) {
    __shared__ float s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}"""
    got = cuda.run(text, cuda.launch("k", 1, 64, "out", 50), outputs={"out": (50, "float32")})["out"]
    np.testing.assert_array_equal(got, 49 - np.arange(50))


def test_kernels_in_namespaces_with_linkage_of_c_macros_and_functors(cuda):
    text = """
#include <cuda_fp16.h>
#define HD __host__ __device__ __forceinline__
namespace ops { namespace detail {
template <class T> struct Add { HD T operator()(T a, T b) const { return a + b; } };
template <class F, class T> HD T fold(F f, T a, T b, T c) { return f(f(a, b), c); }
__global__ void __launch_bounds__(64, 2) k(float* out) {
    auto twice = [] __device__ (float v) { return 2 * v; };
    out[threadIdx.x] = twice(fold(Add<float>(), 1.0f, 2.0f, (float)threadIdx.x));
}
} }
extern "C" {
__global__ void plain(float* out) { out[threadIdx.x] += std::max(1.0f, 3.0f) + sizeof(size_t); }
}"""
    first, second = cuda.launch("ops::detail::k", 1, 8, "out"), cuda.launch("plain", 1, 8, "out")
    got = cuda.run(text, first, second, outputs={"out": (8, "float32")})["out"]
    np.testing.assert_array_equal(got, 2 * (3 + np.arange(8)) + 3 + 8)


def test_a_file_may_have_its_own_operators_and_overloads_of_cudas_functions(cuda):
    text = """
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ float atomicMax(float* at, float value) {
    int* bits = (int*)at;
    int old = *bits, seen;
    do {
        seen = old;
        if (__int_as_float(seen) >= value) break;
        old = atomicCAS(bits, seen, __float_as_int(value));
    } while (seen != old);
    return __int_as_float(old);
}
__global__ void k(const float4* x, float* most, int* count, float4* sum) {
    float4 v = x[threadIdx.x];
    atomicMax(most, v.x);
    atomicMax(count, (int)threadIdx.x);
    sum[threadIdx.x] = v + v;
}"""
    x = np.arange(40, dtype=np.float32)
    arrays = {"inputs": {"x": x}, "zeroed": {"most": (1, "float32"), "count": (1, "int32")}}
    launch = cuda.launch("k", 1, 10, "x", "most", "count", "sum")
    program = cuda.program(text, launch, outputs={"sum": (40, "float32")}, **arrays)
    got = cuda.device.run(program, {"x": x}, time_limit=20).outputs
    assert (got["most"][0], got["count"][0]) == (36, 9)
    np.testing.assert_array_equal(got["sum"], 2 * x)


def test_printing_does_nothing_and_a_copy_in_the_background_is_done(cuda):
    text = """
#include <cstdio>
__global__ void k(const float* x, float* out) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[4 * threadIdx.x], &x[4 * threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (threadIdx.x == 0) printf("%d \\"threads\\"\\n", blockDim.x);
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = s[31 - 4 * threadIdx.x - i];
}""".replace('\\"', "'").replace("\\n", "")
    x = np.arange(32, dtype=np.float32)
    got = cuda.run(text, cuda.launch("k", 1, 8, "x", "out"), inputs={"x": x}, outputs={"out": (32, "float32")})["out"]
    np.testing.assert_array_equal(got, x[::-1])


def test_declarations_may_be_written_in_any_of_the_forms_that_cuda_has(cuda):
    text = """
#include <cuda_runtime.h>
#define N 32
__device__ static const int lut[4] = {1, 2, 3, 4};
const __device__ float scale[] = {0.5f, 2.0f};
static __device__ __forceinline__ float half_of(float v) { return v * scale[0]; }
inline __device__ float twice(float v) { return v * scale[1]; }
template <typename T> __device__ T identity(T v);
template <> __device__ float identity<float>(float v) { return v; }
struct Vec {
    float x;
    Vec() = default;
    __device__ explicit Vec(float a) : x(a) {}
    __device__ Vec& operator+=(const Vec& other) { x += other.x; return *this; }
    __host__ __device__ static constexpr int width() { return 1; }
    __device__ float get() const;
};
__device__ float Vec::get() const { return x; }
template <int M> static __global__ void __launch_bounds__(N)
    k(float* __restrict__ out,
      const int n) {
    static __shared__ float a[2][M], b[M];
    volatile __shared__ int flag;
    __shared__ alignas(16) float4 wide[M / 4];
    __shared__ union { float f[M]; int i[M]; } both;
    __shared__ float* where;
    __shared__
        unsigned long long int long_name  // with a comment
        [M];
    const int warpSize = 32, t = threadIdx.x;
    if (t == 0) { flag = 1; where = b; }
    both.i[t] = __float_as_int(1.0f);
    long_name[t] = lut[t & 3];
    if (t < M / 4) wide[t] = make_float4(1, 2, 3, 4);
    a[t & 1][t] = half_of(t);
    __syncthreads();
    where[t] = twice(a[t & 1][t]);
    Vec v(identity(b[t]));
    v += Vec(both.f[t]);
#pragma unroll 4
    for (int i = 0; i < n; ++i) v += Vec(wide[t / 4].w);
    switch (t % 2) {
        case 0: v.x += long_name[t]; break;
        default: goto done;
    }
done:
    out[t] = v.get() + flag + Vec::width() + (warpSize == 32);
}"""
    launch = cuda.launch("k", 1, 32, "out", 2, template=("32",))
    got = cuda.run(text, launch, outputs={"out": (32, "float32")})["out"]
    t = np.arange(32)
    np.testing.assert_array_equal(got, t + 1 + 2 * 4 + np.where(t % 2 == 0, t % 4 + 1, 0) + 3)


def test_the_work_of_a_launch_is_counted(cuda):
    text = """
__global__ void axpy(const float* x, float* y, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
    __syncthreads();
}"""
    x, y = np.ones(256, np.float32), np.ones(256, np.float32)
    program = cuda.program(text, cuda.launch("axpy", 4, 64, "x", "y", 2.0), inputs={"x": x}, inout={"y": y})
    (counts,) = cuda.device.count(program, {"x": x, "y": y}, load_profile("apple-m3-max"), time_limit=20)
    assert (counts.threadgroups, counts.threads_per_threadgroup, counts.barriers) == (4, 64, 4)
    assert counts.flops == 2 * 256
    assert (counts.footprint_read_bytes, counts.footprint_write_bytes) == (2048, 1024)
