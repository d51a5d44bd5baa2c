"""A problem that asks for something says which line, until something stands there."""

from __future__ import annotations

import pytest

from search.problems.unfinished import OpenQuestion, open_question

TEXT = """\
name = "mine"

[answers]
# ASK: how many elements has 'x'?
# k.cu:3: __global__ void f(float* x)
"extent.x" = {}
"""


@pytest.mark.parametrize("value", ['""', "''", '""  # later'])
def test_an_empty_value_under_a_question_is_open(value: str) -> None:
    assert open_question(TEXT.format(value)) == OpenQuestion(4, "how many elements has 'x'?")


@pytest.mark.parametrize("value", ['"n"', '"a # b"', "3"])
def test_any_value_answers_it(value: str) -> None:
    assert open_question(TEXT.format(value)) is None


def test_an_empty_value_without_a_question_is_none() -> None:
    assert open_question('# ASK: one?\na = "1"\n\nb = ""\n') is None


def test_the_first_open_question_counts() -> None:
    assert open_question('# ASK: one?\na = "1"\n# ASK: two?\nb = ""\n# ASK: three?\nc = ""\n') == OpenQuestion(
        3, "two?"
    )
