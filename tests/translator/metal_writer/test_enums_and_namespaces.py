"""Enums as arguments and template arguments, names within namespaces, pointers that are null at the launch."""

from __future__ import annotations

import numpy as np

from tests.translator.metal_writer.conftest import Runner
from translator.cuda_source import parse_cuda
from translator.launch_plan import SizeArgument
from translator.launches import answered_plan
from translator.metal_writer import write_metal
from translator.translation import Translation


def translated(text: str) -> Translation:
    source = parse_cuda(text, "k.cu")
    plan = answered_plan(source, None, {})
    assert [question.message for question in plan.questions] == []
    made = write_metal(source, plan)
    assert [str(refusal) for refusal in made.refusals] == []
    return made


def test_enumerators_of_two_enums_keep_their_own_values(run: Runner) -> None:
    made = translated("""\
enum class A { None, One = 3, Two };
enum class B : unsigned char { Two, None = 9, One };
template <A a, B b> __global__ void k(const int* x, int* y, int n, A late) {
  int i = threadIdx.x;
  if (i >= n) return;
  int v = x[i] + (int)a * 100 + static_cast<int>(b) * 1000;
  switch (late) { case A::None: v += 1; break; case A::One: v += 2; break; case A::Two: v += 3; break; }
  y[i] = v + (b == B::One ? 10 : 0);
}
void run(const int* x, int* y, int* z, int n, int late) {
  k<A::Two, B::One><<<1, 64>>>(x, y, n, A::One);
  k<static_cast<A>(3), B::Two><<<1, 64>>>(x, z, n, static_cast<A>(late));
}
""")
    x = np.arange(5, dtype=np.int32)
    got = run(made, {"x": x}, n=5, late=4)
    np.testing.assert_array_equal(got["y"], x + 400 + 10_000 + 2 + 10)
    np.testing.assert_array_equal(got["z"], x + 300 + 3)


def test_a_switch_of_the_host_over_an_enum_takes_one_launch() -> None:
    text = """\
enum class Act { Identity, Relu };
template <Act ACT> __global__ void k(float* y) { y[threadIdx.x] = ACT == Act::Relu ? 1.f : 2.f; }
void run(float* y, Act act) {
  switch (act) {
    case Act::Identity: k<Act::Identity><<<1, 32>>>(y); break;
    case Act::Relu: k<Act::Relu><<<1, 32>>>(y); break;
  }
}
"""
    source = parse_cuda(text, "k.cu")
    plans = [answered_plan(source, None, answers) for answers in ({}, {"value.act": "1"})]
    assert [plan.steps[0].template for plan in plans] == [("Act(0)",), ("Act(1)",)]
    assert "answer value.act for another" in plans[0].choices[0].message


def test_what_one_namespace_has_is_named_without_it(run: Runner) -> None:
    made = translated("""\
namespace cfg {
constexpr int kCount = 4;
enum class Op { Add, Mul };
namespace detail { struct Two { float a, b; }; }
template <int N = 2> __device__ float repeat(float v) { float s = 0.f; for (int i = 0; i < N; ++i) s += v; return s; }
}
template <cfg::Op OP> __device__ float apply(float a, float b) { return OP == cfg::Op::Add ? a + b : a * b; }
__global__ void k(const float* x, float* y, int n) {
  int i = threadIdx.x;
  cfg::detail::Two two{1.f, 2.f};
  if (i < n) y[i] = cfg::repeat<cfg::kCount>(x[i]) + ::cfg::repeat(two.b) + apply<cfg::Op::Mul>(x[i], two.a);
}
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, y, n); }
""")
    assert "repeat<kCount>(x[" in made.passes[0].source, "without its argument it would repeat twice"
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=5)["y"], 4 * x + 4 + x)


def refused(text: str) -> list[str]:
    source = parse_cuda(text, "k.cu")
    return [str(refusal) for refusal in write_metal(source, answered_plan(source, None, {})).refusals]


def test_what_two_namespaces_have_is_refused() -> None:
    assert (
        "several namespaces have a 'f'"
        in refused("""\
namespace a { __device__ float f(float v) { return v + 1.f; } }
namespace b { __device__ float f(float v) { return v * 2.f; } }
__global__ void k(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = a::f(x[i]) - b::f(x[i]); }
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, y, n); }
""")[0]
    )


def test_a_constant_that_a_local_hides_is_not_named_without_its_namespace() -> None:
    assert (
        "'cfg::n' is not known"
        in refused("""\
namespace cfg { constexpr int n = 3; }
__global__ void k(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i] + cfg::n; }
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, y, n); }
""")[0]
    )


def test_optional_arrays_may_be_null_in_every_spelling(run: Runner) -> None:
    text = """\
struct Pair { float a, b; };
__device__ float biased(float v, const float* b, int i) { if (b) return v + b[i]; return v; }
__device__ void keep(float* out, int i, float v) { if (out != nullptr) out[i] = v; }
template <typename T>
__global__ void k(const T* x, const T* bias, const T* mask, const Pair* pairs, T* y, float* lse, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  const T* row = mask != nullptr ? mask + i : nullptr;
  y[i] = biased(x[i], bias, i) + (row ? row[0] : T(1)) + (pairs == NULL ? 10.f : pairs[i].a);
  keep(lse, i, y[i]);
}
void run(const float* x, const float* bias, float* y, float* z, int n) {
  k<float><<<1, 64>>>(x, (float*)NULL, 0, nullptr, y, static_cast<float*>(nullptr), n);
  k<float><<<1, 64>>>(x, bias, reinterpret_cast<const float*>(0), NULL, z, (float*)nullptr, n);
}
"""
    source = parse_cuda(text, "k.cu")
    plan = answered_plan(source, None, {})
    assert [array.name for array in plan.arrays] == ["x", "y", "bias", "z"]
    assert plan.steps[0].arguments[1:4] == (SizeArgument("0"),) * 3
    made = translated(text)
    x = np.arange(5, dtype=np.float32)
    got = run(made, {"x": x, "bias": 100 * x}, n=5)
    np.testing.assert_array_equal(got["y"], x + 11)
    np.testing.assert_array_equal(got["z"], 101 * x + 11)


def test_a_null_pointer_that_is_set_later_is_refused() -> None:
    found = refused("""\
__global__ void k(const float* x, const float* w, float* y, int n) {
  int i = threadIdx.x;
  if (!w) w = x;
  if (i < n) y[i] = x[i] * w[i];
}
void run(const float* x, float* y, int n) { k<<<1, 64>>>(x, nullptr, y, n); }
""")
    assert "'w' is given a null pointer, and is set to another one" in found[0]
