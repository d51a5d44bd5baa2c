"""The charts of a report: where each evaluation and each prediction stands."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch_tui.report.charts import SERIES, curve, proposers, scatter
from search.calibration import Comparison
from search.evaluation.record import Evaluation
from sessions.report import Attempt


def attempt(number: int, over_naive: float) -> Attempt:
    outcome = "passed" if over_naive else "failed"
    evaluation = Evaluation("", outcome, "simulator", "modelled", "apple-m3-max")
    return Attempt(number, 1, f"o{number}", f"option {number}", "catalogue", "", evaluation, over_naive)


def attempts(*speedups: float) -> list[Attempt]:
    return [attempt(number, speedup) for number, speedup in enumerate(speedups, start=1)]


def compared(predicted: float, found: float, by: str = "catalogue") -> Comparison:
    return Comparison("o1", by, "", predicted, found)


def test_the_curve_goes_up_where_the_best_was_beaten_and_nowhere_else() -> None:
    chart = curve(attempts(1.0, 4.0, 0.0, 2.0, 5.0))
    assert chart is not None
    frame = chart.frame
    # Five evaluations share the width evenly; 5 is the top of the axis, 0 its bottom.
    x = [frame.x(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    y = {speedup: frame.y(speedup / 5) for speedup in (0, 1, 2, 4, 5)}
    assert [(mark.x, mark.y, mark.kind) for mark in chart.marks] == [
        (x[0], y[1], "better"),
        (x[1], y[4], "better"),
        (x[2], y[0], "failed"),
        (x[3], y[2], "passed"),
        (x[4], y[5], "better"),
    ]
    steps = f"H{x[1]}V{y[4]}H{x[2]}V{y[4]}H{x[3]}V{y[4]}H{x[4]}V{y[5]}"
    assert chart.line == f"M{x[0]} {y[1]}{steps}"
    assert [(tick.at, tick.label) for tick in chart.y_ticks] == [(frame.y(n / 5), f"{n}×") for n in range(6)]
    assert [tick.label for tick in chart.x_ticks] == ["1", "2", "3", "4", "5"]
    assert chart.told == "5.00× naive after 5 evaluations, of which 1 failed"


def test_a_curve_begins_where_something_first_passed() -> None:
    chart = curve(attempts(0.0, 1.0))
    assert chart is not None and chart.line == f"M{chart.frame.right:.1f} {chart.frame.top:.1f}"


def test_there_is_no_curve_without_a_speedup() -> None:
    assert curve([]) is None
    assert curve(attempts(0.0, 0.0)) is None


def test_many_evaluations_have_few_labels() -> None:
    chart = curve(attempts(*([1.0] * 400)))
    assert chart is not None
    assert [tick.label for tick in chart.x_ticks] == ["1", "100", "200", "300", "400"]


def test_a_prediction_that_came_true_stands_on_the_line() -> None:
    chart = scatter([compared(2.0, 2.0), compared(4.0, 1.0)], {"o1": "tiles"})
    assert chart is not None
    frame = chart.frame
    true, false = chart.marks
    # The axes go from a quarter of a doubling below 1 to a quarter above 4: 2.5 doublings.
    assert (true.x, true.y) == (frame.x(1.25 / 2.5), frame.y(1.25 / 2.5))
    assert (false.x, false.y) == (frame.x(2.25 / 2.5), frame.y(0.25 / 2.5))
    assert true.label == "tiles: predicted 2.00×, found 2.00×"
    assert chart.line == f"M{frame.x(0)} {frame.y(0)}L{frame.x(1)} {frame.y(1)}"
    assert [tick.label for tick in chart.x_ticks] == ["1×", "2×", "4×"]
    assert chart.told == "2 predictions, of which 1 promised more than was found"


def test_each_proposer_has_marks_of_its_own_until_there_are_no_more() -> None:
    comparisons = [compared(2.0, 2.0, by) for by in ("a", "b", "a", "c", "d", "e")]
    assert proposers(comparisons) == ["a", "b", "c", "d", "e"]
    chart = scatter(comparisons, {})
    assert chart is not None and SERIES == 4
    assert [mark.kind[-1] for mark in chart.marks] == ["0", "1", "0", "2", "3", "0"]


def test_nothing_predicted_is_no_chart() -> None:
    assert scatter([], {}) is None


SPEEDUPS = st.floats(min_value=1e-300, max_value=1e300)


@given(st.lists(st.one_of(st.just(0.0), SPEEDUPS, st.just(math.inf)), min_size=1, max_size=50))
def test_every_evaluation_stands_within_the_chart(speedups: list[float]) -> None:
    chart = curve(attempts(*speedups))
    if chart is None:
        assert not any(math.isfinite(speedup) and speedup > 0 for speedup in speedups)
        return
    assert len(chart.marks) == len(speedups)
    assert len(chart.y_ticks) <= 8
    for mark in chart.marks:
        assert chart.frame.left <= mark.x <= chart.frame.right
        assert chart.frame.top <= mark.y <= chart.frame.bottom


@given(st.lists(st.tuples(SPEEDUPS, SPEEDUPS), min_size=1, max_size=20))
def test_every_prediction_stands_within_the_chart(pairs: list[tuple[float, float]]) -> None:
    chart = scatter([compared(*pair) for pair in pairs], {})
    assert chart is not None and 1 <= len(chart.x_ticks) <= 7
    for mark, (predicted, found) in zip(chart.marks, pairs, strict=True):
        assert chart.frame.left <= mark.x <= chart.frame.right
        assert chart.frame.top <= mark.y <= chart.frame.bottom
        if predicted == pytest.approx(found):
            share = (mark.x - chart.frame.left) / (chart.frame.right - chart.frame.left)
            assert mark.y == pytest.approx(chart.frame.y(share), abs=0.3)
