"""Functions that change an array in place for the kernel that calls them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

Values = np.ndarray[tuple[int], np.dtype[np.float32]]


def _swapped(x: Values) -> Values:
    y = x.copy()
    y[0::2], y[1::2] = x[1::2], x[0::2]
    return y


@pytest.mark.parametrize(
    ("functions", "body", "result"),
    [
        ("__device__ void inc(float* x, int i) { x[i] = 2.f * x[i]; }", "inc(x, i);", lambda x: 2 * x),
        ("__device__ void inc(float* x, int i) { x[i] = 2.f * x[i]; }", "inc(x, i); inc(x, i);", lambda x: 4 * x),
        ("__device__ void inc(float* x) { *x += 1.f; }", "for (int r = 0; r < 3; ++r) inc(x + i);", lambda x: x + 3),
        ("__device__ void relu(float& v) { if (v < 0.f) v = 0.f; }", "relu(x[i]);", lambda x: np.maximum(x, 0)),
        (
            "template <typename T> __device__ void swp(T& a, T& b) { T t = a; a = b; b = t; }",
            "if (i % 2 == 0) swp(x[i], x[i + 1]);",
            _swapped,
        ),
        (
            "__device__ void put(float* p, float v) { float* q = p; *q = v; }\n"
            "__device__ void both(float* x, int i) { float a = x[i]; put(x + i, a + 1.f); put(x + i, a + x[i]); }",
            "both(x, i);",
            lambda x: 2 * x + 1,
        ),
        ("__device__ void from(const float* a, float* b, int i) { b[i] = 3.f * a[i]; b[i] += a[i]; }", "from(x, x, i);",
         lambda x: 6 * x),
        ("__device__ float sum(const float& a, const float& b) { return a + b; }",
         "x[i] = sum(x[i], 1.f); x[i] = sum(x[i], x[i]);", lambda x: 2 * (x + 1)),
        ("", "float& r = x[i]; r = 2.f * r; r += 1.f; x[i] = r * r;", lambda x: (2 * x + 1) ** 2),
        ("", "x[i]++; if (x[i] > 1.f) --x[i];", lambda x: np.where(x + 1 > 1, x, x + 1)),
        ("#define UPD(p, i, v) (p)[i] = (v)", "UPD(x, i, x[i] * 2.f);", lambda x: 2 * x),
    ],
)  # fmt: skip
def test_each_read_means_the_value_that_cuda_has_there(
    run: Runner, random: np.random.Generator, functions: str, body: str, result: Callable[[Values], Values]
) -> None:
    source = f"{functions}\n__global__ void k(float* x, int n) {{ int i = threadIdx.x; {body} }}"
    made = translate(source, plan([launch("k", "1", "n", "x, =n")], {"x": "inout float32 n"}))
    x = random.standard_normal(30).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, n=30)["x_out"], result(x), rtol=1e-5, atol=1e-6)


def test_a_function_of_many_types_is_told_which_when_its_pointers_have_types_of_their_own(run: Runner) -> None:
    source = """\
template <typename T, typename G> __device__ void move(T* p, const G* g, int i) { p[i] = p[i] - (T)(0.5f * g[i]); }
__global__ void k(float* p, const float* g, int n) { move(p, g, threadIdx.x); }
"""
    made = translate(
        source, plan([launch("k", "1", "n", "p, g, =n")], {"p": "inout float32 n", "g": "in float32 n"})
    )  # fmt: skip
    assert "move<float, float>(p, p_out, g, thread_position_in_threadgroup.x)" in made.passes[0].source
    p, g = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
    np.testing.assert_array_equal(run(made, {"p": p, "g": g}, n=9)["p_out"], p - 0.5)


def test_a_function_for_an_array_in_place_and_for_another_is_refused() -> None:
    source = """\
__device__ void put(float* x, int i, float v) { x[i] = v; }
__global__ void k(float* x, float* y) { int i = threadIdx.x; float v = x[i]; put(x, i, 2.f * v); put(y, i, v); }
"""
    arrays = {"x": "inout float32 n", "y": "out float32 n"}
    found = refusals(source, plan([launch("k", "1", "n", "x, y")], arrays))
    assert "'x' is given an array that is changed in place, and others: write one function for each" in found[0]
