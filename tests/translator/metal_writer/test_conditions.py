"""Conditional compilation: the branch that nvcc would take is translated."""

from __future__ import annotations

import pytest

from tests.translator.metal_writer.conftest import launch, plan, translate
from translator.cuda_source import parse_cuda
from translator.metal_writer.conditions import active_source

ARRAYS = {"x": "in float32 n", "y": "out float32 n"}


def kept(text: str) -> list[str]:
    return active_source(parse_cuda(text, "k.cu")).text.split()


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("#if 0", False),
        ("#if FAST", False),
        ("#if defined(FAST) && !FAST", True),
        ("#ifdef FAST", True),
        ("#ifndef FAST", False),
        ("#if __CUDA_ARCH__ >= 800 || defined(USE_ROCM)", True),
        ("#if (BLOCK * 2 > 100) && BLOCK != 64", False),
        ("#if !defined USE_ROCM", True),
    ],
)
def test_a_condition_of_macros_is_worked_out(condition: str, holds: bool) -> None:
    text = f"#define FAST 0\n#define BLOCK 64\n{condition}\nint yes;\n#else\nint no;\n#endif\nint after;\n"
    assert kept(text)[6:] == ["int", "yes;" if holds else "no;", "int", "after;"]


def test_places_keep_their_offsets() -> None:
    text = "#if 0\nint no;\n#elif 1\nint yes;\n#else\nint other;\n#endif\n"
    after = active_source(parse_cuda(text, "k.cu")).text
    assert len(after) == len(text) and after.index("int yes;") == text.index("int yes;")
    assert after.split() == ["int", "yes;"]


def test_branches_within_a_branch_that_is_left_out_are_left_out() -> None:
    assert kept("#if 0\n#if 1\nint a;\n#else\nint b;\n#endif\n#define Q 1\n#endif\n#ifdef Q\nint c;\n#endif\n") == []


@pytest.mark.parametrize("condition", ["#if __has_include(<x.h>)", "#if VERSION(3) > 2", "#if 1 +"])
def test_what_is_not_known_stays_as_it_is(condition: str) -> None:
    text = f"{condition}\nint a;\n#else\nint b;\n#endif\n"
    assert active_source(parse_cuda(text, "k.cu")).text == text


def test_a_branch_that_is_not_known_leaves_all_as_they_are() -> None:
    text = "#if 0\nint a;\n#elif VERSION(3)\nint b;\n#endif\n"
    assert active_source(parse_cuda(text, "k.cu")).text == text


def test_a_macro_and_a_function_have_the_meaning_of_their_branch() -> None:
    source = """\
#define USE_A
#ifdef USE_A
#define SCALE 5.f
__device__ float f(float v) { return v; }
#else
#define SCALE 3.f
__device__ float f(float v) { return 2.f * v; }
#endif
__global__ void k(const float* x, float* y) {
#if __CUDA_ARCH__ < 300
  y[threadIdx.x] = 0.f;
#else
  y[threadIdx.x] = SCALE * f(x[threadIdx.x]);
#endif
}
"""
    step = translate(source, plan([launch("k", "1", "n", "x, y")], ARRAYS)).passes[0]
    assert "#define SCALE 5.f" in step.header and "3.f" not in step.header
    assert "return v;" in step.header and "2.f * v" not in step.header
    assert (
        step.source.strip() == "y[thread_position_in_threadgroup.x] = SCALE * f(x[thread_position_in_threadgroup.x]);"
    )
    assert 13 in step.source_lines
