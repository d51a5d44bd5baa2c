"""Foreign text turned into Python means what it meant before, and nothing more."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.expressions import ExpressionError, evaluate
from sessions.python_text import docstring, expression, identifier, string

AXES = {"rows": 7, "n": 33, "_k2": 2}
expressions = st.recursive(
    st.one_of(st.integers(0, 40).map(str), st.sampled_from(["007", *AXES])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", " *", "// ", " % "]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"max ({','.join(parts)})"),
        st.tuples(inner, inner).map(lambda parts: f"ceildiv({parts[0]} , {parts[1]})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_an_expression_has_the_same_value_in_python(text: str) -> None:
    renamed = {axis: f"{axis}_" for axis in AXES}
    try:
        value = evaluate(text, AXES)
    except ExpressionError:
        return
    known = {"ceildiv": lambda a, b: -(-a // b), **{renamed[axis]: value for axis, value in AXES.items()}}
    assert eval(expression(text, renamed), {"__builtins__": {"max": max}}, known) == value


def test_an_expression_is_written_as_a_person_would() -> None:
    assert expression("32*rows", {"rows": "rows"}) == "32 * rows"
    assert expression("max( 1,n//4 )-(-2)", {"n": "n"}) == "max(1, n // 4) - (-2)"
    assert expression(3, {}) == "3"


@pytest.mark.parametrize("text", ["__import__('os')", "n.x", "n; n", "n if n else n", "lambda: 0", "pow(n, n)", "n[0]"])
def test_what_is_no_expression_never_becomes_python(text: str) -> None:
    with pytest.raises(ExpressionError):
        expression(text, {"n": "n"})


@given(st.text(st.characters()))
def test_any_text_becomes_a_string_of_itself(text: str) -> None:
    assert ast.literal_eval(string(text)) == text


@given(st.text(st.sampled_from("\"\\\n'ra{}\t ")))
def test_quotes_and_backslashes_do_too(text: str) -> None:
    assert ast.literal_eval(string(text)) == text


@given(st.lists(st.text(st.one_of(st.characters(), st.sampled_from('"\\\n\x00')))))
def test_a_docstring_is_one_string_whatever_it_says(lines: list[str]) -> None:
    (statement,) = ast.parse(docstring(lines)).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_names_are_kept_where_they_can_be() -> None:
    taken = {"mx"}
    assert [identifier(name, taken) for name in ("rows", "mx", "lambda", "1st/pass", "rows", "é")] == [
        "rows",
        "mx_",
        "lambda_",
        "_1st_pass",
        "rows_",
        "_",
    ]
