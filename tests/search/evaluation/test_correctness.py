from __future__ import annotations

import numpy as np
import pytest

from search.evaluation.correctness import compare
from search.kernels.dtypes import DTYPES
from search.problems.definition import Tolerance

TOLERANCE = Tolerance(atol=0.01, rtol=0.1)
FLOAT = DTYPES["float32"]


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def wants(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_difference_is_allowed_in_proportion_to_the_largest_of_its_row():
    # Row 0 has scale 10: 0.01 + 0.1 * 10 = 1.01 allowed. Row 1 has scale 1: 0.11.
    want = np.array([[10.0, 0.0], [1.0, 0.0]])
    near = np.array([[10.0, 1.0], [1.0, 0.1]], dtype=np.float32)
    far = np.array([[10.0, 1.0], [1.0, 0.2]], dtype=np.float32)
    assert compare(near, want, FLOAT, TOLERANCE).mismatch is None
    assert compare(near, want, FLOAT, TOLERANCE).error == pytest.approx(1 / 1.01)
    mismatch = compare(far, want, FLOAT, TOLERANCE).mismatch
    assert (mismatch.index, mismatch.wrong, mismatch.total) == ((1, 1), 1, 4)
    assert mismatch.allowed == pytest.approx(0.11)


def test_the_first_wrong_element_is_told_with_what_it_should_be():
    found = compare(array(1, 5, 7), wants(1, 2, 3), FLOAT, TOLERANCE)
    assert found.mismatch.describe("y") == "y[1] is 5; it should be 2 ± 0.31 (2 of 3 elements are wrong)"
    assert found.error == pytest.approx(4 / 0.31)


def test_nan_is_wrong_unless_the_reference_has_it_there():
    assert compare(array(np.nan, 1), wants(np.nan, 1), FLOAT, TOLERANCE).mismatch is None
    found = compare(array(1, np.nan), wants(1, 1), FLOAT, TOLERANCE)
    assert found.mismatch.index == (1,)
    assert "never written, or came out as NaN" in found.mismatch.describe("y")
    assert compare(array(5, 1), wants(np.nan, 1), FLOAT, TOLERANCE).mismatch.index == (0,)


def test_infinities_must_match_in_sign_and_do_not_widen_what_is_allowed():
    assert compare(array(np.inf, 1), wants(np.inf, 1), FLOAT, TOLERANCE).mismatch is None
    assert compare(array(-np.inf, 1), wants(np.inf, 1), FLOAT, TOLERANCE).mismatch.index == (0,)
    assert compare(array(3e38, 1), wants(np.inf, 1), FLOAT, TOLERANCE).mismatch.index == (0,)
    assert compare(array(np.inf, 2), wants(np.inf, 1), FLOAT, TOLERANCE).mismatch.index == (1,)


def test_what_the_type_cannot_hold_counts_as_the_infinity_it_rounds_to():
    half = DTYPES["float16"]
    assert compare(np.array([np.inf, 1], np.float16), wants(1e6, 1), half, TOLERANCE).mismatch is None
    assert compare(np.array([65504, 1], np.float16), wants(1e6, 1), half, TOLERANCE).mismatch.index == (0,)


def test_the_error_is_the_largest_finite_one():
    assert compare(array(np.nan, 1.055), wants(1, 1), FLOAT, TOLERANCE).error == pytest.approx(0.5, rel=1e-4)


def test_bfloat16_is_compared_by_value():
    kind = DTYPES["bfloat16"]
    assert compare(kind.encode(array(1, 2)), wants(1, 2), kind, TOLERANCE) == compare(
        array(1, 2), wants(1, 2), FLOAT, TOLERANCE
    )


def test_integers_without_tolerance_must_be_equal():
    kind, exact = DTYPES["int32"], Tolerance(0, 0)
    assert compare(np.array([1, 2], np.int32), wants(1, 2), kind, exact).mismatch is None
    assert compare(np.array([1, 3], np.int32), wants(1, 2), kind, exact).mismatch.index == (1,)


def test_an_output_without_rows_is_compared_as_one_value():
    assert compare(np.float32(2).reshape(()), np.array(2.05), FLOAT, TOLERANCE).mismatch is None
    assert compare(np.float32(2).reshape(()), np.array(3.0), FLOAT, TOLERANCE).mismatch.index == ()
