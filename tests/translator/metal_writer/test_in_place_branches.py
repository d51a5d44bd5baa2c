"""Arrays that are changed in place under conditions: which value a read means, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate

N = 40
ROW = "for (int c = threadIdx.x; c < n; c += 32)"


def told(body: str, run: Runner) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run a body on a row that one block shares; return ``x`` as it came, ``mode``, ``y`` and ``x`` as it went out."""
    source = f"__global__ void k(float* x, const int* mode, const float* y, int n) {{ {body} }}"
    arrays = {"x": "inout float32 n", "mode": "in int32 n", "y": "in float32 n"}
    made = translate(source, plan([launch("k", "1", "32", "x, mode, y, =n")], arrays))
    x, y = np.arange(N, dtype=np.float32) + 1, np.arange(N, dtype=np.float32) * 10 + 100
    mode = np.arange(N, dtype=np.int32) % 4
    return x, mode, y, run(made, {"x": x, "mode": mode, "y": y}, n=N)["x_out"]


def test_branches_that_exclude_each_other_each_mean_the_array_as_it_came(run: Runner) -> None:
    body = "if (mode[c] == 0) x[c] = y[c]; else if (mode[c] == 1) x[c] = x[c] * 2.f; else x[c] -= 1.f;"
    x, mode, y, out = told(f"{ROW} {{ {body} }}", run)
    np.testing.assert_array_equal(out, np.where(mode == 0, y, np.where(mode == 1, x * 2, x - 1)))


def test_a_choice_made_after_a_write_keeps_what_was_written(run: Runner) -> None:
    _, mode, y, out = told(f"{ROW} {{ x[c] = y[c]; if (mode[c] == 0) x[c] = x[c] + 3.f; }}", run)
    np.testing.assert_array_equal(out, np.where(mode == 0, y + 3, y))


def test_cases_of_a_switch_are_conditions(run: Runner) -> None:
    body = "switch (mode[c]) { case 0: x[c] = y[c]; case 1: x[c] += 1.f; break; case 2: x[c] = 5.f; break; }"
    x, mode, y, out = told(f"{ROW} {{ {body} }}", run)
    np.testing.assert_array_equal(out, np.select([mode == 0, mode == 1, mode == 2], [y + 1, x + 1, 5], x))
    x, mode, y, out = told(f"{ROW} {{ switch (mode[c]) {{ case 0: x[c] = y[c]; }} x[c] += 1.f; }}", run)
    np.testing.assert_array_equal(out, np.where(mode == 0, y, x) + 1)


@pytest.mark.parametrize("leave", ["continue", "break"])
def test_a_round_that_is_left_early_has_not_written(leave: str, run: Runner) -> None:
    body = f"{ROW} {{ if (mode[c] == 1) {leave}; x[c] = y[c]; }} {ROW} {{ x[c] += 1.f; }}"
    x, mode, y, out = told(body, run)
    np.testing.assert_array_equal(out, np.where(mode == 1, x, y) + 1)


def test_two_elements_that_a_thread_exchanges_are_left_to_it(run: Runner) -> None:
    body = "int d = n - 1 - c; if (d > c && mode[c] == 0) { float t = x[c]; x[c] = x[d]; x[d] = t; }"
    x, mode, _, out = told(f"{ROW} {{ {body} }}", run)
    low = np.arange(N) < N // 2
    swapped = np.where(low, (mode == 0) & low, (mode[::-1] == 0) & low[::-1])
    np.testing.assert_array_equal(out, np.where(swapped, x[::-1], x))


def test_a_write_within_a_condition_is_refused() -> None:
    source = "__global__ void k(float* x, int n) { int c = threadIdx.x; if (c && (x[c] = 2.f) > 0.f) x[c] *= 2.f; }"
    (said,) = refusals(source, plan([launch("k", "1", "32", "x, =n")], {"x": "inout float32 n"}))
    assert "'x' is changed in place within an expression" in said
