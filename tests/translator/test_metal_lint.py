from __future__ import annotations

import pytest

from translator.metal_lint import ATTRIBUTES, lint

GOOD = """
// one row per simdgroup; "double" and goto in a comment are fine
threadgroup float tile[32][33];
uint row = threadgroup_position_in_grid.y, lane = thread_index_in_simdgroup;
float maximum = -INFINITY; /* #include <nothing> } } */
#pragma unroll(4)
for (uint i = lane; i < N; i += 32) { maximum = max(maximum, float(x[row * N + i])); }
maximum = simd_max(maximum);
#ifdef LAST
if (lane == 0) { y[row] = T(metal::exp2(maximum)); }
#else
y[row] = T(maximum);
#endif
"""
GOOD_HEADER = """
#define STEP(i) { total += (i); }
#if __METAL_VERSION__ >= 310
template <typename T> inline float twice(T value) { return 2 * float(value); }
#endif
"""


def errors(source: str, header: str = "") -> list[tuple[int, str]]:
    return [(f.line, f.message) for f in lint(source, header) if f.severity == "error"]


def test_a_good_kernel_has_no_findings():
    assert lint(GOOD, GOOD_HEADER) == []


def test_an_include_of_metals_library_is_one_too_many_but_built():
    found = lint("y[0] = 1;", "\n#include <metal_stdlib>")
    assert [(f.line, f.severity, f.rule) for f in found] == [(2, "warning", "include")]


@pytest.mark.parametrize(
    "header",
    [
        "#define of_two(__op__, name) inline int name(int a, int b) { return a __op__ b; }",
        "template <typename T> struct __Add { T operator()(T a, T b) const { return a + b; } };",
        "template <typename T> struct bare : metal::bool_constant<__is_empty(T)> {};",
        "#if defined(__METAL__) && __METAL_VERSION__ >= 310 && defined(__cpp_variable_templates)\n#endif",
        "inline int f(int a, int b) {\n#pragma unused(a)\n  return b; }",
        "template <typename T> inline int size(T t) { return decltype(t)::kSize; }",
        "constant uint most = __UINT32_MAX__;",
        "#pragma once\nconstant uint most = 1;",
    ],
)
def test_words_of_mlxs_own_headers_reach_nowhere(header):
    assert lint("y[0] = 1;", header) == []


@pytest.mark.parametrize(
    "header",
    [
        "inline int f() { return (int)::open(0); }",
        "inline int f(int x) { return decltype(x)(1), ::open(0); }",
        "int a __attribute__((weak));",
        "int __asm__;",
        "inline int f() { return __LINE__ + __COUNTER__; }",
        "inline int f() { return __is_constructible(int); }",
    ],
)
def test_other_words_of_the_compilers_still_do(header):
    assert {f.rule for f in lint("y[0] = 1;", header)} >= {"reaches-outside"}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("#include <stdio.h>", "#include"),
        ("  #  import <x>", "#import"),
        ('#line 7 "other"', "#line"),
        ("#pragma comment(lib, x)", "#pragma"),
        ('asm("nop");', "assembly"),
        ('__asm__ volatile("nop");', "__asm__"),
        ("int a __attribute__((constructor));", "__attribute__"),
        ("y[0] = __builtin_popcount(3);", "__builtin_popcount"),
        ("extern float other;", "extern"),
        ("double total = 0;", "double"),
        ("goto end;", "goto"),
        ("float *p = new float[4];", "heap"),
        ("delete p;", "heap"),
        ("y[0] = std::exp(x[0]);", "std"),
        ("using namespace std;", "std"),
        ('system("ls");', "system"),
        ("::abort();", "::"),
        ("y[0] = ::open(0);", "::"),
        ("[[gnu::constructor]] int a;", "attribute"),
        ("kernel void f() {}", "body"),
        ("uint thread_index_in_simdgroup = 0;", "already declares"),
        ("const uint3 thread_position_in_grid = uint3(0);", "already declares"),
        ("if (x[0] > 0) <% y[0] = 1; %>", "digraph"),
        ("y[0] = dou\\\nble(1);", "backslash"),
        ("throw 1;", "throw"),
        ("float naïve = 0;", "U+00EF"),
        ("float a\x00b = 0;", "U+0000"),
    ],
)
def test_what_metal_or_mlx_refuses_is_found_on_its_line(line: str, word: str):
    found = errors("y[0] = 1;\n" + line)
    assert any(at == 2 and word in message for at, message in found), found


@pytest.mark.parametrize(
    "text",
    [
        "// goto new delete double std::",
        "/* asm __asm\n extern */",
        "// a comment goes on \\\n goto after a backslash",
        "float doubled = newest + deleted; external(stdlib);",
        "int asmall = x.double_of;",
        "y[a[b[0]]] = 1;",
        "y[0] = metal::exp(x[0]) + ::metal::exp(x[1]);",
        "uint3 position = thread_position_in_grid;",
        "uint i = uint(thread_position_in_grid.x);",
        "[[maybe_unused]] float spare = 0;",
        "float exit = 1; float kill = exit;",
        "int million = 1'000'000; if (million > 0) { y[0] = 0x1F'FFp3; }",
    ],
)
def test_harmless_text_is_left_alone(text: str):
    assert lint("y[0] = 1;\n" + text) == []


def test_only_comments_may_have_signs_beyond_ascii():
    assert errors("y[0] = 1; // → 2 × faster\n/* ≤ */") == []
    assert [line for line, _ in errors("y[0] = 1; // →\ny[0] = 2 × x[0];")] == [2]
    assert [line for line, _ in errors("y[0] = 1; // \u202e\n// \x1b[2J")] == [1, 2]


def test_a_brace_that_closes_the_generated_function_is_found_where_it_stands():
    assert [line for line, _ in errors("y[0] = 1;\n}\nvoid other() {\n")] == [2, 3]


def test_braces_in_comments_and_strings_do_not_count():
    assert lint("y[0] = 1; // }\n/* { */ if (x[0] > '}') { y[0] = 2; }") == []


def test_an_unclosed_brace_is_reported_where_it_was_opened():
    found = errors("y[0] = 1;\nif (x[0] > 0) {\ny[0] = 2;\n")
    assert found == [(2, "this '{' is never closed: add its '}'")]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("#define OPEN {\n#define CLOSE }\nCLOSE void f() OPEN", 1),
        ("#if 0\n{\n#endif\n} void f() {", 3),
        ("#if 1\n} void f() {\n#endif", 2),
        ("y[0] = 1;\n#endif", 2),
        ("#ifdef A\ny[0] = 1;", 2),
        ("#ifdef A\n} void f() {\n#else\ny[0] = 1;\n#endif", 2),
        ("#ifdef A\n{\n#endif\ny[0] = 1;\n#ifndef A\n}\n#endif", 2),
        ("#ifdef A\n{\n#endif\n#define A\n#ifdef A\n}\n#endif", 6),
        ("#ifdef A\n{\n#endif\n#undef A\n#ifndef A\n}\n#endif", 6),
        ("#if A\n{\n#endif\n#if A\n}\n#endif", 3),
        ("#ifdef A\n{\n#elif B\n{\n#endif\n}", 3),
        ("#ifdef A\n{\n#if 0\n}\n#endif\n#endif", 4),
        ("\n".join(f"#ifdef A{n}\n{{\n#else\n{{\n#endif\n}}" for n in range(7)), 3),
    ],
)
def test_preprocessor_lines_cannot_hide_half_a_pair_of_braces(source: str, line: int):
    assert line in [at for at, _ in errors(source)]


@pytest.mark.parametrize(
    "source",
    [
        "#ifdef A\nif (x[0] > 0) {\n#else\nif (x[0] < 0) {\n#endif\ny[0] = 1;\n}",
        "#ifndef A\nfor (int i = 0; i < 2; ++i) {\n#else\nint i = 0;\n#endif\ny[i] = 1;\n#ifndef A\n}\n#endif",
        "#define A\n#ifdef A\n{\n#ifdef B\n{\n#endif\n#endif\n#ifdef A\n#ifdef B\n}\n#endif\n}\n#endif\ny[0] = 1;",
    ],
)
def test_a_block_may_begin_in_one_of_two_ways_when_it_ends_in_both(source: str):
    assert errors(source) == []


def test_an_open_comment_would_swallow_the_end_of_the_kernel():
    assert errors("y[0] = 1;\n/* never closed") == [(2, "this comment is never closed: end it with '*/'")]
    assert [line for line, _ in errors("y[0] = 1;\n/*/")] == [2]


@pytest.mark.parametrize("source", ["", "  \n\t\n", "// nothing but a comment"])
def test_an_empty_source_is_refused(source: str):
    assert [message for _, message in errors(source)] == ["the source is empty: write the body of the kernel"]


def test_header_findings_come_first_and_say_so():
    found = lint("double a;", "struct B;\ndouble c;")
    assert [(f.in_header, f.line) for f in found] == [(True, 2), (False, 1)]


def test_a_barrier_that_orders_no_memory_is_only_a_warning():
    (found,) = lint("y[0] = 1;\nthreadgroup_barrier(mem_flags::mem_none);")
    assert (found.severity, found.line) == ("warning", 2)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_redeclaring_any_mlx_attribute_is_refused(name: str):
    assert [line for line, _ in errors(f"uint {name} = 0;")] == [1]
