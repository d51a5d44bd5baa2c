"""The device code of a CUDA source: what stays, what goes, and that everything keeps its place."""

from __future__ import annotations

import pytest

from translator.cuda_source import parse_cuda
from translator.device_text import device_text

SOURCE = """\
// \u00dcberschrift, with signs of its own
#include <torch/extension.h>
#include "helpers.h"
#pragma once
#define CUDA_CHECK(x) do { if (x) abort(); } while (0)
#define FULL 0xffffffff
#ifdef USE_X
#define SCALE 1
#endif
using namespace std;
namespace cg = cooperative_groups;
namespace ops {
struct Args { int n; float s; };
struct HostOnly { std::vector<int> v; };
enum Mode { kSum, kMean };
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
int host_only(int x) { return x; }
template <typename T> struct Op { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> __global__ void fold(Args a, T* x) { x[ceil_div(a.n, 2)] = Op<T>()(x[0], T(kMean)); }
template __global__ void fold<float>(Args, float*);
}
__constant__ float taps[4];
__device__ unsigned rotate(unsigned x) { return x << 1 & FULL; }
__global__ void spin(unsigned* x) { *x = rotate(*x) + taps[0]; cg::this_thread_block().sync(); }
torch::Tensor forward(torch::Tensor x);
class Module : public torch::nn::Module { void f() { spin<<<1, 2>>>(x); } };
int main() { ops::fold<float><<<1, 2>>>(a, x); CUDA_CHECK(1); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""


def lines(text, **options):
    """The lines that are left, by number."""
    left = device_text(parse_cuda(text, "k.cu"), **options).split("\n")
    return {number: line.strip() for number, line in enumerate(left, 1) if line.strip()}


def test_what_kernels_lead_to_stays_and_the_host_goes():
    left = lines(SOURCE)
    assert set(left) == {1, 6, 7, 9, 11, 12, 13, 15, 16, 18, 19, 21, 22, 23, 24}
    assert left[16].startswith("constexpr int ceil_div")
    assert left[1] == "//  berschrift, with signs of its own"


def test_the_text_keeps_its_length_and_its_lines():
    text = device_text(parse_cuda(SOURCE, "k.cu"))
    assert len(text) == len(SOURCE)
    for number, (before, after) in enumerate(zip(SOURCE.split("\n"), text.split("\n"), strict=True)):
        assert len(before) == len(after), number
        assert all(new in (old, " ") for old, new in zip(before, after, strict=True)), number


def test_named_kernels_alone_stay_with_what_they_need():
    assert set(lines(SOURCE, kernels=("spin",))) == {1, 6, 7, 9, 11, 12, 21, 22, 23, 24}


@pytest.mark.parametrize("text", ["", "no CUDA at all", "__global__ void half(float* x) {", "\0\x01\x02", "}}}}((("])
def test_what_is_no_cuda_gives_a_text_of_the_same_length(text):
    assert len(device_text(parse_cuda(text, "k.cu"))) == len(text)


def test_a_source_that_nests_deeply_or_is_large_is_read_all_the_same():
    nested = "#if A\n" * 3000 + "__global__ void k() {}\n" + "#endif\n" * 3000
    assert "__global__ void k() {}" in device_text(parse_cuda(nested, "k.cu"))
    many = "".join(f"__device__ int f{i}() {{ return {i}; }}\nint h{i}() {{ return f{i}(); }}\n" for i in range(2000))
    left = device_text(parse_cuda(many + "__global__ void k(int* x) { *x = f7(); }", "k.cu"))
    assert [line for line in left.split("\n") if line.strip()] == [
        "__device__ int f7() { return 7; }",
        "__global__ void k(int* x) { *x = f7(); }",
    ]


def test_macros_that_are_defined_anew_keep_both_definitions():
    text = "#define N 1\n__device__ int a() { return N; }\n#undef N\n#define N 2\n__global__ void k(int* x) { *x = N; }"
    assert set(lines(text)) == {1, 3, 4, 5}


def test_operators_of_the_device_and_traits_that_the_host_gives_stay():
    text = """\
template <int n_, typename T_> struct Traits { using T = T_; static constexpr int n = n_, bytes = sizeof(T); };
__device__ inline float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline float2 operator-(float2 a, float2 b) { return a; }
template <typename Tr> __global__ void k(float2* x) { x[0] = x[1] + x[Tr::n]; }
void run(float2* x) { k<Traits<4, float>><<<1, 1>>>(x); }
"""
    kept = device_text(parse_cuda(text, "x.cu"))
    assert "struct Traits" in kept and "operator+" in kept
    assert "operator-" not in kept and "run" not in kept
