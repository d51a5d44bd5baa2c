"""Launches by macros of the host, and kernels that get device functions as template arguments."""

from __future__ import annotations

from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import answered_plan, read_launches

SCALE = """\
template <int D, int B> __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) y[i] = D * x[i];
}
"""
SWITCHED = (
    SCALE
    + """\
#define LAUNCH_SCALE(D)                            \\
  scale<D, THREADS>                                \\
      <<<grid, THREADS, 0, stream>>>(x, y, n);
template <int THREADS> void launcher(const float* x, float* y, int n, int d, cudaStream_t stream) {
  dim3 grid((n + THREADS - 1) / THREADS);
  switch (d) {
    case 64: LAUNCH_SCALE(64); break;
    case 128:
      LAUNCH_SCALE(128);
      break;
  }
}
#define CALL_LAUNCHER(THREADS, ...) launcher<THREADS>(__VA_ARGS__)
void run(const float* x, float* y, int n, int d, cudaStream_t stream) { CALL_LAUNCHER(32, x, y, n, d, stream); }
"""
)


def test_a_launch_within_a_macro_is_followed_where_it_is_used() -> None:
    plan = read_launches(parse_cuda(SWITCHED, "k.cu"))
    assert plan.questions == ()
    (step,) = plan.steps
    assert (step.kernel, step.template, step.grid[0], step.block[0]) == ("scale", ("64", "32"), "ceildiv(n, 32)", "32")
    assert step.span.line == 11, "the macro's use, not its definition"
    assert ("equal", "d", "64") in plan.requires
    (other,) = answered_plan(parse_cuda(SWITCHED, "k.cu"), None, {"value.d": "128"}).steps
    assert other.template == ("128", "32")


def test_a_macro_that_is_defined_anew_means_what_it_does_in_each_function() -> None:
    source = (
        SCALE
        + """\
#define GO(D) scale<D, 32><<<n, 32>>>(x, y, n)
void first(const float* x, float* y, int n) { GO(2); }
#undef GO
#define GO(D) scale<D, 64><<<n, 64>>>(x, y, n)
void second(const float* x, float* y, int n) { GO(3); }
"""
    )
    (step,) = read_launches(parse_cuda(source, "k.cu")).steps
    assert (step.template, step.block[0]) == (("2", "32"), "32")


ACTIVATED = """\
template <typename T> __device__ T relu(const T& v) { return v > T(0) ? v : T(0); }
template <typename T> __device__ T unused(const T& v) { return v; }
template <typename T, T (*ACT)(const T&)> __global__ void act(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ACT(x[i]);
}
#define LAUNCH_ACT(KERNEL) act<float, KERNEL<float>><<<(n + 63) / 64, 64>>>(x, y, n)
void run(const float* x, float* y, int n) { LAUNCH_ACT(relu); }
"""


def test_a_kernel_may_be_given_a_function_of_the_device() -> None:
    plan = read_launches(parse_cuda(ACTIVATED, "k.cu"))
    assert plan.questions == ()
    assert plan.steps[0].template == ("float", "relu<float>")


def test_the_device_text_keeps_a_function_that_only_a_launch_names() -> None:
    text = device_text(parse_cuda(ACTIVATED, "k.cu"))
    assert "T relu(" in text
    assert "unused" not in text


def test_a_host_function_that_fixes_the_types_is_taken_before_a_template_that_nothing_calls() -> None:
    source = """\
template <typename T> __global__ void copy(const T* x, T* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}
struct Copy { template <typename T> void operator()(const T* x, T* y, int n) { copy<<<1, 64>>>(x, y, n); } };
void run(const half* x, half* y, int n) { copy<<<1, 32>>>(x, y, n); }
"""
    plan = read_launches(parse_cuda(source, "k.cu"))
    assert plan.questions == ()
    assert plan.steps[0].block[0] == "32"


def test_the_parameters_of_an_instantiation_say_what_its_template_stands_for() -> None:
    source = """\
template <typename T> __global__ void copy(const T* x, T* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}
template <typename T> void run(const T* x, T* y, int n, cudaStream_t s) { copy<T><<<1, 32, 0, s>>>(x, y, n); }
template void run(const half* x, half* y, int n, cudaStream_t s);
"""
    plan = read_launches(parse_cuda(source, "k.cu"))
    assert plan.questions == ()
    assert plan.arrays[0].dtype == "float16"
