"""Expressions are parsed, never run as Python, and mistakes are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.expressions import ExpressionError, evaluate, names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("n", 10),
        ("n * 4 + 2", 42),
        ("2 + n * 4", 42),
        ("(2 + n) * 4", 48),
        ("n // 3", 3),
        ("n % 3", 1),
        ("n - 3 - 2", 5),
        ("-n + 12", 2),
        ("ceildiv(n, 4) * 4", 12),
        ("min(n, 4)", 4),
        ("max(n, 4, 11)", 11),
        ("100 // n // 2", 5),
    ],
)
def test_arithmetic_binds_as_in_python(text: str, value: int) -> None:
    assert evaluate(text, {"n": 10}) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty expression"),
        ("2 +", "the end"),
        ("n m", "unexpected 'm'"),
        ("n / 2", "unexpected '/'"),
        ("n ** 2", "expected"),
        ("__import__('os')", "unexpected"),
        ("open(n, n)", "unknown function 'open'"),
        ("min(n)", "two or more arguments"),
        ("ceildiv(1, 2, 3)", "two arguments"),
        ("n // 0", "division by zero"),
        ("n % (n - 10)", "division by zero"),
        ("ceildiv(n, 0)", "division by zero"),
        ("rows", "no axis named 'rows'"),
        ("(" * 1000 + "1" + ")" * 1000, "too deeply nested"),
        ("-" * 1000 + "1", "too deeply nested"),
    ],
)
def test_a_mistake_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint.replace("(", r"\(").replace("*", r"\*")):
        evaluate(text, {"n": 10})


def test_names_are_the_axes_that_an_expression_needs() -> None:
    assert names("ceildiv(rows, 4) * n + min(n, 2)") == {"rows", "n"}
    assert names(3) == frozenset()


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(1, 1000))
def test_ceildiv_is_the_least_number_of_tiles_that_covers(a: int, b: int, extra: int) -> None:
    tiles = evaluate("ceildiv(a, b)", {"a": a, "b": b})
    assert tiles * b >= a > (tiles - 1) * b
