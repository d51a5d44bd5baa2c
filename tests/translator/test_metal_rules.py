"""The lint's rules that need more than a word: address spaces, threadgroup memory, launches, headers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.metal_lint import Launch, Surroundings, lint

STORE = "y[0] = 1;\n"
AROUND = Surroundings(inputs=("x",), outputs=("y",))


def rules(source: str = STORE, header: str = "", around: Surroundings = AROUND) -> list[tuple[bool, int, str]]:
    return [(f.in_header, f.line, f.rule) for f in lint(source, header, around)]


def in_source(*statements: str) -> list[tuple[int, str]]:
    return [(line, rule) for in_header, line, rule in rules("\n".join(statements)) if not in_header]


def in_header(text: str, source: str = STORE) -> list[tuple[int, str]]:
    return [(line, rule) for header, line, rule in rules(source, text) if header]


# ---- missing address spaces


@pytest.mark.parametrize(
    "statement",
    [
        "float* p = y;",
        "const float *p = x + 4;",
        "uint4* words = (device uint4*)y;",
        "T* p = y;",
        "float& r = y[0];",
        "for (float* p = y; ; ) { break; }",
        "metal::float4* p = 0;",
        "unsigned int* p = 0;",
        "unsigned* p = 0;",
    ],
)
def test_a_local_pointer_names_its_address_space(statement):
    assert in_source("y[0] = 1;", statement) == [(2, "missing-address-space")]


@pytest.mark.parametrize(
    "statement",
    [
        "device float* p = y;",
        "const device float* p = y;",
        "float device* p = y;",
        "auto p = y + 1;",
        "auto* p = y + 1;",
        "thread float& r = total;",
        "y[0] = a * b;",
        "y[0] = a & b;",
        "float product = a * b, other = c & d;",
        "if (a * b > c) { y[0] = 2; }",
        "return;",
        "y[i] = (a < b) ? a * b : c;",
        "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "thread float* accumulators[4];",
        "vec<float, 4> four = vec<float, 4>(1.0f);",
    ],
)
def test_other_statements_are_no_pointers(statement):
    assert in_source("y[0] = 1;", statement) == []


@pytest.mark.parametrize(
    "function",
    [
        "inline float f(float* p) { return p[0]; }",
        "inline float f(int n, const float *p) { return p[n]; }",
        "inline void f(float& x) { x = 1; }",
        "template <typename T>\ninline float f(float* p, T x) { return p[0] + x; }",
        "struct S { float get(float* p) const { return p[0]; } };",
        "inline float f(device float* q) { float* p = 0; return p[0]; }",
        "inline float f(float tile[32]) { return tile[0]; }",
        "struct S { device float* fine; const float* p; };",
        "struct S { struct { half2 &r; } inner; };",
    ],
)
def test_a_parameter_names_its_address_space(function):
    assert [rule for _, rule in in_header(function)] == ["missing-address-space"]


@pytest.mark.parametrize(
    "function",
    [
        "inline float f(const device float* p) { return p[0]; }",
        "inline void f(thread float& x) { x = 1; }",
        "template <typename P>\ninline float f(P p) { return p[0]; }",
        "template <typename T>\ninline float f(T* p) { return p[0]; }",
        "struct S { float a; S(float b, float c) : a(b * c) { } };",
        "struct S { float a; float get() const thread { return a; } };",
        "struct S { device float* p; const constant half* t; float a[4]; T* t2; float f() { return a[0] * t2[1]; } };",
        "inline float f(threadgroup float t[32], thread const float (&a)[4]) { return t[0] + a[0]; }",
        "inline uint f(threadgroup uint* t [[threadgroup(0)]], uint i [[thread_index_in_simdgroup]]) { return i; }",
        "struct Later; struct Later later(int);\ntemplate <typename T> struct Sum { T of; };",
        "constexpr constant float pi = 3.14f;\nconstant float table[2] = {1, 2};",
        "#define AT(p, i) (*((p) + (i)))",
        "namespace own { inline float twice(float x) { return 2 * x; } }",
        "template <int N, bool B = (3 > 2)>\ninline int f() { return N; }",
        "inline float f(float x) { return metal::f(x); }",
        "enum class Kind { a, b };\nusing real = float;\ntypedef float4 quad;",
    ],
)
def test_a_header_as_it_should_be_has_no_findings(function):
    assert in_header(function) == []


# ---- mixed address spaces


@pytest.mark.parametrize(
    "statement",
    [
        "device float* p = s;",
        "device float* p = s + 4;",
        "device float* p = &s[3];",
        "threadgroup float* p = y + 4;",
        "threadgroup float* p = (device float*)y;",
        "thread float* p = &s[3];",
        "device float* p = y; p = s;",
        "const device float4* p = (const device float4*)s;",
        "const device float4* p = reinterpret_cast<const device float4*>(&s[4]);",
        "y[0] = ((threadgroup float4*)y)[0].x;",
        "y[0] = first(s);",
        "y[0] = first(&s[4]);",
        "add(s[0]);",
        "thread float& r = s[1];",
        "device float& r = s[1];",
    ],
)
def test_a_pointer_gets_no_memory_of_another_address_space(statement):
    header = (
        "inline float first(const device float* p) { return p[0]; }\ninline void add(thread float& x) { x += 1; }\n"
    )
    assert rules(f"threadgroup float s[32];\n{statement}\n", header) == [(False, 2, "mixed-address-space")]


@pytest.mark.parametrize(
    "statement",
    [
        "threadgroup float* p = s + 4;",
        "device float* p = y + 4;",
        "const device float* p = x;",
        "const constant float* p = x;",
        "thread float* p = &total;",
        "device float* p = n > 1 ? y : y + 1;",
        "y[0] = first(y) + first(s);",
        "y[0] = ((device float4*)y)[0].x + ((threadgroup float4*)s)[0].x;",
        "add(total);",
        "y[0] = any(s);",
        "{ threadgroup float* q = s; } { device float* q = y; q = y + 1; }",
        "device float* p = y + int(s[0]);",
        "uint bits = (uint)s[0];",
    ],
)
def test_pointers_that_agree_are_left_alone(statement):
    header = (
        "inline float first(const device float* p) { return p[0]; }\n"
        "inline float first(const threadgroup float* p) { return p[0]; }\n"
        "inline void add(thread float& x) { x += 1; }\n"
        "template <typename P>\ninline float any(P p) { return p[0]; }\n"
    )
    assert rules(f"threadgroup float s[32]; float total = 0; int n = 2;\n{statement}\n", header) == []


def test_a_function_of_the_header_mixes_spaces_too():
    header = "inline float f(threadgroup float* s, device float* y) { y = s; return y[0]; }"
    assert in_header(header) == [(1, "mixed-address-space")]


# ---- threadgroup memory


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("inline void f() {\n  threadgroup float s[32];\n}", [(2, "threadgroup-in-function")]),
        ("threadgroup float s[32];", [(1, "threadgroup-in-function")]),
        ("inline void f(threadgroup float* s) { threadgroup float* p = s; p[0] = 1; }", []),
        ("float table[2] = {1, 2};", [(1, "program-scope")]),
        ("constexpr int kTile = 32;", [(1, "program-scope")]),
        ("\nuint total;", [(2, "program-scope")]),
        ("half2 pair, other;", [(1, "program-scope")] * 2),
        (
            "struct S { static uint made; static constexpr constant uint kMost = 4; static float f(); };",
            [(1, "program-scope")],
        ),
        ("inline int f() {\n  static int n = 0;\n  return n++;\n}", [(2, "program-scope")]),
        ("inline int f() { static constexpr int n = 0; static const int m = 1; static constant int k = 2; }", []),
        ("constexpr constant int kTile = 32;\nconstant constexpr int kOther = 32;", []),
    ],
)
def test_what_stands_outside_of_the_kernel_is_constant(header, expected):
    assert in_header(header) == expected


def test_what_is_static_in_the_kernel_is_constant():
    assert in_source("static uint n = 0;", "static constexpr uint m = 0;") == [(1, "program-scope")]


def test_threadgroup_memory_is_not_initialised():
    assert in_source("threadgroup float s[2] = {1, 2};", "threadgroup int n = 3;", "threadgroup int m;") == [
        (1, "threadgroup-initialised"),
        (2, "threadgroup-initialised"),
    ]


def test_an_initial_value_of_threadgroup_memory_is_built_all_the_same():
    assert [f.severity for f in lint("threadgroup float s[2] = {0};")] == ["warning"]


def test_function_constants_have_no_place_in_a_kernel_of_mlx():
    assert in_header("\nconstant bool forward [[function_constant(1)]];") == [(2, "attribute")]


@pytest.mark.parametrize(
    ("source", "template", "fits"),
    [
        ("threadgroup float s[8192];", {}, True),
        ("threadgroup float s[8192], more;", {}, False),
        ("threadgroup half s[64][128]; threadgroup float4 t[1024];", {}, True),
        ("threadgroup half s[64][128]; threadgroup float4 t[1025];", {}, False),
        ("threadgroup T s[N * 64];", {"T": "half", "N": "256"}, True),
        ("threadgroup T s[N * 64];", {"T": "float", "N": "256"}, False),
        ("constexpr uint kPitch = 128 + 1; threadgroup float s[64][kPitch];", {}, False),
        ("#define ROWS 64\nthreadgroup float s[ROWS][128];", {}, True),
        ("if (a) { threadgroup float s[8000]; s[0] = 1; } else { threadgroup float s[8000]; s[0] = 1; }", {}, True),
        ("threadgroup Unknown s[100000];", {}, True),
    ],
)
def test_threadgroup_memory_is_added_up(source, template, fits):
    around = Surroundings(launches=(Launch((64, 1, 1), (32, 1, 1), template),))
    found = [rule for _, _, rule in rules(source + " y[0] = 1;", around=around)]
    assert found == ([] if fits else ["threadgroup-memory"])


# ---- launches


def launched(grid: tuple[int, int, int], group: tuple[int, int, int], source: str) -> list[str]:
    return [rule for _, _, rule in rules(source, around=Surroundings(launches=(Launch(grid, group),)))]


BY_GROUP = "y[threadgroup_position_in_grid.x] = 1;"


def test_a_threadgroup_has_at_most_1024_threads():
    assert launched((2048, 1, 1), (32, 32, 1), BY_GROUP) == []
    assert launched((2048, 32, 1), (64, 32, 1), BY_GROUP) == ["threadgroup-size"]


def test_a_grid_of_blocks_is_suspected_where_it_is_indexed_by_threadgroup():
    assert launched((40, 1, 1), (128, 1, 1), BY_GROUP) == ["grid-in-blocks"]
    assert launched((40 * 128, 1, 1), (128, 1, 1), BY_GROUP) == []
    assert launched((40, 1, 1), (128, 1, 1), "y[thread_position_in_grid.x] = 1;") == []
    one_is_small = Surroundings(launches=(Launch((4096, 1, 1), (128, 1, 1)), Launch((5, 1, 1), (128, 1, 1))))
    assert [rule for _, _, rule in rules(BY_GROUP, around=one_is_small)] == ["grid-in-blocks"]


def test_a_suspicion_is_no_error():
    around = Surroundings(launches=(Launch((40, 1, 1), (128, 1, 1)),))
    assert [f.severity for f in lint(BY_GROUP, "", around)] == ["warning"]


# ---- the language


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("inline int f(int n) { return n ? f(n - 1) : 0; }", ["recursion"]),
        ("int g(int n);\ninline int f(int n) { return g(n); }\ninline int g(int n) { return f(n); }",
         ["recursion", "recursion"]),
        ("template <int N>\ninline int f() { return f<N - 1>(); }", []),
        ("inline int f(int n) { return n; }\ninline int f(float n) { return f(int(n)); }", []),
        ("inline float exp2(float x) { return metal::exp2(x); }", []),
    ],
)  # fmt: skip
def test_a_function_must_not_lead_back_to_itself(header, expected):
    assert [rule for _, rule in in_header(header)] == expected


@pytest.mark.parametrize(
    ("header", "source", "expected"),
    [
        ("inline uint f() { return thread_index_in_simdgroup; }", STORE, ["attribute-in-header"]),
        ("inline uint f() { return thread_index_in_simdgroup; }", "y[thread_index_in_simdgroup] = 1;",
         ["attribute-in-header"]),
        ("inline uint f(uint thread_index_in_simdgroup) { return thread_index_in_simdgroup; }", STORE, []),
        ("#define LANE thread_index_in_simdgroup", STORE, ["attribute-in-header"]),
        ("#define LANE thread_index_in_simdgroup", "y[LANE] = 1; // thread_index_in_simdgroup", []),
    ],
)  # fmt: skip
def test_an_attribute_belongs_to_the_kernel(header, source, expected):
    assert [rule for _, rule in in_header(header, source)] == expected


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Index grid_size = 3;", True),
        ("device float* threads_per_grid = y;", True),
        ("for (uint grid_size = 0; grid_size < 3; ) { }", True),
        ("auto f = [](uint grid_size) { return grid_size; };", True),
        ("y[0] = grid_size.x;", False),
        ("y[0] = y[0] * thread_index_in_simdgroup;", False),
        ("if (y[0] < thread_index_in_simdgroup) { y[0] = 2; }", False),
        ("return;\ngrid_size;", False),
        ("uint own = grid_size.x, other = threads_per_grid.x;", False),
    ],
)
def test_an_attribute_is_not_declared_again(source, found):
    assert ("attribute-declared" in [rule for _, rule in in_source(source)]) is found


def test_no_array_has_the_name_of_an_attribute():
    assert rules(around=Surroundings(inputs=("grid_size",))) == [(False, 1, "attribute-declared")]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("int n = x_shape[0]; float a[n];", ["variable-length-array"]),
        ("float a[x_shape[0]];", ["variable-length-array"]),
        ("float a[thread_index_in_simdgroup + 1];", ["variable-length-array"]),
        ("constexpr int n = 4; float a[n]; float b[N * 2]; float c[sizeof(float)];", []),
        ("int n = 3; float a[4]; a[n] = 1;", []),
        ("float (*op)(float) = 0;", ["function-pointer"]),
        ("y[0] = (*p)(1);", []),
        ("long double wide = 1;", ["double"]),
        ("char* p = alloca(3);", ["heap", "missing-address-space"]),
    ],
)
def test_other_things_that_metal_has_not(statement, expected):
    assert sorted(rule for _, rule in in_source(statement)) == expected


WORDS = [
    "device", "threadgroup", "constant", "thread", "float", "T", "*", "&", "(", ")", "{", "}", "[", "]",
    ";", ",", "<", ">", "=", "a", "b", "p", "template", "typename", "struct", "const", "::", "->",
    "for", "if", "return", "f", "auto", "?", "1", "+", "-", "/", "#define", "grid_size", "[[", "]]",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join), st.lists(st.sampled_from(WORDS), max_size=80))
def test_any_text_is_linted_without_a_crash(source, header):
    for finding in lint(source, "\n".join(header), Surroundings(("x",), ("y",), (Launch((1, 1, 1), (32, 1, 1)),))):
        assert finding.line >= 1


def test_a_text_that_is_refused_for_its_form_is_not_looked_into_further():
    assert {rule for _, _, rule in rules("a[;" * 50000)} == {"reaches-outside"}
