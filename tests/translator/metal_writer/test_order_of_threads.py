"""Early returns before barriers, arrays that are changed in place, and passes one after another."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate
from translator.cuda_source import parse_cuda
from translator.launches import answered_plan
from translator.metal_writer import write_metal


def test_threads_that_return_before_a_barrier_stay_for_it(run: Runner) -> None:
    source = """\
__global__ void shift(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  tile[threadIdx.x] = v;
  for (int round = 0; round < 2; ++round) {
    __syncthreads();
    float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.f;
    __syncthreads();
    tile[threadIdx.x] = left;
  }
  __syncthreads();
  y[i] = tile[threadIdx.x] + v;
}
"""
    made = translate(
        source, plan([launch("shift", "ceildiv(n, 64)", "64", "x, y, =n")], {"x": "in float32 n", "y": "out float32 n"})
    )
    assert "const bool active = i < n;" in made.passes[0].source
    assert "return" not in made.passes[0].source
    x = np.arange(1, 71, dtype=np.float32)
    moved = np.concatenate([np.r_[0, 0, part[:-2]] for part in (x[:64], x[64:])])
    np.testing.assert_array_equal(run(made, {"x": x}, n=70)["y"], x + moved)


def test_a_return_of_the_whole_block_stays(run: Runner) -> None:
    source = """\
__global__ void sums(const float* x, float* y, int rows) {
  __shared__ float tile[32];
  int row = blockIdx.x;
  if (row >= rows) return;
  tile[threadIdx.x] = x[row * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) { float s = 0.f; for (int i = 0; i < 32; ++i) s += tile[i]; y[row] = s; }
}
"""
    made = translate(
        source,
        plan(
            [launch("sums", "rows + 2", "32", "x, y, =rows")],
            {"x": "in float32 32 * rows", "y": "out float32 rows"},
            axes="rows",
        ),
    )
    assert "if (row >= rows) return;" in made.passes[0].source
    assert list(run(made, {"x": np.ones(64, np.float32)}, rows=2)["y"]) == [32, 32]


def test_a_reduction_that_returned_threads_would_join_is_refused() -> None:
    source = """\
__device__ float all(float v) { __shared__ float s[32]; s[threadIdx.x] = v; __syncthreads(); return s[0]; }
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  y[i] = all(x[i]);
}
"""
    found = refusals(
        source, plan([launch("k", "ceildiv(n, 32)", "32", "x, y, =n")], {"x": "in float32 n", "y": "out float32 n"})
    )
    assert found == [
        "5:3: threads that should have returned would take part in this barrier: "
        "put a condition around the work and let every thread reach the barrier"
    ]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("if (i < n) x[i] = 2.f * x[i];", lambda x: 2 * x),
        ("if (i < n) x[i] += 1.f;", lambda x: x + 1),
        ("if (i < n) { if (x[i] < 0.f) { x[i] = 0.f; } }", lambda x: np.maximum(x, 0)),
        ("if (i < n && x[i] < 0.f) x[i] = 0.f;", lambda x: np.maximum(x, 0)),
        ("if (i < n) { x[i] = x[i] + 1.f; x[i] = 3.f * x[i]; }", lambda x: 3 * (x + 1)),
        ("float* p = x + i; if (i < n) *p = -*p;", lambda x: -x),
        ("for (int j = i; j < n; j += gridDim.x * blockDim.x) { float v = x[j]; x[j] = v * v; }", lambda x: x * x),
    ],
)
def test_an_array_changed_in_place_comes_out_as_another(
    run: Runner, random: np.random.Generator, body: str, result
) -> None:  # type: ignore[no-untyped-def]
    source = f"__global__ void k(float* x, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}"
    made = translate(source, plan([launch("k", "ceildiv(n, 32)", "32", "x, =n")], {"x": "inout float32 n"}))
    assert [array.name for array in made.outputs] == ["x_out"]
    x = random.standard_normal(45).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, n=45)["x_out"], result(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("for (int t = 0; t < 4; ++t) { x[i] = x[i] * 0.5f + 1.f; }", lambda x: x / 16 + 1.875),
        (
            "x[i] += 1.f; __syncthreads(); float v = x[(i + 1) % n]; __syncthreads(); x[i] = v;",
            lambda x: np.roll(x, -1) + 1,
        ),
        (
            "float* p = x + i; if (i % 2 == 0) p[0] = 7.f; if (i % 3 == 0) p[0] *= 2.f;",
            lambda x: np.where(np.arange(30) % 2, x, 7) * np.where(np.arange(30) % 3, 1, 2),
        ),
        (
            "x += 1; if (i < n - 1 && x[i] > 0.f) x[i] = 0.f; if (i == 3) x[3] -= 1.f;",
            lambda x: np.r_[x[0], np.minimum(x[1:], 0)] - (np.arange(30) == 4),
        ),
        (
            "if (i < n / 2) { float2 v = ((float2*)x)[i]; v.x = -v.x; ((float2*)x)[i] = v; } if (i == 0) x[1] += x[0];",
            lambda x: x * np.tile([-1, 1], 15) - np.where(np.arange(30) == 1, x[0], 0),
        ),
    ],
)
def test_flags_tell_reads_in_place_what_has_been_written(
    run: Runner, random: np.random.Generator, body: str, result
) -> None:  # type: ignore[no-untyped-def]
    source = f"__global__ void k(float* x, int n) {{ int i = threadIdx.x; {body} }}"
    made = translate(source, plan([launch("k", "1", "n", "x, =n")], {"x": "inout float32 n"}))
    x = random.standard_normal(30).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, n=30)["x_out"], result(x), rtol=1e-6)


def test_elements_that_data_leaves_unwritten_stay_as_they_were(run: Runner) -> None:
    source = "__global__ void k(const int* at, float* x, int n) { int i = threadIdx.x; if (i < n) x[at[i]] = -1.f; }"
    made = translate(source, plan([launch("k", "1", "32", "at, x, =n")], {"at": "in int32 n", "x": "inout float32 6"}))
    result = run(made, {"at": np.array([4, 1], np.int32), "x": np.arange(6, dtype=np.float32)}, n=2)
    assert list(result["x_out"]) == [0, -1, 2, 3, -1, 5]


def test_launches_in_sequence_are_chained_by_versions_of_their_arrays(run: Runner) -> None:
    source = """\
__global__ void step(const float* from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i] + from[i > 0 ? i - 1 : 0];
}
__global__ void halve(float* x, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) x[i] *= 0.5f; }
"""
    steps = [launch("step", "ceildiv(n, 32)", "32", f"{a}, {b}, =n") for a, b in (("x", "a"), ("a", "b"), ("b", "a"))]
    steps.append(launch("halve", "ceildiv(n, 32)", "32", "a, =n"))
    made = translate(source, plan(steps, {"x": "in float32 n", "a": "out float32 n", "b": "scratch float32 n"}))
    assert [step.name for step in made.passes] == ["step", "step_2", "step_3", "halve"]
    assert [step.outputs for step in made.passes] == [("a_1",), ("b",), ("a_2",), ("a",)]
    want = np.arange(40, dtype=np.float32)
    x = want.copy()
    for _ in range(3):
        want = want + np.r_[want[0], want[:-1]]
    np.testing.assert_allclose(run(made, {"x": x}, n=40)["a"], want / 2)


def test_a_kernel_that_fills_an_array_for_atomics_becomes_its_first_value(run: Runner) -> None:
    source = """\
__global__ void fill(int* y, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = value;
}
__global__ void least(const int* x, int* y, int n) { int i = threadIdx.x; if (i < n) atomicMin(&y[x[i] % 2], x[i]); }
"""
    steps = [launch("fill", "1", "32", "y, =2, =1000"), launch("least", "1", "64", "x, y, =n")]
    made = translate(source, plan(steps, {"x": "in int32 n", "y": "out int32 2"}))
    assert [(step.name, step.init_value) for step in made.passes] == [("least", 1000.0)]
    assert list(run(made, {"x": np.array([7, 4, 9, 6], np.int32)}, n=4)["y"]) == [4, 7]


def test_elements_that_a_bound_leaves_out_stay_as_they_were(run: Runner) -> None:
    source = parse_cuda(
        "__global__ void k(float* x, int n) {\n"
        "  int i = blockIdx.x * 32 + threadIdx.x;\n"
        "  if (i < n - 1) x[i] += 1.f;\n"
        "}\n"
        "void run(int n) {\n"
        "  float* x; cudaMalloc(&x, n * sizeof(float));\n"
        "  cudaMemcpy(x, from, n * sizeof(float), cudaMemcpyHostToDevice);\n"
        "  k<<<(n + 31) / 32, 32>>>(x, n);\n"
        "  cudaMemcpy(from, x, n * sizeof(float), cudaMemcpyDeviceToHost);\n"
        "}\n",
        "k.cu",
    )
    made = write_metal(source, answered_plan(source, "k", {"value.n": "n"}))
    x = np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(run(made, {"x": x}, n=40)["x_out"], x + (np.arange(40) < 39))
