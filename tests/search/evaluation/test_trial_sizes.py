"""Trials are small, and yet large enough that blocks have neighbours and rounds repeat."""

from __future__ import annotations

import pytest

from search.evaluation.trial_sizes import NoSizes, trial_sizes
from translator.cuda_source import parse_cuda
from translator.launch_plan import LaunchPlan
from translator.launches import read_launches


def plan_of(grid: str, more: str = "") -> LaunchPlan:
    text = f"""\
__global__ void k(const float* x, float* y, int n{more}) {{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}}
void run(const float* x, float* y, int n{more}) {{
  int grid = {grid};
  k<<<grid, 512>>>(x, y, n{more and ", fast"});
}}
"""
    return read_launches(parse_cuda(text, "k.cu"))


def test_one_size_launches_several_blocks() -> None:
    sizes = trial_sizes(plan_of("(n + 1023) / 1024"), 4)
    assert max(-(-size["n"] // 1024) for size in sizes) >= 2


def test_one_size_has_more_to_do_than_a_capped_grid_takes_at_once() -> None:
    sizes = trial_sizes(plan_of("std::min((n + 511) / 512, 8)"), 4)
    assert max(size["n"] for size in sizes) > 8 * 512


def test_a_flag_is_both() -> None:
    sizes = trial_sizes(plan_of("(n + 511) / 512", ", bool fast"), 8)
    assert {size["fast"] for size in sizes} == {0, 1}


def test_sizes_that_the_source_fixes_and_no_trial_has_time_for_are_said() -> None:
    text = """\
__global__ void k(float* x) { x[blockIdx.x * 512 + threadIdx.x] = 1.f; }
void run(float* x) { k<<<8192, 512>>>(x); }
"""
    with pytest.raises(NoSizes, match="the source fixes all sizes"):
        trial_sizes(read_launches(parse_cuda(text, "k.cu")), 4)


def test_a_source_that_always_launches_many_threads_has_two_trials() -> None:
    text = """\
__global__ void k(float* x, int n) { if (threadIdx.x < n) atomicAdd(&x[threadIdx.x], 1.f); }
void run(float* x, int n) { k<<<256, 256>>>(x, n); }
"""
    assert len(trial_sizes(read_launches(parse_cuda(text, "k.cu")), 4)) == 2


def test_no_size_asks_for_more_shared_memory_than_a_threadgroup_has() -> None:
    text = """\
__global__ void k(float* y, int n) { extern __shared__ float s[]; s[threadIdx.x] = n; y[threadIdx.x] = s[threadIdx.x]; }
void run(float* y, int n) { k<<<1, 32, n * n * sizeof(float)>>>(y, n); }
"""
    sizes = trial_sizes(read_launches(parse_cuda(text, "k.cu")), 8)
    assert max(4 * size["n"] ** 2 for size in sizes) <= 32768
    assert len(sizes) > 4
