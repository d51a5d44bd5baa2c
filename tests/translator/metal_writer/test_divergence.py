"""Barriers that not every thread reaches are refused; those under conditions that all threads share are not."""

from __future__ import annotations

import pytest

from tests.translator.metal_writer.conftest import launch, plan, refusals, translate

ARRAYS = {"x": "in float32 64", "y": "out float32 64", "rows": "in int32 4"}


def kernel(body: str, helpers: str = "") -> str:
    return f"""\
{helpers}
__global__ void k(const float* x, float* y, const int* rows, int n) {{
  __shared__ float tile[64];
  __shared__ int most;
  int i = threadIdx.x;
  tile[i] = x[i];
  if (i == 0) most = n;
  __syncthreads();
  {body}
  y[i] = tile[63 - i];
}}
"""


def steps():
    return plan([launch("k", "1", "64", "x, y, rows, =n")], ARRAYS)


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) { tile[i] += 1.f; __syncthreads(); }",
        "if (x[i] > 0.f) __syncthreads();",
        "for (int j = i; j < n; j += 64) { tile[i] += 1.f; __syncthreads(); }",
        "for (int j = 0; j < n; ++j) { if (i > j) break; __syncthreads(); }",
        "for (int j = 0; j < n; ++j) { if (i > j) continue; tile[i] += 1.f; __syncthreads(); }",
        "int rounds = 0; while (rounds < 4) { rounds += 1 + i / 32; __syncthreads(); }",
        "switch (i & 1) { case 0: __syncthreads(); break; default: break; }",
        "int few = n; if (i == 3) few = 1; for (int j = 0; j < few; ++j) __syncthreads();",
        "wait(i);",
        "y[i] = first(i);",
        "do { tile[i] += 1.f; __syncthreads(); } while (tile[i] < 3.f);",
    ],
)
def test_a_barrier_that_only_some_threads_reach_is_refused(body: str) -> None:
    helpers = (
        "__device__ void wait(int lane) { if (lane < 32) __syncthreads(); }\n"
        "__device__ int first(int lane) { if (lane == 0) return 0; __syncthreads(); return lane; }"
    )
    said = refusals(kernel(body, helpers), steps())
    assert any("barrier" in sentence and "let every thread" in sentence for sentence in said)


@pytest.mark.parametrize(
    "body",
    [
        "if (n > 3) { tile[i] += 1.f; __syncthreads(); }",
        "for (int j = blockIdx.x; j < rows[blockIdx.x]; j += gridDim.x) { tile[i] += 1.f; __syncthreads(); }",
        "for (int s = blockDim.x / 2; s > 0; s >>= 1) { if (i < s) tile[i] += tile[i + s]; __syncthreads(); }",
        "for (int j = 0; j < tiles(n, 16); ++j) __syncthreads();",
        "while (most > 3) { __syncthreads(); if (i == 0) most -= 1; __syncthreads(); }",
        "for (;;) { if (!__syncthreads_or(tile[i] < 0.f)) break; tile[i] += 1.f; __syncthreads(); }",
        "for (int j = 0; j < n; ++j) { __syncthreads(); if (i > j) continue; tile[i] += 1.f; }",
        "wait(n);",
        "y[0] = first(n);",
        "if (n > 3 && tile[0] > 1.f) __syncthreads();",
    ],
)
def test_a_barrier_under_a_condition_that_all_threads_share_stays(body: str) -> None:
    helpers = (
        "__device__ void wait(int size) { if (size < 32) __syncthreads(); }\n"
        "__device__ int tiles(int a, int b) { return (a + b - 1) / b; }\n"
        "__device__ int first(int size) { if (size == 0) return 0; __syncthreads(); return size; }"
    )
    (step,) = translate(kernel(body, helpers), steps()).passes
    assert "threadgroup_barrier" in step.source + step.header
