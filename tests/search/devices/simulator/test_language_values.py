"""Types and functions of Metal, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from search.kernels.dtypes import DTYPES

BF16 = DTYPES["bfloat16"]


def values(bench, source: str, count: int, **launch: object) -> list[float]:
    """Return the first ``count`` floats that one thread writes to ``out``."""
    made = bench.run(source, outputs={"out": ((count,), "float32")}, grid=1, threadgroup=1, **launch)
    return made["out"].tolist()


def test_a_bfloat_meets_other_types_as_metal_converts_them(bench):
    source = """
    bfloat b = bfloat(1.0f) / 3;          // rounded to 8 bits of mantissa
    bfloat whole = 7;                      // an integer converts by itself
    float up = b;                          // so does a bfloat to float
    out[0] = up; out[1] = whole; out[2] = true ? b : 2.0f; out[3] = true ? whole : 0;
    out[4] = b * b;                        // a product of two is rounded again
    out[5] = b + 1.0f;                     // with a float it is not
    out[6] = float(bfloat(3.0h)); out[7] = int(whole) / 2; out[8] = bool(b) ? 1 : 0; out[9] = b < 0.5f ? 1 : 0;
    out[10] = max(b, 0.25f); out[11] = float(half(whole)); out[12] = metal::abs(-whole); out[13] = 2.5bf;
    """
    third = float(BF16.decode(BF16.encode(np.float32(1 / 3))))
    assert third == 0.333984375
    squared = 0.111328125  # 0.33398^2 = 0.11155; steps of a bfloat there are 2^-11 = 0.000488
    assert values(bench, source, 14) == [
        third, 7, third, 7, squared, np.float32(1 + third), 3, 3, 1, 1, third, 7, 7, 2.5,
    ]  # fmt: skip


def test_a_number_takes_what_a_bfloat_makes_of_it(bench):
    source = """
    half h = 1; h += 0.5f; h *= 2; h -= 1.0h; bfloat b = 3; h += b; out[0] = h;   // ((1 + 0.5) 2 - 1) + 3
    b += 1.0f; b *= 2; b -= 1.0h; out[1] = b;                                     // (3 + 1) 2 - 1
    out[2] = b++; out[3] = b--; out[4] = ++b;
    float f = 1; f += b; f *= b; out[5] = f;                                      // (1 + 8) 8
    int i = 7; i /= b; i -= bfloat(1.75f); out[6] = i;                            // 7 / 8 is no 1; 0 - 1.75 is cut
    uint u = 1; u += bfloat(255); out[7] = u;                                     // 256 needs no ninth bit
    b = 256; b += 1; out[8] = b;                                                  // 257 does
    """
    assert values(bench, source, 9) == [5, 7, 7, 8, 8, 72, -1, 256, 256]


def test_components_of_components_are_assigned_in_place(bench):
    source = """
    float4 v = float4(1, 2, 3, 4);
    v.zw.y += 5; v.xy.x = 9; v.wzyx
      .xy = float2(7, 8);                  // w and z
    out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = v.w; out[4] = v.zyx.yz.x; out[5] = v.rgb.bg.r;
    """
    assert values(bench, source, 6) == [9, 2, 8, 7, 2, 8]


def test_components_of_packed_vectors_are_assigned_together(bench):
    source = """
    packed_float3 p = packed_float3(1, 2, 3);
    p.xy = float2(5, 6); p.zx += float2(1, 1); p.yz *= 2.0f;
    threadgroup packed_half4 q[2]; q[1] = half4(1, 2, 3, 4); q[1].wzyx = q[1].xyzw;
    out[0] = p.x; out[1] = p.y; out[2] = p.z; out[3] = q[1].x; out[4] = q[1].w;
    """
    assert values(bench, source, 5) == [6, 12, 8, 4, 1]


def test_a_loop_may_be_marked_for_unrolling_in_every_way_that_metal_has(bench):
    source = """
    #define UNROLL _Pragma("unroll")
    float sum = 0;
    UNROLL for (int i = 0; i < 4; ++i) sum += i;
    _Pragma("unroll 2") for (int i = 0; i < 4; ++i) sum += i;
    #pragma unroll(4)
    for (int i = 0; i < 4; ++i) sum += i;
    out[0] = sum;
    """
    assert values(bench, source, 1) == [18]


def test_packed_vectors_lie_without_padding_and_have_components(bench):
    source = """
    device packed_float3* p = (device packed_float3*)out;
    p[0] = float3(1, 2, 3);
    p[1] = p[0].zyx;
    p[1].y += p[0].x;
    float3 v = float3(p[0]) * 2;
    p[2] = v + p[1];
    packed_half4 h = half4(1, 2, 3, 4);
    out[9] = h.w + sizeof(packed_float3) + sizeof(packed_half4) + alignof(packed_char4);
    """
    assert values(bench, source, 10) == [1, 2, 3, 3, 3, 1, 5, 7, 7, 4 + 12 + 8 + 1]


def test_matrices_multiply_column_by_column(bench):
    source = """
    float2x2 m = float2x2(float2(1, 2), float2(3, 4));   // columns
    float2 v = m * float2(1, 10), w = float2(1, 10) * m;
    float2x2 square = m * m, turned = transpose(m);
    float3x3 unit = float3x3(1.0f);
    out[0] = v.x; out[1] = v.y; out[2] = w.x; out[3] = w.y; out[4] = square[1][0]; out[5] = turned[0][1];
    out[6] = determinant(m); out[7] = unit[2].z + unit[2].x; out[8] = (m + m * 2.0f)[1].y;
    """
    assert values(bench, source, 9) == [31, 42, 21, 43, 15, 3, -2, 1, 12]


def test_bits_change_their_type(bench):
    source = """
    out[0] = as_type<float>(0x40490fdbu); out[1] = as_type<half2>(0x40003c00u).y;
    out[2] = as_type<bfloat>(ushort(0x3fc0));
    out[3] = as_type<uint>(half2(1.0h, 2.0h)) == 0x40003c00u; out[4] = as_type<int4>(float4(1)).w == 0x3f800000;
    out[5] = as_type<char4>(0x04030201).z; out[6] = as_type<ushort>(1.5h);
    """
    assert values(bench, source, 7) == [np.float32(np.pi), 2, 1.5, 1, 1, 3, 0x3E00]


def test_select_takes_the_second_where_the_condition_holds(bench):
    source = """
    int4 picked = select(int4(1, 2, 3, 4), int4(5, 6, 7, 8), bool4(true, false, true, false));
    out[0] = picked.x; out[1] = picked.y; out[2] = picked.z; out[3] = picked.w; out[4] = select(1.0f, 2.0f, true);
    """
    assert values(bench, source, 5) == [5, 2, 7, 4, 2]


def test_precise_and_fast_forms_are_there(bench):
    source = """
    float x = 0.75f;
    float r[] = {metal::precise::exp(x), fast::exp(x), metal::fast::log(x), precise::rsqrt(x), fast::sin(x),
                 fast::cos(x), precise::tanh(x), fast::pow(x, 2.5f), precise::sqrt(x), metal::precise::divide(x, 3.0f),
                 log1p(x), hypot(3.0f, 4.0f)};
    for (int i = 0; i < 12; ++i) out[i] = r[i];
    """
    x = 0.75
    wanted = [np.exp(x), np.exp(x), np.log(x), x**-0.5, np.sin(x), np.cos(x), np.tanh(x), x**2.5, x**0.5, 0.25]
    np.testing.assert_allclose(values(bench, source, 12), [*wanted, np.log1p(x), 5], rtol=3e-7)


def test_every_address_space_has_pointers_and_references(bench):
    header = """
    constant float table[4] = {1, 2, 4, 8};
    constant constexpr float TWICE = 2.0f;
    struct Pair { float a; float b; float sum() const thread { return a + b; } };
    inline float first(const device float* p) { return p[0]; }
    inline void add(threadgroup float& to, float value) { to += value; }
    template <typename T, int N = 2> inline T total(const thread T (&items)[N]) {
        T sum = 0;
        for (int i = 0; i < N; ++i) sum += items[i];
        return sum;
    }
    inline float look(constant float* p, uint i) { return p[i]; }
    """
    source = """
    threadgroup float room[2];
    threadgroup float4 wide;
    room[0] = 1; room[1] = 2;
    add(room[1], 5);
    threadgroup float* p = room + 1;
    wide = float4(table[3]);
    threadgroup float4& w = wide;
    thread Pair pair = {3, 4};
    thread Pair* q = &pair;
    device float& place = out[3];
    const float three[3] = {1, 2, 3};
    out[0] = *p; out[1] = w.z * TWICE; out[2] = q->sum() + q[0].a; place = total(three);
    out[4] = look(table, 2) + first(x);
    device const uint* bits = reinterpret_cast<device const uint*>(x);
    out[5] = bits[1] == 0x40000000;
    metal::array<float, 3> kept = {1, 2, 3};
    out[6] = kept[2] + kept.size();
    """
    x = np.array([9, 2, 0, 0, 0, 0, 0, 0], np.float32)
    assert values(bench, source, 7, header=header, inputs={"x": x}) == [7, 16, 10, 6, 13, 1, 6]


def test_mlx_s_own_functions_find_elements_by_strides(bench):
    # Element 5 of a 2x3 array lies in row 1, column 2; its strides are (1, 2): it was transposed.
    source = """
    out[0] = x[elem_to_loc(5, x_shape, x_strides, x_ndim)]; out[1] = ceildiv(7, 2);
    out[2] = Limits<half>::finite_max; out[3] = x_strides[0]; out[4] = x_shape[1]; out[5] = x_ndim;
    """
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert values(bench, source, 6, inputs={"x": x}) == [5, 4, 65504, 3, 3, 2]


def test_outputs_begin_with_init_value_and_are_atomic_when_asked(bench):
    source = """
    uint i = thread_position_in_grid.x;
    atomic_fetch_add_explicit(&sum[i % 2], x[i], memory_order_relaxed);
    atomic_fetch_max_explicit(&most[0], int(i), memory_order_relaxed);
    """
    launch = {
        "inputs": {"x": np.arange(100, dtype=np.float32)},
        "outputs": {"sum": ((2,), "float32"), "most": ((3,), "int32")},
        "grid": 100,
        "threadgroup": 32,
    }
    made = bench.run(source, init_value=7, atomic_outputs=True, **launch)
    assert made["sum"].tolist() == [7 + 2450, 7 + 2500]
    assert made["most"].tolist() == [99, 7, 7]


@pytest.mark.parametrize("spelling", ["threadgroup atomic_uint count;", "threadgroup atomic<uint> count;"])
def test_threadgroup_atomics_count_across_simdgroups(bench, spelling):
    source = f"""
    {spelling}
    uint t = thread_index_in_threadgroup;
    if (t == 0) atomic_store_explicit(&count, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&count, t, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint expected = 4950;
    bool swapped = t == 0 && atomic_compare_exchange_weak_explicit(&count, &expected, 1u, memory_order_relaxed,
                                                                   memory_order_relaxed);
    out[t] = t == 0 ? float(swapped) : 0;
    """
    out = bench.run(source, outputs={"out": ((100,), "float32")}, grid=100, threadgroup=100)["out"]
    assert out[0] == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [("", [5, 5, 5]), ("#define PAIRS", [0, 2, 4]), ("#ifdef NOT\n#define PAIRS\n#endif", [5, 5, 5])],
)
def test_a_block_may_have_two_beginnings(bench, header, expected):
    source = """
    #ifdef PAIRS
    for (uint k = 0; k < 3; ++k) {
        uint first = k, last = k + 1, value = 2 * k;
    #else
    if (thread_position_in_grid.x == 0) {
        uint first = 0, last = 3, value = 5;
    #endif
        threadgroup float seen[3];
        for (uint i = first; i < last; ++i) { seen[i] = value; out[i] = seen[i]; }
    }
    """
    assert values(bench, source, 3, header=header) == expected
