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
    "complex64_t z;": "'complex64_t' is refused: the simulator has no complex numbers",
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


def test_an_atomic_of_a_type_that_metal_lacks_is_refused(bench):
    fault = bench.fault("\ndevice atomic<half>* p = (device atomic<half>*)out;\n(void)p->ksr;", **LAUNCH)
    assert fault.stage == "compile"
    fault = bench.fault("\natomic<half> a;\nout[0] = sizeof(a);", **LAUNCH)
    assert (fault.line, fault.stage) == (2, "compile")
    assert "atomics hold int, uint, float, bool or ulong" in fault.message
