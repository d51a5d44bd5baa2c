"""Which lines of a program go with which lines of CUDA, and which places an option points at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ksearch_tui.widgets.cited import Place, cited_places, excerpt
from ksearch_tui.widgets.cuda_side import CudaSide, read_cuda_side
from ksearch_tui.widgets.metal_side import candidate_side, translations
from ksearch_tui.widgets.metal_words import metal_words
from search.kernels.program import Pass, Program
from search.kernels.translated import program_of
from search.option import Option
from translator.launches import read_launches
from translator.metal_writer import write_metal

TWO_KERNELS = """\
__device__ float twice(float v) {
    return v + v;
}
__global__ void first(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = twice(x[i]);
}
__global__ void second(const float* x, float* y, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}
void run_first(const float* x, float* y, int n) { first<<<(n + 255) / 256, 256>>>(x, y, n); }
void run_second(const float* x, float* y, int n) { second<<<1, 256>>>(x, y, n); }
"""


@pytest.fixture
def side(tmp_path: Path) -> CudaSide:
    path = tmp_path / "two.cu"
    path.write_text(TWO_KERNELS, encoding="utf-8")
    return read_cuda_side(path)


def program(*lines: str) -> Program:
    return Program((Pass("p", ("x",), ("y",), "\n".join(lines), ("n", "1", "1"), ("32", "1", "1")),))


def option(why: str) -> Option:
    return Option("o2", "o1", "t", why, "", 5.0, 0.5, 1, 1.0, "catalogue", 0, 1)


def test_kernels_that_different_host_functions_launch_are_all_translated(side):
    *_, done = translations(side)
    texts = [line.text.plain.strip() for line in done.lines]
    barrier = texts.index("threadgroup_barrier(mem_flags::mem_threadgroup);")
    assert (done.cuda_of[barrier], done.metal_of[10]) == ((10,), (barrier,))
    assert done.cuda_of[texts.index("return v + v;")] == (1,)
    assert done.said == "2 passes"


def test_the_launch_stands_with_the_line_that_launches(side):
    *_, done = translations(side)
    [launch] = [n for n, line in enumerate(done.lines) if line.text.plain.startswith("grid 256 × 1 × 1")]
    assert done.cuda_of[launch] == (14,)


def test_a_line_without_metal_is_near_the_one_above_it_but_not_outside_its_function(side):
    *_, done = translations(side)
    closing = 12
    assert side.function_of(closing) == 7
    assert done.near(closing, side.function_of(closing)) in done.metal_of[11]
    assert done.near(13, side.function_of(13)) == done.near(13, 13)


def test_a_candidate_goes_with_the_cuda_that_leads_to_the_same_words(side):
    candidate = program("float v = x[thread_position_in_grid.x];", "threadgroup_barrier(mem_flags::mem_threadgroup);")
    found = candidate_side(candidate, None, side, None)
    first = next(n for n, line in enumerate(found.lines) if line.text.plain.startswith("float v"))
    assert found.cuda_of[first] == (4,)
    assert 10 in found.cuda_of[first + 1]
    assert first + 1 in found.metal_of[10]


def test_a_word_in_a_comment_is_nothing_in_common(side):
    found = candidate_side(program("y[0] = 1.0f;  // no threadgroup_barrier"), None, side, None)
    assert found.cuda_of[-1] == ()
    assert found.said == "1 pass · no pattern of this file in it"


def test_a_candidate_that_is_the_translation_has_its_lines(side):
    *_, translated = translations(side)
    given = program_of(write_metal(side.source, read_launches(side.source)))
    found = candidate_side(given, None, side, translated)
    line = next(n for n, line in enumerate(found.lines) if line.text.plain == "if (i < n) y[i] = twice(x[i]);")
    assert found.cuda_of[line] == (5,)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("s = simd_sum(v);", {"simd_sum"}),
        ("float length = exp2(x);", {"exp2"}),
        ("threadgroup float tile[32];", {"threadgroup"}),
        ("for (uint i = 0; i < min(n, 4); ++i) {}", set()),
    ],
)
def test_words_of_metal_are_built_ins_and_functions_that_are_called(code, words):
    assert metal_words(code) == words


def test_an_option_points_at_the_places_that_its_reasons_name_each_once():
    files = (Path("/a/soft.cu"), Path("/a/my-soft.cu"))
    why = "As soft.cu:41 does, and my-soft.cu:7; not other.cu:3, nor soft.cuh:2. Again soft.cu:41."
    assert cited_places(option(why), files) == (Place(files[0], 41), Place(files[1], 7))
    assert cited_places(replace(option(why), why=""), files) == ()
    assert cited_places(None, files) == ()


def test_an_excerpt_is_outdented_and_stays_within_the_file():
    lines = ["  a", "    b", "  c"]
    assert excerpt(Place(Path("k.cu"), 1), lines) == [(1, "a"), (2, "  b"), (3, "c")]
    assert excerpt(Place(Path("k.cu"), 4), lines) == []
