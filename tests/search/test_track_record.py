from __future__ import annotations

import pytest

from search.calibration import Calibration, Comparison
from search.track_record import PROPOSES, WRITES, track_records


def comparison(by: str, writer: str, predicted: float, found: float) -> Comparison:
    return Comparison("o", by, "", predicted, found, writer)


def test_there_is_a_record_of_each_that_proposed_and_of_each_model_that_wrote():
    records = track_records(
        Calibration(
            (
                comparison("llm:b", "llm:w", 2.0, 1.0),
                comparison("llm:a", "llm:w", 1.0, 2.0),
                comparison("llm:a", "llm:v", 4.0, 2.0),
                comparison("catalogue", "catalogue", 2.0, 3.0),
            )
        )
    )
    assert [(record.does, record.who, record.ratios) for record in records] == [
        (PROPOSES, "catalogue", (1.5,)),
        (PROPOSES, "a", (2.0, 0.5)),
        (PROPOSES, "b", (0.5,)),
        (WRITES, "v", (0.5,)),
        (WRITES, "w", (0.5, 2.0)),
    ]


def test_errors_up_and_down_cancel_in_the_bias_and_add_in_the_typical_error():
    [record] = track_records(Calibration((comparison("c", "c", 1.0, 2.0), comparison("c", "c", 2.0, 1.0))))
    assert (record.bias, record.typical_error) == pytest.approx((1.0, 2.0))


def test_a_bias_below_one_promised_too_much():
    [record] = track_records(Calibration((comparison("c", "c", 4.0, 1.0), comparison("c", "c", 1.0, 1.0))))
    assert (record.bias, record.typical_error) == pytest.approx((0.5, 2.0))
