"""What MLX's own kernels are written in, and what MLX writes before a kernel: each in a few lines of its kind."""

from __future__ import annotations

import numpy as np

ONE = {"grid": 1, "threadgroup": 1}


def values(bench, source: str, count: int, **launch: object) -> list[float]:
    """Return the first ``count`` floats that one thread writes to ``out``."""
    return bench.run(source, outputs={"out": ((count,), "float32")}, **ONE, **launch)["out"].tolist()


def test_complex_numbers_calculate_as_mlx_has_them(bench):
    source = """
    complex64_t a = {1, 2}, b(3, -4), c = a * b; out[0] = c.real; out[1] = c.imag;          // 3 + 8, 6 - 4
    c = a / b; out[2] = c.real; out[3] = c.imag;                                            // (1 + 2i) (3 + 4i) / 25
    c = 1 + a - b; out[4] = c.real; out[5] = (-c).imag; c += a; out[6] = c.imag;
    out[7] = a < b; out[8] = a == complex64_t(float2(1, 2)); out[9] = float(b); float2 pair = b; out[10] = pair.y;
    complex64_t whole = 5; out[11] = whole.real + whole.imag;
    c = complex64_t(-7, 7) % complex64_t(3, 3); out[12] = c.real;
    c = complex64_t(1e30f, 0) / complex64_t(0, 1e30f); out[13] = c.imag;                    // no square overflows
    c = simd_shuffle(a, 0); out[14] = c.imag; out[15] = sizeof(complex32_t); out[16] = is_complex_v<complex64_t>;
    c = log1p(complex64_t(0, 1)); out[17] = c.real; out[18] = c.imag;                       // ln|1 + i| = ln(2) / 2
    device complex64_t* parts = (device complex64_t*)(out + 20); parts[0] = a;
    out[19] = cast_to<bool>(complex64_t(0, 3));
    """
    expected = [11, 2, -0.2, 0.4, -1, -6, 8, 1, 1, 3, -4, 5, 2, -1, 2, 4, 1, 0.34657359, 0.78539816, 1, 1, 2]
    np.testing.assert_allclose(values(bench, source, 22), expected, rtol=1e-6)


def test_a_vector_in_braces_is_filled_up_with_zeros(bench):
    source = """
    uint i = thread_position_in_grid.x;
    uint4 three = {i + 1, i + 2, i + 3}; float4 one = {1.5f}, all(1.5f), also = 1.5f; half2 none = {};
    out[0] = three.z; out[1] = three.w; out[2] = one.x; out[3] = one.y; out[4] = all.y; out[5] = also.w;
    out[6] = none.x; float4 joined = {all.xy, 3, 4}; out[7] = joined.z;
    float2 rows[2] = {{1, 2}, {3, 4}}; out[8] = rows[1].x;
    """
    assert values(bench, source, 9) == [3, 0, 1.5, 0, 1.5, 1.5, 0, 3, 3]


def test_the_columns_of_a_matrix_may_stand_in_braces(bench):
    source = """
    float2x2 m = {{1, 2}, {3, 4}}, n = {m[1], float2(5)}; half3x2 h = {half2(1), {2, 3}, half2(4)};
    out[0] = m[1][0]; out[1] = n[0].y; out[2] = h[1].y; out[3] = float2x2(1, 2, 3, 4)[1].x;
    """
    assert values(bench, source, 4) == [3, 4, 3, 3]


def test_what_is_defined_once_for_each_address_space_is_one(bench):
    header = """
    struct Sum {
      float value;
      Sum(float v) thread : value(v) {}
      Sum(float v) threadgroup : value(v) {}
      Sum(float v) constant : value(v) {}
      float twice() const thread { return 2 * value; }
      float twice() const device { return 2 * value; }
      float twice() const constant { return 2 * value; }
    };
    inline thread Sum& operator+=(thread Sum& a, Sum b) { a.value += b.value; return a; }
    inline device Sum& operator+=(device Sum& a, Sum b) { a.value += b.value; return a; }
    template <typename T> struct element {};
    template <typename T> struct element<device T*> { using type = T; };
    template <typename T> struct element<threadgroup T*> { using type = T; };
    #if 0
    float which(thread float& x) { return x; }
    #else
    float which(device float& x) { return x; }
    #endif
    """
    source = """
    Sum s(3); s += Sum(4); out[0] = s.twice();
    typename element<device float*>::type kept = which(out[0]); out[1] = kept;
    """
    assert values(bench, source, 2, header=header) == [14, 14]


def test_a_member_operator_may_be_specialized_in_its_class(bench):
    header = """
    struct Smaller {
      template <typename T> T operator()(T a, T b) { return a < b ? a : b; }
      template <> float2 operator()(float2 a, float2 b) { return float2(min(a.x, b.x), 7); }
    };
    template <typename T> struct Is { int of = 1; };
    template <> struct Is<half> { int of = 2; int operator()() { return of; } };
    """
    source = "out[0] = Smaller()(3, 2); out[1] = Smaller()(float2(3, 0), float2(2, 0)).y; out[2] = Is<half>()();"
    assert values(bench, source, 3, header=header) == [2, 7, 2]


def test_templates_for_other_types_take_the_same_parameters_in_checked_mode(bench):
    header = """
    template <typename T, enable_if_t<is_integral_v<T>, bool> = true>
    void put(device T* to, T value) { to[0] = value; }
    template <typename T, enable_if_t<!is_integral_v<T>, bool> = true>
    void put(device T* to, T value) { to[0] = 2 * value; }
    """
    source = "put(out, 1.0f); put(out + 1, 2.0f); put((device int*)out + 2, 3);"
    bound = bench.bind(source, header=header, outputs={"out": ((3,), "float32")}, **ONE)
    checked = bench.device.check(bound, {}, time_limit=20.0)
    assert [report.message for report in checked.reports] == []
    assert checked.outputs["out"].view(np.int32).tolist() == [0x40000000, 0x40800000, 3]


def test_words_that_mlx_puts_into_its_headers_are_taken(bench):
    header = """
    #include <metal_stdlib>
    #pragma METAL internals : enable
    #define of_two(__op__, name) METAL_FUNC int name(int a, int b) { return a __op__ b; }
    of_two(+, plus)
    template <typename T> struct __Add { static constexpr constant int kOne = 1; };
    template <typename T> struct is_bare : metal::bool_constant<__is_empty(T)> {};
    METAL_FUNC int lane(threadgroup int* t [[threadgroup(0)]], uint i [[thread_index_in_simdgroup]]) {
    #pragma unused(t)
      constexpr uniform<int> five = make_uniform(5);
      return five + i;
    }
    #if defined __METAL__
    constant int kMetal = 1;
    #endif
    """
    source = """
    threadgroup int t[1]; __Add<float> add;
    out[0] = plus(1, 2); out[1] = decltype(add)::kOne; out[2] = is_bare<__Add<int>>::value;
    out[3] = lane(t, 2) + kMetal;
    """
    assert values(bench, source, 4, header=header) == [3, 1, 1, 8]


def test_offsets_that_go_forward_are_those_of_the_elements(bench):
    # Two rows of three columns of an array that lies column by column.
    source = """
    LoopedElemToLoc<2, int64_t, true> loop(x_ndim);
    for (int i = 0; i < 6; ++i) { out[i] = loop.location(); loop.next(x_shape, x_strides); }
    LoopedElemToLoc<1, size_t, false> line(1); line.next(3, x_shape + 1, x_strides + 1); out[6] = line.location();
    """
    given = {"x": np.zeros((2, 3), np.float32)}
    assert values(bench, source, 7, inputs=given) == [0, 1, 2, 3, 4, 5, 3]


def test_an_initial_value_of_threadgroup_memory_is_not_stored(bench):
    source = """
    threadgroup float sums[4] = {0}, more = 1;
    out[0] = isnan(sums[0]); out[1] = isnan(more);
    sums[0] = 2; out[2] = sums[0];
    """
    assert values(bench, source, 3) == [1, 1, 2]
    bound = bench.bind(source, outputs={"out": ((3,), "float32")}, **ONE)
    checked = bench.device.check(bound, {}, time_limit=20.0)
    assert {(report.stage, report.line) for report in checked.reports} == {("uninitialised", 3)}


def test_packed_vectors_go_where_vectors_go(bench):
    source = """
    packed_float3 p = packed_float3(1, 2, 3), q = p * 2;
    out[0] = dot(p, q); out[1] = length(p - float3(1, 2, 0)); out[2] = max(p, 2.5f).x; out[3] = max(2.5f, p).z;
    out[4] = clamp(p, 0.0f, 1.5f).y; out[5] = mix(p, q, 0.5f).z; out[6] = exp2(p).z; out[7] = cross(p, q).x;
    packed_int2 k = packed_int2(5, 6); k <<= 1; k %= 7; k |= 8; out[8] = k.x; out[9] = k.y;
    """
    assert values(bench, source, 10) == [28, 3, 2.5, 3, 1.5, 4.5, 8, 0, 11, 13]


def test_colours_are_packed_from_the_lowest_bits(bench):
    source = """
    out[0] = pack_float_to_unorm4x8(float4(1, 0.5f, 0, 2));       // 255 + 128 << 8 (127.5 to even) + 255 << 24
    out[1] = unpack_unorm4x8_to_float(0x33FF00u).y; out[2] = unpack_unorm4x8_to_half(0x330000u).z;
    out[3] = pack_half_to_snorm2x16(half2(-1, 1)); out[4] = unpack_snorm4x8_to_float(0x80u).x;
    out[5] = pack_float_to_unorm565(float3(1, 0, 0)); out[6] = unpack_unorm10a2_to_float(0x40000000u).w;
    out[7] = unpack_unorm4x8_srgb_to_float(0xBCu).x;              // 188 / 255 = 0.737, to linear
    """
    expected = [0xFF0080FF, 1, 0.2, 0x7FFF8001, -1, 0xF800, 1 / 3, 0.50288653]
    np.testing.assert_allclose(values(bench, source, 8), expected, rtol=3e-4)


def test_powr_has_no_power_of_a_negative(bench):
    assert values(bench, "out[0] = isnan(powr(-2.0f, 3.0f)); out[1] = pow(-2.0f, 3.0f);", 2) == [1, -8]


def test_select_and_constants_take_metals_names(bench):
    source = """
    float4 s = select(float4(1), float4(2), true); out[0] = s.w; s = select(float4(1), 3.0f, bool4(true)); out[1] = s.x;
    s = select(1.0f, float4(2), bool4(true, false, true, false)); out[2] = s.y;
    out[3] = M_SQRT2_H * M_SQRT2_H; out[4] = SCHAR_MIN; out[5] = HALF_MANT_DIG + FLT_MANT_DIG;
    """
    root = np.float16(2**0.5)
    assert values(bench, source, 6) == [2, 3, 1, root * root, -128, 35]
