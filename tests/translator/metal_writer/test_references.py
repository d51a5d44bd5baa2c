"""References to elements: of private, shared and device arrays, given to functions or held by locals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate
from translator.cuda_source import parse_cuda
from translator.launch_plan import Role
from translator.launches import answered_plan

FUNCTIONS = """\
__device__ void bump(float& a, float v) { a += v; }
__device__ void mix(float& a, float& b) { float t = a; a = b + t; b = t; }
__device__ void swap(float* a, float* b) { float t = *a; *a = *b; *b = t; }
"""


def test_a_reference_has_the_memory_of_the_element_that_it_is_given(run: Runner) -> None:
    source = (
        FUNCTIONS
        + """\
__global__ void k(const float* x, float* y) {
  __shared__ float s[32];
  float own[2][2] = {{1.f, 2.f}, {3.f, 4.f}};
  int t = threadIdx.x, at = 0;
  s[t] = x[t];
  bump(s[t], 1.f);
  bump(own[at++][1], 10.f);
  mix(s[t], own[1][0]);
  swap(&own[0][0], &own[at][1]);
  y[t] = s[t] + 100.f * own[0][0] + own[0][1] + own[1][0] + own[1][1];
}
"""
    )
    made = translate(source, plan([launch("k", "1", "32", "x, y")], {"x": "in float32 32", "y": "out float32 32"}))
    header = made.passes[0].header
    assert "(threadgroup float& a, float v)" in header and "(thread float& a, float v)" in header
    assert "(threadgroup float& a, thread float& b)" in header
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], (x + 1 + 3) + 400 + 12 + (x + 1) + 1)


@pytest.mark.parametrize(
    "statement", ["bump(y[i++], 1.f);", "y[i++] += 1.f;", "y[at(i)]++;", "float& r = y[i++]; r += 1.f;"]
)
def test_an_index_that_does_something_is_not_written_twice(statement: str) -> None:
    source = f"""\
__device__ int at(int& c) {{ return c++; }}
{FUNCTIONS}__global__ void k(const float* x, float* y, int n) {{
  int i = 2 * threadIdx.x;
  if (i < n) {{ {statement} }}
}}
"""
    arrays = {"x": "in float32 n", "y": "inout float32 n"}
    found = refusals(source, plan([launch("k", "1", "n", "x, y, =n")], arrays))
    assert "does something, and the array is changed in place" in found[0]


def test_what_is_written_by_a_reference_is_an_output() -> None:
    source = parse_cuda(
        FUNCTIONS
        + """\
__device__ void store(float& a, float v) { a = v; }
__device__ float twice(const float& a) { return 2.f * a; }
__global__ void k(const float* x, float* y, float* z, float* w, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  store(y[i], twice(x[i]));
  bump(z[i], x[i]);
  float& r = w[i];
  r = x[i];
  r *= 2.f;
}
void run(const float* x, float* y, float* z, float* w, int n) { k<<<1, 64>>>(x, y, z, w, n); }
""",
        "k.cu",
    )
    roles = {array.name: array.role for array in answered_plan(source, None, {}).arrays}
    assert roles == {"x": Role.INPUT, "y": Role.OUTPUT, "z": Role.INOUT, "w": Role.OUTPUT}
