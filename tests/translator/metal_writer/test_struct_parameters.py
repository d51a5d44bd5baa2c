"""Structs that kernels take by value: the members that are read become parameters of their own."""

from __future__ import annotations

import numpy as np

from tests.translator.metal_writer.conftest import Runner
from translator.cuda_source import parse_cuda
from translator.launches import read_launches
from translator.metal_writer import write_metal
from translator.translation import Translation

PARAMS = """\
struct Dims { int rows, cols; };
struct Params { const void* __restrict__ x_ptr; float* out; Dims dims; int64_t stride[2]; bool relu; float scale; };
"""
HOST = """
void run(const float* x, float* y, int rows, int cols, float scale) {
  Params p{};
  p.x_ptr = x; p.out = y; p.dims = {rows, cols}; p.stride[0] = cols; p.stride[1] = 1; p.relu = true; p.scale = scale;
  k<<<rows, 32>>>(p);
}
"""


def translated(kernel: str) -> Translation:
    source = parse_cuda(PARAMS + kernel + HOST, "k.cu")
    plan = read_launches(source)
    assert [question.message for question in plan.questions] == []
    return write_metal(source, plan)


def reasons(kernel: str) -> list[str]:
    made = translated(kernel)
    assert made.passes == ()
    return [str(refusal) for refusal in made.refusals]


def check(run: Runner, made: Translation) -> None:
    """The kernels here compute relu(scale * x) of a matrix."""
    assert [str(refusal) for refusal in made.refusals] == []
    x = np.linspace(-1, 1, 3 * 40, dtype=np.float32)
    got = run(made, {"x": x.reshape(3, 40), "scale": np.float32(3)}, rows=3, cols=40)
    np.testing.assert_allclose(got["y"].reshape(-1), np.maximum(np.float32(3) * x, 0), rtol=1e-6)


def test_members_are_named_as_if_they_had_been_passed_one_by_one(run: Runner) -> None:
    made = translated("""\
__global__ void k(const __grid_constant__ Params p) {
  const float* x = reinterpret_cast<const float*>(p.x_ptr) + blockIdx.x * p.stride[0];
  for (int c = threadIdx.x; c < p.dims.cols; c += 32) {
    float v = p.scale * x[c * p.stride[1]];
    p.out[blockIdx.x * p.dims.cols + c] = p.relu ? fmaxf(v, 0.f) : v;
  }
}""")
    check(run, made)
    source, template = made.passes[0].source, dict(made.passes[0].template)
    assert "float v = scale * x_[c * stride_1];" in source
    assert "Params" not in source + made.passes[0].header
    assert template == {"cols": "cols", "stride_0_": "cols", "stride_1_": "1", "relu_": "1"}


def test_a_struct_may_be_handed_on_and_have_other_names(run: Runner) -> None:
    made = translated("""\
template <typename T> __device__ float load(const Params& q, int row, int col) {
  return static_cast<const T*>(q.x_ptr)[row * q.stride[0] + col * q.stride[1]];
}
__device__ float scaled(const Params* q, int row, int col) { return q->scale * load<float>(*q, row, col); }
__device__ int width(Dims d) { return d.cols; }
__global__ void k(Params p) {
  const Params& params = p;
  auto dims = p.dims;
  for (int c = threadIdx.x; c < width(dims); c += 32) {
    float v = scaled(&params, blockIdx.x, c);
    p.out[blockIdx.x * width(params.dims) + c] = params.relu ? fmaxf(v, 0.f) : v;
  }
}""")
    check(run, made)
    assert "scaled(x, stride_0, stride_1, scale, threadgroup_position_in_grid.x, c)" in made.passes[0].source


def test_a_member_that_has_the_name_of_a_local_gets_another(run: Runner) -> None:
    made = translated("""\
__global__ void k(Params p) {
  int cols = p.dims.cols, scale = 1;
  const float* x = (const float*)p.x_ptr;
  p.out += blockIdx.x * cols;
  for (int c = threadIdx.x; c < cols; c += 32) p.out[c] = fmaxf(p.scale * x[blockIdx.x * p.stride[0] + c * scale], 0.f);
}""")
    check(run, made)
    assert "int cols = p_dims_cols, scale_ = 1;" in made.passes[0].source


def test_what_needs_the_whole_struct_is_refused() -> None:
    body = "  const float* x = (const float*)p.x_ptr; p.out[0] = x[0] + p.scale + p.dims.cols; }"
    assert "'p' is used as a whole" in reasons("__global__ void k(Params p) { Params q; q = p;" + body)[0]
    varying = "__global__ void k(Params p) { p.out[0] = p.stride[threadIdx.x]; }"
    assert "an index that varies" in reasons(varying)[0]
    changed = "__device__ void f(Params& q) { q.scale += 1.f; }\n__global__ void k(Params p) { f(p);" + body
    assert "is changed and has several names" in reasons(changed)[0]
    copied = "__global__ void k(Params p) { Params q = p; q.scale += 1.f; p.out[0] = q.scale + p.scale; }"
    assert "is changed and has several names" in reasons(copied)[0]


def test_a_template_parameter_that_stood_for_the_struct_goes_with_it(run: Runner) -> None:
    source = parse_cuda(
        "template <typename T> struct Args { const T* x; T* y; int n; };\n"
        "template <typename A, int BY> __global__ void k(A a) {\n"
        "  int i = blockIdx.x * 32 + threadIdx.x; if (i < a.n) a.y[i] = BY * a.x[i];\n}\n"
        "void run(const float* x, float* y, int n) {\n"
        "  Args<float> a{x, y, n}; k<Args<float>, 3><<<(n + 31) / 32, 32>>>(a);\n}\n",
        "k.cu",
    )
    made = write_metal(source, read_launches(source))
    assert dict(made.passes[0].template) == {"n": "n", "BY": "3"}
    np.testing.assert_array_equal(run(made, {"x": np.ones(40, np.float32)}, n=40)["y"], np.full(40, 3))
