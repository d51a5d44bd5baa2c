"""Metal's library function by function, with values worked out by hand, and what it has of no such form."""

from __future__ import annotations

import pytest

INTEGERS = {
    "popcount(uint2(0xF0F0u, 1u)).x": 8,
    "popcount(short(-1))": 16,
    "clz(ushort(1))": 15,
    "clz(uint2(2u)).y": 30,
    "ctz(uint2(8u)).x": 3,
    "reverse_bits(uchar2(1)).x": 128,
    "rotate(uint2(0x80000001u), uint2(1u)).y": 3,
    "mulhi(uint2(0x80000000u), uint2(4u)).x": 2,
    "mulhi(short(-256), short(256))": -1,
    "madhi(0x80000000u, 4u, 5u)": 7,
    "madsat(100000, 100000, 1) == INT_MAX": 1,
    "madsat(uchar(20), uchar(12), uchar(16))": 255,
    "absdiff(int2(1, 5), int2(4, 1)).y": 4,
    "hadd(uint2(3u), uint2(6u)).x + rhadd(uint2(3u), uint2(6u)).x": 4 + 5,
    "addsat(uchar2(200), uchar2(100)).x": 255,
    "mad24(int2(2), int2(3), int2(4)).x": 10,
    "extract_bits(uint2(0xABu), 4, 4).x": 10,
    "extract_bits(int(0xF0), 4, 4)": -1,
    "insert_bits(uint2(0u), uint2(0xFu), 4, 4).y": 0xF0,
}
FLOATS = {
    "smoothstep(0.0f, 2.0f, float2(1, 3)).x": 0.5,
    "mix(float2(0, 4), 8.0f, 0.25f).y": 5,
    "clamp(float3(5, -5, 0), -1.0f, float3(1)).y": -1,
    "step(0.5f, float2(1, 0)).y": 0,
    "fma(half2(2), half(3), half2(1)).y": 7,
    "fmedian3(1.0f, 3.0f, 2.0f) + fmax3(1.0f, 2.0f, 3.0f) + metal::fast::fmin3(1.0f, 2.0f, 3.0f)": 6,
    "reflect(float2(1, -1), float2(0, 1)).y": 1,
    "refract(float2(0, -1), float2(0, 1), 1.5f).y": -1,
    "refract(float2(1, 0), float2(0, 1), 1.5f).x": 0,
    "faceforward(float2(3, 0), float2(1, 0), float2(1, 0)).x": -3,
    "distance_squared(float2(1, 1), float2(4, 5))": 25,
    "nextafter(1.0f, 2.0f) - 1.0f": 2**-23,
    "nextafter(-1.0f, 0.0f) + 1.0f": 2**-24,
    "nextafter(float2(0), float2(-1)).x * 0x1p100f": -(2.0**-49),
    "ldexp(float2(3, 5), int2(1, -1)).y": 2.5,
    "ilogb(float2(8, 1)).x": 3,
    "tanpi(0.25f)": 1,
    "isordered(1.0f, 2.0f) + isunordered(float2(NAN, 1), float2(1)).x": 2,
    "determinant(float4x4(2.0f))": 16,
    "determinant(float4x4(0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4))": -24,
    "(-float2x2(1, 2, 3, 4))[1].y": -4,
    "float2x2(half2x2(half2(1), half2(2)))[1].x": 2,
    "(-packed_float3(1, 2, 3)).z": -3,
    "numeric_limits<half>::digits + numeric_limits<int>::digits": 11 + 31,
    "is_convertible_v<int, float> + is_convertible_v<float2, float> + is_signed_v<half> + is_vector_v<float2>": 3,
    "is_same_v<make_unsigned_t<int>, uint> + is_same_v<decay_t<const int&>, int> + is_pointer_v<device float*>": 3,
}


@pytest.mark.parametrize("cases", [INTEGERS, FLOATS], ids=["integers", "floats"])
def test_a_function_has_the_value_that_the_specification_gives_it(bench, cases):
    source = "\n".join(f"out[{i}] = {expression};" for i, expression in enumerate(cases))
    out = bench.run(source, outputs={"out": ((len(cases),), "float32")}, grid=1, threadgroup=1)["out"]
    found = dict(zip(cases, out.tolist(), strict=True))
    assert found == {expression: pytest.approx(value, rel=1e-6, abs=1e-9) for expression, value in cases.items()}


def test_a_second_result_comes_back_by_reference_component_by_component(bench):
    source = """
    float2 cosine; float2 sine = sincos(float2(0, M_PI_2_F), cosine);
    half2 whole; half2 part = modf(half2(2.5h, -1.25h), whole);
    int2 exponent; float2 fraction = frexp(float2(8, 3), exponent);
    out[0] = sine.y; out[1] = cosine.x; out[2] = part.y; out[3] = whole.y; out[4] = fraction.y; out[5] = exponent.y;
    """
    out = bench.run(source, outputs={"out": ((6,), "float32")}, grid=1, threadgroup=1)["out"]
    assert out.tolist() == [1, 1, -0.25, -1, 0.75, 2]


def test_components_take_every_kind_of_assignment(bench):
    source = """
    int4 v = int4(1, 2, 3, 4);
    v.xy = -v.zw; v.xy <<= 1; v.zw %= 2; v.xw |= 4; v.yz &= 3; v.zw ^= int2(1, 1); v.xy >>= 1; v.wz++;
    int2 before = v.xy--;
    for (int i = 0; i < 4; ++i) out[i] = v[i];
    out[4] = before.x; float4 f = 1; f.xy *= 2; f.zw /= float2(2, 4); out[5] = f.y; out[6] = f.w;
    """
    # x: -3, -6, -6 | 4 = -2, -1, then -2; y: -4, -8, & 3 = 0, 0, then -1; z: 3, 1, 1, 0, then 1; w: 4, 0, 4, 5, then 6
    out = bench.run(source, outputs={"out": ((7,), "float32")}, grid=1, threadgroup=1)["out"]
    assert out.tolist() == [-2, -1, 1, 6, -1, 2, 0.25]


def test_matrices_are_changed_in_place_and_multiplied_by_an_operator(bench):
    source = """
    float2x2 m = float2x2(1, 2, 3, 4), n = m;
    m *= 2.0f; m += n; m -= float2x2(1.0f);
    simdgroup_float8x8 a(2.0f), b = make_filled_simdgroup_matrix<float, 8, 8>(3.0f), c = a * b;
    simdgroup_store(c, out, 8);
    if (thread_index_in_simdgroup == 0) out[0] = m[1].y;
    """
    out = bench.run(source, outputs={"out": ((64,), "float32")}, grid=32, threadgroup=32)["out"]
    assert out.tolist() == [11] + [6] * 63


def test_a_table_is_constant_however_its_words_are_ordered(bench):
    header = "constant static const int a[] = {4, 8};\nstatic constexpr constant float b[2] = {1, 2.5};\n"
    out = bench.run("out[0] = a[1] + b[1];", header=header, outputs={"out": ((1,), "float32")}, grid=1, threadgroup=1)
    assert out["out"].tolist() == [10.5]


def test_a_64_bit_atomic_has_a_minimum_and_a_maximum_alone(bench):
    launch = {"outputs": {"out": ((2,), "uint64")}, "grid": 40, "threadgroup": 40, "init_value": 7}
    source = """
    device atomic_ulong* a = (device atomic_ulong*)out;
    ulong i = thread_position_in_grid.x;
    atomic_max_explicit(a, i << 33, memory_order_relaxed);
    atomic_min_explicit(a + 1, i, memory_order_relaxed);
    """
    assert bench.run(source, **launch)["out"].tolist() == [39 << 33, 0]
    assert bench.fault(source.replace("atomic_max_", "atomic_fetch_max_"), **launch).stage == "compile"


REFUSED = {
    "float4 v = 0; v.xx = float2(1, 2);": "may be named only once",
    "float4 v = 0; (v + v).x = 1; v + v += v;": "",
    "float4 v = 0; (v.xy) = float2(1, 2);": "",
    "device atomic_float* a = (device atomic_float*)out; atomic_fetch_max_explicit(a, 1.0f, memory_order_relaxed);": "",
    "threadgroup atomic_float a;": "'threadgroup atomic_float' is refused: it has no operations before MSL 4.1",
    "auto p = (threadgroup metal::atomic<float>*)nullptr;": "'threadgroup atomic_float' is refused",
    "device atomic_int* a = (device atomic_int*)out; atomic_store_explicit(a, 1, memory_order_release);": (
        "'memory_order_release' is refused: orders other than relaxed need MSL 4.1"
    ),
    "device atomic_int* a = (device atomic_int*)out; atomic_store_explicit(a, (1), memory_order_seq_cst);": (
        "'memory_order_seq_cst' is refused: Metal's atomic operations take memory_order_relaxed"
    ),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_a_mac_would_not_compile_is_refused_with_its_line(bench, statement):
    fault = bench.fault(f"out[0] = 0;\n{statement}", outputs={"out": ((4,), "float32")}, grid=1, threadgroup=1)
    assert (fault.stage, fault.line) == ("compile", 2)
    assert REFUSED[statement] in fault.message


def test_a_fence_is_the_one_that_takes_another_order(bench):
    source = """
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    out[thread_position_in_grid.x] = 1;
    """
    out = bench.run(source, outputs={"out": ((4,), "float32")}, grid=4, threadgroup=4)["out"]
    assert out.tolist() == [1] * 4


def test_a_pointer_may_be_declared_coherent_and_restrict(bench):
    source = """
    coherent(
        device) device float* p = out; coherent device float* __restrict q = out + 1; float coherent = 3;
    *p = 1; *q = coherent;
    """
    out = bench.run(source, outputs={"out": ((2,), "float32")}, grid=1, threadgroup=1)["out"]
    assert out.tolist() == [1, 3]


def test_functions_that_differ_in_more_than_address_space_are_refused_with_a_way_out(bench):
    header = "float first(device float* p) { return p[0]; }\nfloat first(threadgroup float* p) { return p[1]; }"
    fault = bench.fault("out[0] = 0;", header=header, outputs={"out": ((1,), "float32")}, grid=1, threadgroup=1)
    assert (fault.stage, fault.line, fault.in_header) == ("compile", 2, True)
    assert "differ in address space alone are not told apart: make them one template" in fault.message
