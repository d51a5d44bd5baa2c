"""Functors: put in where they are template arguments, made anew in kernels that get them by value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner
from translator.cuda_source import parse_cuda
from translator.launches import read_launches
from translator.metal_writer import write_metal
from translator.translation import Translation

OPERATIONS = """\
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };
struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
"""
MAP = """
template <class Op> __global__ void k(const float* x, float* y, int n, Op op) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = op(x[i]);
}
"""


def translated(text: str) -> Translation:
    source = parse_cuda(text, "k.cu")
    plan = read_launches(source)
    assert [question.message for question in plan.questions] == []
    made = write_metal(source, plan)
    assert [str(refusal) for refusal in made.refusals] == []
    return made


def reasons(text: str) -> list[str]:
    source = parse_cuda(text, "k.cu")
    plan = read_launches(source)
    if plan.questions:
        return [question.message for question in plan.questions]
    made = write_metal(source, plan)
    assert made.passes == ()
    return [str(refusal) for refusal in made.refusals]


def test_each_launch_gets_a_copy_for_its_functor(run: Runner) -> None:
    made = translated(
        OPERATIONS
        + """\
template <typename Op> __global__ void fold(const float* x, float* y, int c, Op op) {
  float v = x[blockIdx.x * c];
  for (int i = 1; i < c; ++i) v = op(v, x[blockIdx.x * c + i]);
  y[blockIdx.x] = v;
}
void run(const float* x, float* y, float* z, int rows, int c) {
  fold<<<rows, 1>>>(x, y, c, Sum());
  fold<<<rows, 1>>>(x, z, c, Max{});
}
"""
    )
    assert [step.name for step in made.passes] == ["fold_Sum", "fold_Max"]
    assert [step.kernel for step in made.passes] == ["fold", "fold"], "a person knows the kernel by its own name"
    assert made.passes[0].source_lines == (4, 5, 6), "the lines of a copy are those of the original"
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = run(made, {"x": x.ravel()}, rows=3, c=4)
    np.testing.assert_array_equal(got["y"], x.sum(axis=1))
    np.testing.assert_array_equal(got["z"], x.max(axis=1))


def test_functions_get_a_copy_for_each_functor_with_shared_memory_of_its_own(run: Runner) -> None:
    made = translated(
        OPERATIONS
        + """\
template <class Op> __device__ float block(float v, Op op) {
  __shared__ float s[64];
  s[threadIdx.x] = v;
  __syncthreads();
  float r = s[0];
  for (int i = 1; i < 64; ++i) r = op(r, s[i]);
  return r;
}
__global__ void k(const float* x, float* y) {
  float v = x[blockIdx.x * 64 + threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = block(v, Sum()) + block(v, Max());
}
void run(const float* x, float* y, int blocks) { k<<<blocks, 64>>>(x, y); }
"""
    )
    assert made.passes[0].source.count("threadgroup float") == 2, "else the second call would write what is still read"
    x = np.arange(128, dtype=np.float32).reshape(2, 64)
    want = np.repeat(x.sum(axis=1) + x.max(axis=1), 64)
    np.testing.assert_array_equal(run(made, {"x": x.ravel()}, blocks=2)["y"], want)


def test_fields_of_several_types_are_passed_one_by_one(run: Runner) -> None:
    made = translated(
        """\
struct Range { unsigned lo; unsigned char flag; };
struct Mix {
  bool neg; long long big; Range r; float w[2];
  __device__ float operator()(float x) const {
    float v = x + (float)(big % 5) + r.lo + r.flag + w[0] - w[1];
    return neg ? -v : v;
  }
};
"""
        + MAP
        + """\
void run(const float* x, float* y, int n, long long big, unsigned lo, float w0, float w1, bool neg) {
  k<<<(n + 63) / 64, 64>>>(x, y, n, Mix{neg, big, {lo, 3}, {w0, w1}});
}
"""
    )
    x = np.arange(5, dtype=np.float32)
    got = run(made, {"x": x, "w0": np.float32(8), "w1": np.float32(1)}, n=5, big=8, lo=10, neg=1)["y"]
    np.testing.assert_array_equal(got, -(x + 3 + 10 + 3 + 8 - 1))


def test_what_a_constructor_makes_is_made_by_it_again(run: Runner) -> None:
    made = translated(
        """\
class Affine {
 public:
  explicit Affine(float s, float t = 2.f) : scale_(1.f / s), shift_(t) {}
  __device__ float operator()(float v) const { return v * scale_ + shift_; }
 private:
  float scale_, shift_;
};
"""
        + MAP
        + "void run(const float* x, float* y, int n, float s) { Affine f(s); k<<<(n + 63) / 64, 64>>>(x, y, n, f); }\n"
    )
    assert "Affine op = Affine(s, t);" in made.passes[0].source
    x = np.arange(5, dtype=np.float32)
    given = {"x": x, "s": np.float32(4), "t": np.float32(2)}
    np.testing.assert_array_equal(run(made, given, n=5)["y"], x / 4 + 2)


def test_functors_within_functors_and_of_their_own_templates(run: Runner) -> None:
    made = translated(
        """\
template <typename T> struct Times { T by; __device__ T operator()(const T& x) const { return x * by; } };
struct Square { template <typename T> __device__ T operator()(const T& x) const { return x * x; } };
template <class A, class B> struct Then { A a; B b; __device__ float operator()(float x) const { return b(a(x)); } };
"""
        + MAP
        + """\
void run(const float* x, float* y, int n, float by) {
  k<<<(n + 63) / 64, 64>>>(x, y, n, Then<Times<float>, Square>{{by}, Square{}});
}
"""
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x, "by": np.float32(3)}, n=5)["y"], (3 * x) ** 2)


def test_functors_that_a_function_names_by_its_own_parameter(run: Runner) -> None:
    made = translated("""\
template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T, typename Op> __device__ T fold(T a, T b) { return Op()(a, b); }
template <typename T> __device__ T add(T a, T b) { return fold<T, Sum<T>>(a, b); }
__global__ void k(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = add(x[i], 1.f) + add(i, 1);
}
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, y, n); }
""")
    x = np.full(4, 0.5, np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=4)["y"], np.arange(4) + 2.5)


def test_templates_of_functors_are_put_in_too(run: Runner) -> None:
    made = translated("""\
template <typename T> struct Sum { __device__ T operator()(const T& a, const T& b) const { return a + b; } };
template <typename T> struct Max { __device__ T operator()(const T& a, const T& b) const { return max(a, b); } };
template <template <typename> class Op, typename T, int width = 32> __device__ T reduce(T v) {
  for (int m = width / 2; m > 0; m /= 2) v = Op<T>()(v, __shfl_xor_sync(0xffffffff, v, m));
  return v;
}
template <typename T, template <typename> class Op> __global__ void k(const T* x, T* y, T* z) {
  T v = x[threadIdx.x];
  y[threadIdx.x] = reduce<Max, T>(v) + reduce<Sum, T, 8>(v);
  z[threadIdx.x] = Op<T>()(v, T(1));
}
void run(const float* x, float* y, float* z) { k<float, Sum><<<1, 32>>>(x, y, z); }
""")
    x = np.arange(32, dtype=np.float32)
    got = run(made, {"x": x})
    np.testing.assert_array_equal(got["y"], 31 + x.reshape(4, 8).sum(axis=1).repeat(8))
    np.testing.assert_array_equal(got["z"], x + 1)


def test_pairs_in_shared_memory_are_given_as_values(run: Runner) -> None:
    made = translated("""\
struct Pair { float v; int i; };
struct ArgMax { __device__ Pair operator()(const Pair& a, const Pair& b) const { return b.v > a.v ? b : a; } };
template <class Op> __global__ void k(const float* x, int* y, Op op) {
  __shared__ Pair s[32];
  s[threadIdx.x] = Pair{x[threadIdx.x], (int)threadIdx.x};
  __syncthreads();
  for (int d = 16; d; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] = op(s[threadIdx.x], s[threadIdx.x + d]);
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = s[0].i;
}
void run(const float* x, int* y) { k<<<1, 32>>>(x, y, ArgMax()); }
""")
    assert "op(Pair(s[" in made.passes[0].source
    x = np.sin(np.arange(32)).astype(np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], [x.argmax()])


@pytest.mark.parametrize(
    ("functor", "given", "reason"),
    [
        ("struct F { const float* s; __device__ float operator()(float v) const { return v * s[0]; } };", "F{x}",
         "'F' has functions of its own and holds the pointer 's'"),
        ("struct B { float a; }; struct F : B { __device__ float operator()(float v) const { return v; } };", "F()",
         "'F' has a base class"),
        ("struct F { __device__ float operator()(float v) const { __syncthreads(); return v; } };", "F()",
         "a member function with a barrier"),
        ("namespace a { struct F { __device__ float operator()(float v) const { return v; } }; }\n"
         "namespace b { struct F { __device__ float operator()(float v) const { return -v; } }; }", "a::F()",
         "several namespaces have a 'F'"),
        ("", "[=] __device__ (float v) { return v; }", "a lambda of the host stays there"),
        ("template <typename T> struct F { T a; __device__ T operator()(T v) const { return v * a; } };", "F{2.f}",
         "the template arguments of 'F' aren't written"),
    ],
)  # fmt: skip
def test_what_can_not_be_passed_by_value_is_refused_by_name(functor: str, given: str, reason: str) -> None:
    run = f"void run(const float* x, float* y, int n) {{ k<<<(n + 63) / 64, 64>>>(x, y, n, {given}); }}\n"
    assert any(reason in found for found in reasons(functor + MAP + run)), reasons(functor + MAP + run)


def test_a_functor_that_changes_what_is_not_local_is_refused() -> None:
    found = reasons("""\
struct AddTo { __device__ void operator()(float& a, float b) const { a += b; } };
template <class Op> __global__ void k(const float* x, float* y, int n, Op op) {
  int i = threadIdx.x;
  if (i < n) op(y[i], x[i]);
}
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, y, n, AddTo()); }
""")
    assert "4:17: 'operator()' of 'AddTo' changes 'y[i]', which is not local" in found[0]


def test_a_functor_that_the_host_changes_later_is_not_the_one_that_it_made() -> None:
    functor = """\
struct F { float a, b; F(float s) : a(s), b(s) {} __device__ float operator()(float v) const { return v * a + b; } };
"""
    run = "void run(const float* x, float* y, int n, float s) { F f(s); f.b = 2.f; k<<<1, 64>>>(x, y, n, f); }\n"
    assert "'f.b' is changed later" in reasons(functor + MAP + run)[0]


def test_two_constructors_for_one_kernel_are_refused() -> None:
    functor = """\
struct Clip {
  float lo, hi;
  Clip(float h) : lo(-h), hi(h) {}
  Clip(float l, float h) : lo(l), hi(h) {}
  __device__ float operator()(float v) const { return fminf(fmaxf(v, lo), hi); }
};
"""
    run = """\
void run(const float* x, float* y, float* z, int n, float a, float b) {
  k<<<1, 64>>>(x, y, n, Clip(a));
  k<<<1, 64>>>(x, z, n, Clip(a, b));
}
"""
    assert "'Clip' is made by different constructors" in reasons(functor + MAP + run)[0]
