"""Calibration, with numbers worked out by hand: the mean log ratio is shared with three predictions that came true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from search.calibration import Calibration, Comparison


def compared(*found: tuple[str, str, float, float]) -> Calibration:
    return Calibration(tuple(Comparison(f"o{i}", *of) for i, of in enumerate(found)))


def test_without_results_a_prediction_is_taken_as_it_is() -> None:
    assert Calibration().calibrated(1.8, "llm") == pytest.approx(1.8)
    assert Calibration().error() is None


def test_one_result_moves_the_expectation_by_a_quarter_of_its_logarithm() -> None:
    # Promised 4x, found 2x: ln(1/2) shared by 1 + 3 is a factor of 2 ** (-1/4) = 0.8409.
    once = compared(("llm", "", 4.0, 2.0))
    assert once.calibrated(2.0, "llm") == pytest.approx(2 * 2**-0.25)


def test_a_proposer_that_always_promises_twice_as_much_is_believed_less_and_less() -> None:
    # Nine such results: ln(1/2) * 9 / 12, a factor of 2 ** (-3/4) = 0.5946.
    often = compared(*[("llm", "", 4.0, 2.0)] * 9)
    assert often.calibrated(4.0, "llm") == pytest.approx(4 * 2**-0.75)
    assert often.error() == pytest.approx(math.log(2))


def test_proposers_are_judged_apart() -> None:
    both = compared(("llm", "", 4.0, 1.0), ("catalogue", "", 2.0, 2.0))
    assert both.calibrated(2.0, "catalogue") == pytest.approx(2.0)
    assert both.calibrated(2.0, "llm") < 2.0
    assert both.error("catalogue") == 0
    assert both.error("llm") == pytest.approx(math.log(4))
    assert both.error() == pytest.approx(math.log(4) / 2)


def test_an_action_starts_from_its_proposer_and_moves_by_its_own_results() -> None:
    # The proposer: (ln 1/2 + 0) / (2 + 3) = -0.2 ln 2. Tiling: (-ln 2 + 3 * -0.2 ln 2) / (1 + 3) = -0.4 ln 2.
    seen = compared(("cat", "tile", 4.0, 2.0), ("cat", "exp2", 1.5, 1.5))
    assert seen.calibrated(1.0, "cat", "never tried") == pytest.approx(2**-0.2)
    assert seen.calibrated(1.0, "cat", "tile") == pytest.approx(2**-0.4)
    # exp2 came true: (0 + 3 * -0.2 ln 2) / 4 = -0.15 ln 2.
    assert seen.calibrated(1.0, "cat", "exp2") == pytest.approx(2**-0.15)


def test_who_predicts_nothing_is_expected_to_change_nothing() -> None:
    assert compared(("llm", "", 4.0, 1.0)).calibrated(0.0, "llm") == 1.0


def test_only_what_the_proposer_foretold_and_wrote_is_compared(grower: Any, scripts: Any) -> None:
    grower.option("root", predicted=0.0)
    grower.passes("root", 1.0)
    grower.option("told", "root", predicted=2.0)
    grower.passes("told", 0.4)
    grower.option("own", "root", by="person", predicted=0.0)
    grower.passes("own", 0.5)
    grower.option("lost", "root")
    grower.fails("lost")
    grower.option("mended by hand", "root")
    grower.happens(
        "edited",
        option="mended by hand",
        program=grower.store(scripts.program("by hand")),
        by="person",
        policy_choice="",
    )
    grower.happens("started", option="mended by hand", attempt=1)
    result = scripts.judged(scripts.program("by hand"), 0.1)
    grower.happens("evaluated", option="mended by hand", attempt=1, **result.to_fields())
    (comparison,) = Calibration.of(grower.tree).comparisons
    assert (comparison.option, comparison.predicted) == ("told", 2.0)
    assert comparison.found == pytest.approx(2.5)


def test_the_speedup_that_counts_is_over_the_parent_and_not_over_the_root(grower: Any) -> None:
    grower.option("root", predicted=0.0)
    grower.passes("root", 1.0)
    grower.option("a", "root")
    grower.passes("a", 0.5)
    grower.option("b", "a", predicted=1.25)
    grower.passes("b", 0.4)
    assert Calibration.of(grower.tree).comparisons[-1].log_ratio == pytest.approx(0.0)


def test_a_model_that_predicts_and_one_that_writes_are_told_apart(grower: Any) -> None:
    grower.option("root", predicted=0.0)
    grower.passes("root", 1.0)
    grower.option("a", "root", by="llm:chooser", predicted=2.0)
    grower.passes("a", 0.25)
    seen = Calibration.of(grower.tree)
    # Found 4 where 2 was predicted.
    assert seen.error(by="llm:chooser") == seen.error(writer="script") == pytest.approx(math.log(2))
    assert seen.error(by="script") is None and seen.error(writer="llm:chooser") is None
