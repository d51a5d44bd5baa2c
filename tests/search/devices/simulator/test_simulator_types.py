"""Scalars and vectors: rounding of half and bfloat, constructors, swizzles, mathematics."""

from __future__ import annotations

import numpy as np

from search.kernels.dtypes import DTYPES


def test_half_arithmetic_rounds_every_operation(bench, random):
    x, y, z = (random.uniform(-8, 8, 512).astype(np.float16) for _ in range(3))
    source = """
    uint i = thread_position_in_grid.x;
    half a = x[i], b = y[i], c = z[i];
    out[i] = a * b + c; out[512 + i] = a / b - c; out[1024 + i] = sqrt(abs(a)); out[1536 + i] = fma(a, b, c);
    out[2048 + i] = 0.1h * a;
    """
    out = bench.run(
        source, inputs={"x": x, "y": y, "z": z}, outputs={"out": ((5, 512), "float16")}, grid=512, threadgroup=64
    )["out"]
    np.testing.assert_array_equal(out[0], x * y + z)
    np.testing.assert_array_equal(out[1], x / y - z)
    np.testing.assert_array_equal(out[2], np.sqrt(np.abs(x)))
    exact = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
    np.testing.assert_array_equal(out[3], exact.astype(np.float16))
    np.testing.assert_array_equal(out[4], np.float16(0.1) * x)


def test_half_with_float_is_float_and_with_int_is_half(bench):
    source = """
    half h = 2049.0h;
    out[0] = h + 0.25f;
    out[1] = float(h + 1);
    out[2] = sizeof(h * 1.0f) * 10 + sizeof(h * 1);
    """
    out = bench.run(source, outputs={"out": ((3,), "float32")}, grid=1, threadgroup=1)["out"]
    # 2049 isn't a half: 2048 (to even); 2048 + 1 as half is 2048 again.
    np.testing.assert_array_equal(out, [2048.25, 2048.0, 42.0])


def test_bfloat_arithmetic_rounds_to_nearest_even(bench, random):
    bfloat16 = DTYPES["bfloat16"]
    x, y = (bfloat16.encode(random.uniform(-8, 8, 512)) for _ in range(2))
    source = """
    uint i = thread_position_in_grid.x;
    bfloat16_t a = x[i], b = y[i];
    out[i] = a * b; out[512 + i] = a + b; out[1024 + i] = -a / b; out[1536 + i] = a * 3; out[2048 + i] = max(a, b);
    bfloat c = a; c += b; c *= 2.0f; out[2560 + i] = c;
    wide[i] = a + 0.001f;
    """
    result = bench.run(
        source,
        inputs={"x": x, "y": y},
        dtypes={"x": "bfloat16", "y": "bfloat16"},
        outputs={"out": ((6, 512), "bfloat16"), "wide": ((512,), "float32")},
        grid=512,
        threadgroup=64,
    )
    a, b = bfloat16.decode(x), bfloat16.decode(y)
    rounded = [a * b, a + b, -a / b, a * 3, np.maximum(a, b)]
    for row, exact in enumerate(rounded):
        np.testing.assert_array_equal(result["out"][row], bfloat16.encode(exact.astype(np.float32)))
    once = bfloat16.decode(bfloat16.encode((a + b).astype(np.float32)))
    np.testing.assert_array_equal(result["out"][5], bfloat16.encode(2 * once))
    np.testing.assert_array_equal(result["wide"], (a + np.float32(0.001)).astype(np.float32))


def test_vectors_are_made_from_all_kinds_of_parts(bench):
    source = """
    float2 ab = float2(1, 2); float3 abc = float3(ab, 3); float4 all = float4(0, abc);
    float4 same = 7; half4 narrow = half4(all); int3 whole = int3(all.yzw * 1.5f);
    vec<float, 4> braces = {4, 3, 2, 1}; uchar4 bytes(1, 2, 3, 255); packed_float3 packed = float3(5, 6, 7);
    float r[32] = {all.x, all.y, all.z, all.w, same.w, float(narrow.z), float(whole.x), float(whole.y), float(whole.z),
                   braces.x, braces[3], float(bytes.w), packed[1], float3(packed).z, float(sizeof(packed)),
                   float(sizeof(float3)), (ab + 1).y, (2 * abc - 1).z, (abc / 2).x, float((whole % 2).x),
                   float(dot(all, all)), length(float2(3, 4)), cross(float3(1, 0, 0), float3(0, 1, 0)).z,
                   float(any(all > 2.5f)), float(all.w == 3), float(metal::all(all > 0)),
                   select(ab, -ab, bool2(false, true)).y,
                   as_type<float>(as_type<uint>(all.z)), float(as_type<ushort2>(0x00030004u).y),
                   clamp(all, 1.0f, 2.0f).w,
                   max(all, 1.5f).y, mix(ab, ab + 1, 0.5f).x};
    for (int k = 0; k < 32; ++k) out[k] = r[k];
    """
    out = bench.run(source, outputs={"out": ((32,), "float32")}, grid=1, threadgroup=1)["out"]
    # fmt: off
    wanted = [0, 1, 2, 3, 7, 2, 1, 3, 4, 4, 1, 255, 6, 7, 12, 16,
              3, 5, 0.5, 1, 14, 5, 1, 1, 1, 0, -2, 2, 3, 2, 1.5, 1.5]
    # fmt: on
    np.testing.assert_array_equal(out, wanted)


def test_swizzles_read_and_write(bench):
    source = """
    float4 v = float4(1, 2, 3, 4);
    v.xz = float2(10, 30);
    v.yw *= 2.0f;
    float4 w = v.wzyx;
    w.rg = v.ba; w.b += 1;
    float2 twice = v.xx + w.ga;
    device float4* p = (device float4*)out;
    p[0] = v; p[1] = w; p[2] = float4(twice, v.xyz.zy);
    p[3].xyz = w.zyx; p[3].w = dot(v.xyz, float3(1)); p->y = 5;
    """
    out = bench.run(source, outputs={"out": ((4, 4), "float32")}, grid=1, threadgroup=1)["out"]
    # v = (10, 4, 30, 8); w = (8, 30, 4, 10), then w.rg = (30, 8), w.b = 5.
    np.testing.assert_array_equal(out[0], [10, 5, 30, 8])
    np.testing.assert_array_equal(out[1], [30, 8, 5, 10])
    np.testing.assert_array_equal(out[2], [10 + 8, 10 + 10, 30, 4])
    np.testing.assert_array_equal(out[3], [5, 8, 30, 44])


def test_mathematics_agrees_with_numpy(bench, random):
    x = random.uniform(0.1, 4, 256).astype(np.float32)
    source = """
    uint i = thread_position_in_grid.x; float v = x[i];
    out[i] = exp(v); out[256 + i] = metal::precise::exp2(v); out[512 + i] = fast::log2(v); out[768 + i] = log(v);
    out[1024 + i] = rsqrt(v); out[1280 + i] = metal::tanh(v); out[1536 + i] = pow(v, 1.5f); out[1792 + i] = sin(v);
    out[2048 + i] = floor(v) + ceil(v) + round(v) + trunc(v); out[2304 + i] = fmod(v, 0.7f); out[2560 + i] = exp10(v);
    """
    out = bench.run(source, inputs={"x": x}, outputs={"out": ((11, 256), "float32")}, grid=256, threadgroup=64)["out"]
    d = x.astype(np.float64)
    wanted = [
        np.exp(d),
        np.exp2(d),
        np.log2(d),
        np.log(d),
        1 / np.sqrt(d),
        np.tanh(d),
        d**1.5,
        np.sin(d),
        np.floor(d) + np.ceil(d) + np.round(d) + np.trunc(d),
        np.fmod(x, np.float32(0.7)),
        10**d,
    ]
    np.testing.assert_allclose(out, np.array(wanted), rtol=3e-7, atol=1e-7)


def test_not_a_number_gives_way_in_max_and_min(bench):
    source = """
    out[0] = max(NAN, 1.0f); out[1] = max(1.0f, NAN); out[2] = min(NAN, -1.0f); out[3] = isnan(max(NAN, NAN)) ? 1 : 0;
    out[4] = max(-INFINITY, -3.0f); out[5] = isinf(-INFINITY) && !isfinite(INFINITY) ? 1 : 0; out[6] = M_LOG2E_F;
    out[7] = Limits<float>::min; out[8] = numeric_limits<half>::max(); out[9] = Limits<int>::max;
    """
    out = bench.run(source, outputs={"out": ((10,), "float32")}, grid=1, threadgroup=1)["out"]
    np.testing.assert_array_equal(
        out, np.array([1, 1, -1, 1, -3, 1, np.log2(np.e), -np.inf, 65504, 2**31 - 1], np.float32)
    )


def test_integer_functions(bench):
    source = """
    out[0] = popcount(0xF0F0u); out[1] = clz(1); out[2] = ctz(40u); out[3] = int(reverse_bits(1u) >> 28);
    out[4] = mulhi(1 << 30, 8); out[5] = extract_bits(-1, 4, 3); out[6] = int(extract_bits(0xABCDu, 4, 8));
    out[7] = int(insert_bits(0u, 5u, 4, 4)); out[8] = abs(-9); out[9] = int(rotate(0x80000001u, 1u));
    out[10] = int(addsat(uchar(250), uchar(10))); out[11] = subsat(-2000000000, 2000000000); out[12] = absdiff(3, 10);
    out[13] = min(3, max(1, 2)) + clamp(9, 0, 5); out[14] = int(char(-1));
    out[15] = int(sizeof(long)) + int(sizeof(short));
    """
    out = bench.run(source, outputs={"out": ((16,), "int32")}, grid=1, threadgroup=1)["out"]
    np.testing.assert_array_equal(out, [8, 31, 3, 8, 2, -1, 0xBC, 80, 9, 3, 255, -(2**31), 7, 7, -1, 10])
