"""The size that is timed, and the formula for an original's work."""

from __future__ import annotations

import pytest

from search.from_cuda.bench_sizes import LEAST_ELEMENTS, MOST_ELEMENTS, bench_size, counting_sizes, usual_size
from search.from_cuda.work_count import fit_products
from search.kernels.expressions import evaluate
from translator.launch_plan import ArrayPlan, LaunchPlan, LaunchStep, Role
from translator.span import Span


def plan(extent: str, axes: tuple[str, ...], grid: str = "1", shared: str = "0", **more: object) -> LaunchPlan:
    arrays = (ArrayPlan("x", "float32", extent, Role.INPUT), ArrayPlan("y", "float32", extent, Role.OUTPUT))
    step = LaunchStep("f", (), (grid, "1", "1"), ("64", "1", "1"), shared, (), Span(0, 0, 1, 1))
    return LaunchPlan(axes, (), arrays, (step,), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("axis", "size"), [("B", 4), ("num_heads", 32), ("kv_heads", 8), ("head_dim", 64), ("VOCAB", 32000), ("zyx", 1024)]
)
def test_axes_have_the_sizes_that_go_with_their_names(axis: str, size: int) -> None:
    assert usual_size(axis) == size


@pytest.mark.parametrize(("kernel", "size"), [("matmul", 1024), ("topk_softmax", 8), ("moe_gating", 8)])
def test_a_name_can_mean_another_size_in_another_kernel(kernel: str, size: int) -> None:
    assert usual_size("k", kernel) == size


def test_an_axis_that_a_check_holds_up_does_not_keep_the_others_from_shrinking() -> None:
    found = bench_size(plan("rows * padded", ("rows", "vocab", "padded"), requires=(("least", "padded", "vocab"),)))
    assert found is not None
    assert found["padded"] >= found["vocab"] == 32000
    assert 2 * found["rows"] * found["padded"] <= MOST_ELEMENTS


def test_the_timed_size_leaves_the_shared_memory_within_what_metal_has() -> None:
    wide = plan("rows * cols", ("rows", "cols"), shared="cols * 16")
    found = bench_size(wide)
    assert found is not None
    assert found["cols"] * 16 <= 24 << 10
    assert 2 * found["rows"] * found["cols"] >= LEAST_ELEMENTS, "the other axis grows instead"


def test_axes_that_a_check_ties_together_are_counted_at_other_sizes_too() -> None:
    tied = plan("n * k", ("n", "k", "group"), requires=(("multiple", "k", "group"),), given=(("k", 64), ("group", 64)))
    assert len({size["k"] for size in counting_sizes(tied)}) > 1


def test_the_sizes_of_a_main_are_taken_as_they_are() -> None:
    assert bench_size(plan("n", ("n",), given=(("n", 5000),))) == {"n": 5000}


def test_the_timed_size_has_enough_to_do_and_not_too_much() -> None:
    for extent, axes in (("n", ("n",)), ("rows * cols", ("rows", "cols")), ("a * b * c * d", ("a", "b", "c", "d"))):
        found = bench_size(plan(extent, axes))
        assert found is not None
        assert LEAST_ELEMENTS <= 2 * evaluate(extent, found) <= MOST_ELEMENTS


def test_an_axis_that_no_array_has_does_not_grow() -> None:
    found = bench_size(plan("n", ("n", "seed")))
    assert found is not None and found["seed"] == 1


def test_what_the_host_checks_and_cuda_limits_holds() -> None:
    found = bench_size(plan("n", ("n",), requires=(("most", "n", "4000"), ("multiple", "n", "48"))))
    assert found is not None and found["n"] <= 4000 and found["n"] % 48 == 0
    # More than 2^31 - 1 blocks can't be launched.
    found = bench_size(plan("n", ("n",), grid="n * 4096"))
    assert found is not None and found["n"] * 4096 < 2**31


def test_the_work_is_counted_at_smaller_sizes_in_which_each_axis_differs() -> None:
    sizes = counting_sizes(plan("rows * cols", ("rows", "cols")))
    assert len(sizes) >= 5
    assert all(2 * size["rows"] * size["cols"] <= 1 << 20 for size in sizes)
    assert len({size["rows"] for size in sizes}) > 1 and len({size["cols"] for size in sizes}) > 1


SIZES = [{"m": m, "n": n} for m in (8, 16, 40) for n in (32, 64, 200)]


@pytest.mark.parametrize(
    ("work", "expression"),
    [
        (lambda m, n: 3 * m * n, "3 * m * n"),
        (lambda m, n: 4 * m * n + 96 * m, "4 * m * n"),  # an overhead for each row, which another kernel may not have
        (lambda m, n: 2 * m * n * n, "2 * m * n * n"),
        (lambda m, n: 7 * n, "7 * n"),
        (lambda m, n: 0, "0"),
    ],
)
def test_counts_are_fitted_by_a_product_of_axes(work, expression: str) -> None:
    found = fit_products([(axes, float(work(**axes))) for axes in SIZES])
    assert (found.expression, found.sure) == (expression, True)


def test_counts_that_follow_nothing_are_not_called_sure() -> None:
    found = fit_products([(axes, 100.0 * (1 + 9 * (number % 3))) for number, axes in enumerate(SIZES)])
    assert not found.sure
