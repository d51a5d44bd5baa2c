"""Whatever happens to a source, reading its launches gives a plan or one clear message."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.cuda_source import parse_cuda
from translator.launches import answered_plan
from translator.mistakes import CudaInputError

CORPUS = Path(__file__).parent.parent / "corpus" / "cuda"
SOURCES = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.cu"))]
PIECES = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "<<<",
    ">>>",
    ";",
    ",",
    "*",
    "&",
    "+",
    "-",
    "/",
    "%",
    "=",
    "==",
    "!=",
    "if",
    "for",
    "while",
    "switch",
    "case",
    "return",
    "int",
    "float",
    "n",
    "0",
    "1",
    "-1",
    "<<",
    ">>",
    "?",
    ":",
    "::",
    "template",
    "typename",
    "__global__",
    "__shared__",
    "dim3",
    "sizeof",
    "//",
    "/*",
    "*/",
    "#",
    "'",
    '"',
    "99999999999999999999",
    "1e999",
    "blockIdx.x",
    "nullptr",
]

edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SOURCES), st.floats(0.05, 1), edits)
def test_a_cut_and_mutilated_source_is_read(text, kept, changes):
    text = text[: int(len(text) * kept)]
    for place, length, piece in changes:
        at = int(len(text) * place)
        text = f"{text[:at]} {piece} {text[at + length :]}"
    try:
        plan = answered_plan(parse_cuda(text, "cut.cu"), None, {})
    except CudaInputError as error:
        assert "\n" not in str(error)
        return
    for step in plan.steps:
        assert len(step.grid) == len(step.block) == 3
    assert all(question.message.isprintable() for question in plan.questions)


DEEP = (
    "int a = n; " + "a = a / 3 + 1; " * 3000 + "k<<<a, 32>>>(x, n);",
    "k<<<" + "(" * 5000 + "n" + ")" * 5000 + ", 32>>>(x, n);",
    "if (n) " * 3000 + "k<<<n, 32>>>(x, n);",
    "if (" + "n && " * 3000 + "n) k<<<n, 32>>>(x, n);",
    "for (int i = 0; i < 9; ++i) " * 12 + "k<<<n + i, 32>>>(x, n);",
    "int a = n; " + "a *= a + 1; " * 200 + "k<<<a, 32>>>(x, n);",
    "k<<<1 << 61 << 61, 32>>>(x, n);",
    "k<<<n, 32>>>(x + " + "x[" * 400 + "0" + "]" * 400 + ", n);",
)


@pytest.mark.parametrize("body", DEEP, ids=lambda body: body[:24])
def test_what_is_too_deep_or_too_long_is_asked_or_refused(body):
    kernel = "__global__ void k(float* x, int n) { x[0] = n; }\n"
    source = parse_cuda(f"{kernel}void run(float* x, int n) {{ {body} }}\n", "deep.cu")
    try:
        assert answered_plan(source, None, {}).questions
    except CudaInputError as error:
        assert str(error) == "deep.cu: its code is nested too deeply to be followed"
