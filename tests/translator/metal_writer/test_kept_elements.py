"""Elements of an array that a kernel changes in place, and leaves as they were under some condition."""

from __future__ import annotations

import numpy as np

from tests.translator.metal_writer.conftest import Runner, launch, plan, translate


def test_two_arrays_that_one_condition_changes_are_both_kept(run: Runner) -> None:
    source = """\
__global__ void relax(float* dist, int* via, const float* edge, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (edge[i] < dist[i]) { dist[i] = edge[i]; via[i] = i; }
  }
}
"""
    arrays = {"dist": "inout float32 n", "via": "inout int32 n", "edge": "in float32 n"}
    made = translate(source, plan([launch("relax", "ceildiv(n, 32)", "32", "dist, via, edge, =n")], arrays))
    given = {"dist": np.float32([1, 2, 3]), "via": np.int32([7, 8, 9]), "edge": np.float32([5, 1, 2])}
    got = run(made, given, n=3)
    np.testing.assert_array_equal(got["dist_out"], [1, 1, 2])
    np.testing.assert_array_equal(got["via_out"], [7, 1, 2])


def test_what_a_statement_after_an_early_return_leaves_is_kept(run: Runner) -> None:
    source = """\
__global__ void centre(float* x, int n) {
  __shared__ float s[32];
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = x[i];
  __syncthreads();
  if (s[0] > 0.f) x[i] = s[threadIdx.x] - s[0];
}
"""
    made = translate(source, plan([launch("centre", "ceildiv(n, 32)", "32", "x, =n")], {"x": "inout float32 n"}))
    x = np.arange(80, dtype=np.float32) - 32  # the first block begins below 0, the second at 0, the third above
    x[32:64] += 1
    want = np.concatenate([x[:32], x[32:64] - x[32], x[64:] - x[64]])
    np.testing.assert_array_equal(run(made, {"x": x}, n=80)["x_out"], want)


def test_threads_that_have_returned_do_no_work_of_a_later_return(run: Runner) -> None:
    source = """\
__global__ void clip(const float* x, float* y, int n) {
  __shared__ float s[32];
  int i = blockIdx.x * 32 + threadIdx.x;
  s[threadIdx.x] = 0.f;
  if (i >= n) return;
  if (x[i] < -1.f || i == 3) {
    y[i] = 0.f;  // cut off
    return;
  }
  s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = x[i] + 10.f * s[0];
}
"""
    arrays = {"x": "in float32 n", "y": "out float32 n"}
    made = translate(source, plan([launch("clip", "ceildiv(n, 32)", "32", "x, y, =n")], arrays))
    assert "  y[i] = 0.f;  // cut off\n  active = false;\n}" in made.passes[0].source
    x = np.float32([1, -2, 3, 4, 5])
    np.testing.assert_array_equal(run(made, {"x": x}, n=5)["y"], [11, 0, 13, 0, 15])
