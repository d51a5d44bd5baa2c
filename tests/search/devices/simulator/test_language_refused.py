"""What the simulator has no meaning for is refused by name, with its line; the same words as names are not."""

from __future__ import annotations

import pytest

OUT = {"out": ((4,), "float32")}
LAUNCH = {"outputs": OUT, "grid": 4, "threadgroup": 4}

REFUSED = {
    "texture2d<float, access::read> image;": "'texture2d' is refused: the simulator has no textures",
    "constexpr sampler s(filter::linear);": "'sampler' is refused: the simulator has no textures",
    'os_log_default.log("%d", 1);': "'os_log_default' is refused: the simulator prints nothing",
    'printf("%d", 1);': "'printf' belongs to the C library",
    "double x = 1;": "'double' is refused: Metal has no double: use float",
    "visible_function_table<float(float)> table;": "'visible_function_table' is refused",
    "metal::raytracing::ray r;": "'raytracing' is refused: the simulator has no ray tracing",
    "mesh<V, P, 4, 4, topology::triangle> m;": "'mesh' is refused: the simulator has no mesh shaders",
    "imageblock<Pixel> block;": "'imageblock' is refused: the simulator has no image blocks",
    "simdgroup_event event;": "'simdgroup_event' is refused: these are not part of Metal",
    "float (*f)(float) = &twice;": "'f' is refused: the simulator has no pointers to functions",
    "std::max(1, 2);": "'std' is refused: Metal has no std",
    "float* p = new float[4];": "'new' is refused: Metal has no such thing",
    "goto end;": "'goto' is refused: Metal has no such thing",
    "throw 1;": "'throw' is refused: Metal has no such thing",
    "using namespace std;": "'std' is refused: Metal has no std",
    "constexpr char16_t c = 1;": "'char16_t' is refused: Metal has no such thing",
    "static int calls = 0;": "'calls' would keep its value: what is static, or outside of functions, must be constant",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_a_word_without_meaning_is_refused_by_name_with_its_line(bench, statement):
    fault = bench.fault(f"uint i = thread_position_in_grid.x;\n// the next line\n{statement}\nout[i] = 0;", **LAUNCH)
    assert (fault.stage, fault.line, fault.in_header) == ("compile", 3, False)
    assert fault.message.startswith(REFUSED[statement])


def test_a_word_in_the_header_is_refused_at_the_headers_line(bench):
    fault = bench.fault("out[0] = 0;", header="\n\ntypedef double real;\n", **LAUNCH)
    assert (fault.line, fault.in_header) == (3, True)


def test_the_same_words_as_ones_own_names_are_accepted(bench):
    source = """
    // a double texture2d, in a comment
    float mesh = 1, sampler = 2, vertex = 3, fragment = 4;
    struct { float doubled, goto_; } s = {5, 6};
    float* p = &mesh;
    if (*p) (void)0;
    out[thread_position_in_grid.x] = mesh + sampler + vertex + fragment + s.doubled + s.goto_ + (*p) * (2);
    """
    assert bench.run(source, **LAUNCH)["out"].tolist() == [23] * 4


def test_a_float_does_not_become_a_bfloat_by_itself(bench):
    # As on a Mac: "neither float nor half can be implicitly converted to bfloat".
    launch = {"outputs": {"out": ((4,), "bfloat16")}, "grid": 4, "threadgroup": 4}
    fault = bench.fault("uint i = thread_position_in_grid.x;\nout[i] = 1.5f;", **launch)
    assert (fault.stage, fault.line) == ("compile", 2)
    assert bench.run("out[thread_position_in_grid.x] = bfloat(1.5f);", **launch)["out"].tolist() == [0x3FC0] * 4


@pytest.mark.parametrize(
    "header",
    [
        "\nfloat total;",
        "\nstatic float4 table[2];",
        "namespace own {\nvolatile uint count = 1; }",
        "int next() {\n  static int n = 0; return n++; }",
        "struct Own {\n  static uint made; };",
        "struct Own { int n; };\nint next() { static Own own; return own.n++; }",
    ],
)
def test_a_variable_that_would_outlast_a_thread_is_refused(bench, header):
    fault = bench.fault("out[0] = 0;", header=header, **LAUNCH)
    assert (fault.stage, fault.line, fault.in_header) == ("compile", 2, True)
    assert "would keep its value" in fault.message


def test_constants_and_functions_may_be_static_and_outside(bench):
    header = """
    static constexpr float a = 1; static constant float b[2] = {2, 3}; constant uint2 c = uint2(4);
    static float first(float x = 5);
    static inline float first(float x) { return x; }
    template <typename T> static constexpr constant T six = T(6);
    struct Own { static constexpr constant int seven = 7; static float eight() { return 8; } float nine = 9; };
    """
    source = """
    static constexpr float ten = 10;
    float own = Own::seven + Own::eight() + Own().nine;
    out[thread_position_in_grid.x] = a + b[1] + c.y + first() + six<float> + own + ten;
    """
    assert bench.run(source, header=header, **LAUNCH)["out"].tolist() == [53] * 4


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("simd_sum(long(i))", "Metal has no simd_sum of this type"),
        ("simd_max(ulong2(i)).x", "Metal has no simd_max of this type"),
        ("simd_max(i > 1)", "Metal has no simd_max of this type"),
        ("simd_broadcast(ulong(i), 0)", "Metal has no simd_broadcast of this type"),
        ("simd_shuffle_xor(long(i), 1)", "Metal has no simd_shuffle_xor of this type"),
        ("quad_sum(i > 1)", "Metal has no quad_sum of this type"),
        ("simdgroup_matrix<int, 8, 8>(1).thread_elements()[0]", "a simdgroup_matrix holds float, half or bfloat"),
    ],
)
def test_what_metal_has_not_for_a_type_is_refused(bench, expression, says):
    fault = bench.fault(f"uint i = thread_position_in_grid.x;\nout[i] = {expression};", **LAUNCH)
    assert (fault.stage, fault.line) == ("compile", 2)
    assert says in fault.message


def test_a_vector_takes_no_more_values_than_it_has_components(bench):
    fault = bench.fault("float k = out[0];\nfloat2 v = {k, k, k};\nout[0] = v.x;", **LAUNCH)
    assert fault.stage == "compile"
    assert fault.line in (2, None)  # clang doesn't say
    assert "more values than it has components" in fault.message


def test_an_atomic_of_a_type_that_metal_lacks_is_refused(bench):
    fault = bench.fault("\ndevice atomic<half>* p = (device atomic<half>*)out;\n(void)p->ksr;", **LAUNCH)
    assert fault.stage == "compile"
    fault = bench.fault("\natomic<half> a;\nout[0] = sizeof(a);", **LAUNCH)
    assert (fault.line, fault.stage) == (2, "compile")
    assert "atomics hold int, uint, float, bool or ulong" in fault.message
