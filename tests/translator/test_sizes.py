"""Sizes: one form for one meaning, and every simplification keeps the value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.expressions import evaluate
from translator.size_order import at_least, maximum, minimum
from translator.size_text import parse_size
from translator.sizes import UnreadableSize, name, number, render

SMALL = st.recursive(
    st.sampled_from(["n", "m", "k"]) | st.integers(0, 9).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["n", "m"])).map(lambda t: f"({t[0]} // {t[1]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(inner, st.sampled_from(["2", "n", "(m + 1)"])).map(lambda t: f"ceildiv({t[0]}, {t[1]})"),
    ),
    max_leaves=8,
)
AXES = st.fixed_dictionaries({"n": st.integers(1, 40), "m": st.integers(1, 40), "k": st.integers(1, 40)})


@given(SMALL, AXES)
def test_simplifying_keeps_the_value(text, axes):
    try:
        simplified = parse_size(text)
    except UnreadableSize:
        return
    assert evaluate(render(simplified), axes) == evaluate(text, axes)
    assert parse_size(render(simplified)) == simplified


@given(SMALL, SMALL, AXES)
def test_what_is_at_least_another_is_so_for_every_size(a, b, axes):
    try:
        larger, smaller = parse_size(a), parse_size(b)
    except UnreadableSize:
        return
    if at_least(larger, smaller):
        assert evaluate(a, axes) >= evaluate(b, axes)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("(n + 255) // 256", "ceildiv(n, 256)"),
        ("1 + (n - 1) // 256", "ceildiv(n, 256)"),
        ("(n + b - 1) // b", "ceildiv(n, b)"),
        ("(n * d + 2 * d - 1) // d", "n + 1"),
        ("ceildiv(ceildiv(n, 32), 4)", "ceildiv(n, 128)"),
        ("n * 4 // 4", "n"),
        ("(n // 8) // 4", "n // 32"),
        ("(8 * n + 4) // 16", "(2 * n + 1) // 4"),
        ("rows * cols - cols + cols", "cols * rows"),
        ("min(n, n + 1)", "n"),
        ("min(65535, ceildiv(n, 256))", "min(ceildiv(n, 256), 65535)"),
        ("min(16 * ceildiv(n, 16) - 1, n - 1)", "n - 1"),
        ("max(4 * (n // 4), n)", "n"),
        ("n - n % 4", "n - n % 4"),
        ("(n * 8 + m) % 8", "m % 8"),
        ("0 - n", "0 - n"),
        ("n // (m * k)", "n // (k * m)"),
        ("2 * (n // 3)", "2 * (n // 3)"),
    ],
)
def test_one_meaning_has_one_text(text, simple):
    assert render(parse_size(text)) == simple


def test_factors_come_in_the_order_of_the_axes():
    assert render(parse_size("cols * rows + cols"), ["rows", "cols"]) == "rows * cols + cols"


@pytest.mark.parametrize(
    "text",
    ["", "n +", "n / 2", "n ** 2", "n // 0", "n % 0", "f(n)", "ceildiv(n)", "n.x", "1.5", "'a'", "n if m else k", "3n",
     "lambda: n", "n" * 500, "(" * 300, "9" * 30, "n := 3", "True", "min(*n)", "[n for n in m]"],
)  # fmt: skip
def test_what_is_no_size_is_refused_in_words(text):
    with pytest.raises(UnreadableSize, match=r"\w"):
        parse_size(text)


def test_nesting_and_growth_have_a_limit():
    size = name("n")
    with pytest.raises(UnreadableSize, match="nested too deeply"):
        for _ in range(20):
            size = minimum(maximum(size, name("m")) + name("k"), number(1000))
    terms = name("a") + name("b") + name("c") + name("d")
    with pytest.raises(UnreadableSize, match="too many terms"):
        for _ in range(20):
            terms = terms * (terms + number(1))
