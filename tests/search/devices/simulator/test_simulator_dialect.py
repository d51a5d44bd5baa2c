"""Metal's dialect as text: what changes, what must not, and that lines stay where they were."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.devices.simulator.dialect import DialectError, translate
from search.devices.simulator.tokens import join, tokenize


def in_kernel(text: str, beside: str = "") -> str:
    """`translate` for a kernel's body, with runs of blanks made one."""
    return re.sub(r"[ \t]+", " ", translate(text, in_kernel=True, beside=beside)).strip()


@pytest.mark.parametrize(
    ("metal", "cpp"),
    [
        ("const device float* p;", "const float* p;"),
        ("device const half4* q = (const device half4*)x;", "const half4* q = (const half4*)x;"),
        ("constant float* c; const constant int& n;", "const float* c; const int& n;"),
        ("thread float& kept;", "float& kept;"),
        ("threadgroup float* p = tile;", "float* p = tile;"),
        ("f((threadgroup float4*)tile);", "f(( float4*)tile);"),
        ("a.device + b::thread;", "a.device + b::thread;"),
        ("float x = 1.0 + .5 + 2. + 1e-3 + 3;", "float x = 1.0f + .5f + 2.f + 1e-3f + 3;"),
        (
            "1.5f; 1.5h; 2h; 1.0bf; 0x1F; 0xEh; 7u; 1'000;",
            "1.5f; half(1.5f); half(2.0f); bfloat(1.0f); 0x1F; 0xEh; 7u; 1'000;",
        ),
        ("v.x = v.xy.y;", "v.x = v.y;"),
        (
            "v.xz += w.bgr.xy;",
            "v.ksr_set(ksr::lanes<0, 2>{}) += w.ksr_get(ksr::lanes<2, 1>{});",
        ),
        ("p->wx == q;", "p->ksr_get(ksr::lanes<3, 0>{}) == q;"),
        ("float2 xy = p.xy;", "float2 xy = p.ksr_get(ksr::lanes<0, 1>{});"),
        ("// device 1.0 v.xy", "// device 1.0 v.xy"),
        ('"threadgroup 1.0" /* v.xy */', '"threadgroup 1.0" /* v.xy */'),
    ],
)
def test_words_become_cpp(metal, cpp):
    assert in_kernel(metal) == cpp


def test_members_that_look_like_swizzles_are_left_alone():
    header = "struct Pair { float xy; int n; };"
    assert in_kernel("a.xy + b.zw;", beside=header) == "a.xy + b.ksr_get(ksr::lanes<2, 3>{});"


def test_storage_is_declared_once_for_each_name_and_aligned_as_asked():
    text = in_kernel("threadgroup alignas(16) half a[2][N + 1], b;")
    assert text.count("alignas(16) KSR_THREADGROUP") == 2
    assert "using ksr_type_a = half[2][N + 1];" in text
    assert "using ksr_type_b = half;" in text
    assert 'auto& a = ksr::threadgroup(ksr_tg_a, "a");' in text


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("int a;\n\nstatic float t[4] = {1};", 3, "would keep its value"),
        ('f();\n#include "x.h"\n', 2, 'can\'t include "x.h"'),
        ("f(\n(1];", 2, "closes nothing"),
        ("f({\n1;", 1, "never closed"),
        ("#define T threadgroup float x[3];\n", 1, "in a macro"),
    ],
)
def test_text_that_is_no_kernel_is_refused_with_its_line(text, line, says):
    with pytest.raises(DialectError, match=re.escape(says)) as caught:
        translate(text, in_kernel=True)
    assert caught.value.line == line


@given(st.text(alphabet="ab1.0hx(){}[];\n\t \"'/*\\#<>=+-,:_&|device threadgroup", max_size=80))
def test_tokens_put_together_are_the_text(text):
    assert join(tokenize(text)) == text


@given(st.text(alphabet="abxyz1.0h(){}[];\n\t \"'/*\\#<>=+-,:&|", max_size=60))
def test_translation_never_moves_a_line(text):
    try:
        translated = translate("threadgroup float t[\n4];" + text, in_kernel=True)
    except DialectError as error:
        assert 1 <= error.line <= text.count("\n") + 2
    else:
        assert translated.count("\n") == text.count("\n") + 1
