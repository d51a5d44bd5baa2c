"""The text itself: lines that know where they came from, comments, and sources that are no good."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translator.metal_writer.conftest import launch, plan, translate
from translator.cuda_source import parse_cuda
from translator.metal_writer import write_metal
from translator.metal_writer.emits import TABLE
from translator.primitives import load_primitives

SOURCE = """\
// Doubles.
__device__ float twice(float v) {
  return 2.f * v;  // exact
}

/* One thread
   an element. */
__global__ void f(const float* x, float* y, int n, unsigned step) {
  assert(n > 0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    // \N{MULTIPLICATION SIGN} 2
    y[i] = twice(x[i * step]);
  }
}
"""
LAUNCHES = plan([launch("f", "ceildiv(n, 64)", "64", "x, y, =n, =1")], {"x": "in float32 n", "y": "out float32 n"})


def test_each_line_knows_the_line_of_the_source() -> None:
    step = translate(SOURCE, LAUNCHES).passes[0]
    assert dict(zip(step.source.split("\n"), step.source_lines, strict=True)) == {
        "/* One thread": 6,
        "   an element. */": 7,
        "const uint step = step_;": 0,
        "int i = thread_position_in_grid.x;": 10,
        "if (i < n) {": 11,
        "  // ? 2": 12,
        "  y[i] = twice(x[i * step]);": 13,
        "}": 14,
    }
    assert dict(zip(step.header.split("\n"), step.header_lines, strict=True)) == {
        "// Doubles.": 1,
        "inline float twice(float v) {": 2,
        "  return 2.f * v;  // exact": 3,
        "}": 4,
    }


def test_grids_are_in_threads_and_integers_are_template_constants() -> None:
    step = translate(SOURCE, LAUNCHES).passes[0]
    assert step.grid == ("ceildiv(n, 64) * 64", "1", "1")
    assert step.threadgroup == ("64", "1", "1")
    assert step.template == (("n", "n"), ("step_", "1"))


def test_what_a_word_becomes_is_said_of_words_that_the_table_has() -> None:
    words = {word for row in load_primitives() for word in row.words}
    rows = tomllib.loads(Path(TABLE).read_text(encoding="utf-8"))
    assert {word for row in rows.values() for word in row} <= words
    assert set(rows) <= {row.id for row in load_primitives()}


@pytest.mark.parametrize("text", ["", "not CUDA at all {", "__global__ void g(float* x) { x[0] = 1; }"])
def test_a_kernel_that_is_not_there_is_refused_by_name(text: str) -> None:
    translation = write_metal(parse_cuda(text, "no.cu"), LAUNCHES)
    assert [refusal.reason for refusal in translation.refusals] == ["there is no kernel 'f'"]
    assert translation.refusals[0].number == 1


CORPUS = sorted((Path(__file__).parents[2] / "corpus" / "cuda").glob("*.cu"))


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(CORPUS), data=st.data())
def test_damaged_sources_never_raise(path: Path, data: st.DataObject) -> None:
    """Half a file, or one with a piece taken out, is translated or refused."""
    text = path.read_text(encoding="utf-8")
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 200)))
    source = parse_cuda(text[:begin] + text[end:], path.name)
    for kernel in source.kernels[:2]:
        names = [f"a{i}" for i, _ in enumerate(kernel.parameters)]
        arguments = ", ".join(
            name if "*" in parameter.type else "=n" for name, parameter in zip(names, kernel.parameters, strict=True)
        )
        steps = [launch(kernel.name, "n", "64", arguments, template=tuple("1" for _ in kernel.template))]
        write_metal(source, plan(steps, {name: "inout float32 n" for name in names}))
