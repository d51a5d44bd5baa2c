"""Structs with template parameters, methods and types of their own; casts and aliases that name them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

PACKED = """\
template <typename T>
struct alignas(16) Packed {
  Packed() = default;
  __device__ explicit Packed(int4 bits) { memcpy(&v, &bits, sizeof(bits)); }
  __device__ static Packed constant(T value) { Packed p; for (int i = 0; i < size; ++i) p.v[i] = value; return p; }
  __device__ T& operator[](int i) { return v[i]; }
  __device__ const T& operator[](int i) const { return v[i]; }
  __device__ int4 bits() const { int4 b; memcpy(&b, &v, sizeof(b)); return b; }
  static constexpr const int size = sizeof(int4) / sizeof(T);
  T v[size];
};
template <typename T> __device__ Packed<T> load(const T* at) { return Packed<T>(*reinterpret_cast<const int4*>(at)); }
template <typename T> __device__ void store(T* at, Packed<T> p) { *reinterpret_cast<int4*>(at) = p.bits(); }
"""


def test_packed_loads_go_through_a_struct_template(run: Runner) -> None:
    source = (
        PACKED
        + """\
typedef Packed<float> P;
__global__ void k(const float* x, float* y) {
  int i = threadIdx.x * P::size;
  const P in = load(x + i);
  P out = P::constant(1.f);
  for (int j = 0; j < P::size; ++j) out[j] += in[j] * j;
  store(y + i, out);
}
"""
    )
    made = translate(source, plan([launch("k", "1", "n // 4", "x, y")], {"x": "in float32 n", "y": "out float32 n"}))
    header = made.passes[0].header
    assert "struct alignas(16) Packed" in header
    assert "static constexpr constant int size = sizeof(int4) / sizeof(T);" in header
    assert "thread T& operator[](int i)" in header
    assert "static Packed constant_(T value)" in header, "a word of Metal can't be a method's name"
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=32)["y"], 1 + x * (np.arange(32) % 4))


def test_a_type_that_a_function_names_is_followed(run: Runner) -> None:
    source = """\
template <typename T, int N> struct __align__(sizeof(T) * N) vec_n { T val[N]; };
template <typename T, int N> __global__ void k(const T* x, T* y) {
  using V = vec_n<T, N>;
  auto* from = reinterpret_cast<const V*>(x);
  V one = from[threadIdx.x];
  for (int j = 0; j < N; ++j) y[threadIdx.x * N + j] = (T)(2.f * one.val[j]) + (T)1;
}
"""
    made = translate(
        source,
        plan(
            [launch("k", "1", "n // 2", "x, y", template=("float", "2"))], {"x": "in float32 n", "y": "out float32 n"}
        ),
    )
    assert "struct alignas(sizeof(T) * N) vec_n" in made.passes[0].header
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=16)["y"], 2 * x + 1)


def test_a_type_within_a_specialisation_is_followed(run: Runner) -> None:
    source = """\
template <typename T, int N> struct Vec {};
template <> struct Vec<float, 2> { using Type = float2; };
template <typename T> __global__ void k(const T* x, T* y) {
  using V = typename Vec<T, 2>::Type;
  V v = *reinterpret_cast<const V*>(x + 2 * threadIdx.x);
  y[threadIdx.x] = v.x - v.y;
}
"""
    made = translate(
        source,
        plan([launch("k", "1", "n", "x, y", template=("float",))], {"x": "in float32 2 * n", "y": "out float32 n"}),
    )
    x = np.arange(20, dtype=np.float32) ** 2
    np.testing.assert_array_equal(run(made, {"x": x}, n=10)["y"], x[0::2] - x[1::2])


@pytest.mark.parametrize("called", ["Act()(x[i])", "Act{}(x[i])", "op(x[i])"])
def test_an_object_that_is_called_is_a_functor(run: Runner, called: str) -> None:
    source = f"""\
struct Twice {{ float by = 2.f; __device__ float operator()(float v) const {{ return by * v; }} }};
template <typename Act> __global__ void k(const float* x, float* y) {{
  int i = threadIdx.x;
  Act op;
  y[i] = {called} + op.by;
}}
"""
    made = translate(
        source,
        plan([launch("k", "1", "n", "x, y", template=("Twice",))], {"x": "in float32 n", "y": "out float32 n"}),
    )
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=9)["y"], 2 * x + 2)


def test_limits_of_a_type_keep_their_name(run: Runner) -> None:
    source = """\
#include <limits>
template <typename T> __global__ void k(const T* x, T* y) {
  T m = -std::numeric_limits<T>::infinity();
  for (int i = 0; i < 4; ++i) m = fmaxf(m, x[4 * threadIdx.x + i]);
  y[threadIdx.x] = m > 0 ? m : std::numeric_limits<float>::lowest();
}
"""
    made = translate(
        source,
        plan([launch("k", "1", "n", "x, y", template=("float",))], {"x": "in float32 4 * n", "y": "out float32 n"}),
    )
    x = np.arange(12, dtype=np.float32) - 4
    y = run(made, {"x": x}, n=3)["y"]
    np.testing.assert_array_equal(y, [np.finfo(np.float32).min, 3, 7])


def test_flags_beside_an_array_that_is_written_by_structs_are_refused() -> None:
    source = """\
struct Two { float v[2]; };
__global__ void k(float* x, const int* at) {
  Two two = reinterpret_cast<Two*>(x)[threadIdx.x];
  reinterpret_cast<Two*>(x)[at[threadIdx.x]] = two;
}
"""
    arrays = {"x": "inout float32 2 * n", "at": "in int32 n"}
    found = refusals(source, plan([launch("k", "1", "n", "x, at")], arrays))
    assert "elements of an array that is changed in place are written as 'Two'" in found[0]


def test_operators_and_methods_work_on_copies_of_what_lies_in_shared_memory(run: Runner) -> None:
    source = """\
struct Sum {
  float s;
  int n;
  __device__ Sum operator+(const Sum& o) const { return Sum{s + o.s, n + o.n}; }
  __device__ bool less(const Sum& o) const { return s < o.s; }
};
__global__ void k(const float* x, float* y) {
  __shared__ Sum part[32];
  part[threadIdx.x] = Sum{x[threadIdx.x], 1};
  __syncthreads();
  for (int o = 16; o > 0; o /= 2) {
    if (threadIdx.x < o) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + o];
    __syncthreads();
  }
  Sum all = part[0];
  y[threadIdx.x] = all.s / all.n + all.less(part[1]);
}
"""
    made = translate(source, plan([launch("k", "1", "32", "x, y")], {"x": "in float32 32", "y": "out float32 32"}))
    assert "Sum(part[thread_position_in_threadgroup.x + o])" in made.passes[0].source, (
        "Metal's methods are the thread's"
    )
    assert "all.less(Sum(part[1]))" in made.passes[0].source
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], np.full(32, 15.5))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("__shared__ Built b[32]; b[threadIdx.x] = Built(1.f);", "'Built' has constructors, which threadgroup memory"),
        ("__shared__ Plain p[32]; p[threadIdx.x] += Plain{1.f};", "'+=' on a struct that is not local"),
    ],
)
def test_what_only_the_threads_own_memory_can_do_is_refused_elsewhere(body: str, reason: str) -> None:
    source = f"""\
struct Built {{ float v; __device__ Built() = default; __device__ Built(float a) : v(a) {{}} }};
struct Plain {{ float v; __device__ Plain& operator+=(const Plain& o) {{ v += o.v; return *this; }} }};
__global__ void k(float* y) {{ {body} y[threadIdx.x] = 0.f; }}
"""
    assert reason in refusals(source, plan([launch("k", "1", "32", "y")], {"y": "out float32 32"}))[0]


def test_a_local_that_a_constructor_builds_is_no_function(run: Runner) -> None:
    source = """\
struct Complex {
  float re, im;
  __device__ Complex(float r = 0.f, float i = 0.f) : re(r), im(i) {}
  __device__ Complex operator*(const Complex& o) const { return Complex(re * o.re - im * o.im, re * o.im + im * o.re); }
};
template <typename Z> __global__ void k(const float* x, float* y) {
  float a = x[threadIdx.x];
  Z turn(a * cosf(a), a);
  Z none = a;
  Z by(a);
  Z both = turn * by;
  y[threadIdx.x] = both.im + none.re + Z().re;
}
"""
    step = launch("k", "1", "n", "x, y", template=("Complex",))
    made = translate(source, plan([step], {"x": "in float32 n", "y": "out float32 n"}))
    assert "Z by = Z(a);" in made.passes[0].source
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, n=5)["y"], x * x + x)


def test_a_union_stays_one(run: Runner) -> None:
    source = """\
union Bits { float f; unsigned u; };
__global__ void k(const float* x, unsigned* y) { Bits b; b.f = x[threadIdx.x]; y[threadIdx.x] = b.u; }
"""
    made = translate(source, plan([launch("k", "1", "n", "x, y")], {"x": "in float32 n", "y": "out uint32 n"}))
    x = np.array([1.0, -2.5], np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=2)["y"], x.view(np.uint32))
