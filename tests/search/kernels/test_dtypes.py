"""Rounding to the types that numpy has not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.dtypes import DTYPES

BF16 = DTYPES["bfloat16"]


def test_bfloat16_keeps_the_upper_half_of_a_float_rounded_to_even() -> None:
    stored = BF16.encode(np.array([1.0, -2.0, 1.00390625, 1.01171875, 3.4e38, np.inf]))
    # 1 + 2^-8 is half-way between 1 and 1 + 2^-7: the even one is 1; 1 + 3 * 2^-8 rounds up to 1 + 2^-6.
    assert [hex(bits) for bits in stored] == ["0x3f80", "0xc000", "0x3f80", "0x3f82", "0x7f80", "0x7f80"]


def test_bfloat16_nan_stays_nan() -> None:
    assert np.isnan(BF16.decode(BF16.encode(np.array([np.nan, -np.nan])))).all()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False).filter(lambda x: 1e-30 < abs(x) < 1e38))
def test_bfloat16_is_within_half_a_step(value: float) -> None:
    assert abs(float(BF16.decode(BF16.encode(np.array(value)))) - value) <= abs(value) * 2**-8


def test_half_overflow_is_infinity_and_integers_stay_integers() -> None:
    assert DTYPES["float16"].decode(DTYPES["float16"].encode(np.array([70000.0])))[0] == np.inf
    assert DTYPES["int32"].decode(np.array([3], dtype=np.int32)).dtype == np.int32
