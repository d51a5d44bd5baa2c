"""What CUDA computes with: atomics, half and bfloat16, double, integer intrinsics, conversions, mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from search.kernels.dtypes import DTYPES

BFLOAT = DTYPES["bfloat16"]


@pytest.fixture
def values(cuda):
    """Return a function that runs one thread, which writes each of some expressions to an element of an array."""

    def run(*expressions, dtype="float32", before="", inputs=None):
        types = {
            "float32": "float",
            "float64": "double",
            "int32": "int",
            "uint32": "unsigned int",
            "int64": "long long",
        }
        lines = "\n".join(f"  out[{index}] = {text};" for index, text in enumerate(expressions))
        parameters = "".join(f"const float* {name}, " for name in inputs or {})
        text = f"{before}\n__global__ void k({parameters}{types[dtype]}* out) {{\n{lines}\n}}"
        launch = cuda.launch("k", 1, 1, *(inputs or {}), "out")
        return cuda.run(text, launch, inputs=inputs, outputs={"out": (len(expressions), dtype)})["out"]

    return run


@pytest.mark.parametrize("memory", ["global", "shared"])
def test_atomics_of_integers_return_what_was_there(cuda, memory):
    names = ("add", "sub", "least", "most", "ands", "ors", "xors", "inc", "dec")
    begin = dict(zip(names, (0, 1000, 500, 0, 255, 0, 0, 0, 5), strict=True))
    place = {name: f"{'s' if memory == 'shared' else 'counters'}[{index}]" for index, name in enumerate(names)}
    text = f"""
__global__ void k(unsigned* counters, int* seen) {{
    __shared__ unsigned s[{len(names)}];
    unsigned t = threadIdx.x;
    if (t < {len(names)}) s[t] = counters[t];
    __syncthreads();
    seen[t] = atomicAdd(&{place["add"]}, 2u);
    atomicSub(&{place["sub"]}, 3u);
    atomicMin(&{place["least"]}, 100 + t);
    atomicMax(&{place["most"]}, 100 + t);
    atomicAnd(&{place["ands"]}, ~(1u << t % 4));
    atomicOr(&{place["ors"]}, 1u << t % 8);
    atomicXor(&{place["xors"]}, t);
    atomicInc(&{place["inc"]}, 6u);
    atomicDec(&{place["dec"]}, 10u);
    __syncthreads();
    if ({int(memory == "shared")} && t < {len(names)}) counters[t] = s[t];
}}"""
    given = np.array(list(begin.values()), np.uint32)
    launch = cuda.launch("k", 1, 40, "counters", "seen")
    program = cuda.program(text, launch, inout={"counters": given}, outputs={"seen": (40, "int32")})
    got = cuda.device.run(program, {"counters": given}, time_limit=20).outputs
    after = dict(zip(names, got["counters"].tolist(), strict=True))
    assert sorted(got["seen"]) == list(range(0, 80, 2))
    assert after == {
        "add": 80, "sub": 1000 - 120, "least": 100, "most": 139, "ands": 240, "ors": 255, "xors": 0, "inc": 40 % 7,
        "dec": (5 - 40) % 11,
    }  # fmt: skip


def test_atomics_of_floating_types_and_of_long_integers(cuda):
    text = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(float* f, double* d, half* h, half2* p, __nv_bfloat16* b, unsigned long long* u, long long* m) {
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd(h, __float2half(1.0f));
    atomicAdd(p, __floats2half2_rn(1.0f, 2.0f));
    atomicAdd(b, __float2bfloat16(1.0f));
    atomicAdd(u, 1ull << 32);
    atomicMax(m, (long long)threadIdx.x << 40);
}"""
    kinds = {"f": "float32", "d": "float64", "h": "float16", "b": "bfloat16", "u": "uint64", "m": "int64"}
    zeroed = {**{name: (1, dtype) for name, dtype in kinds.items()}, "p": (2, "float16")}
    got = cuda.run(text, cuda.launch("k", 2, 48, "f", "d", "h", "p", "b", "u", "m"), zeroed=zeroed)
    assert (got["f"][0], got["d"][0], got["h"][0], BFLOAT.decode(got["b"])[0]) == (48, 24, 96, 96)
    assert got["p"].tolist() == [96, 192]
    assert (got["u"][0], got["m"][0]) == (96 << 32, 47 << 40)


def test_compare_and_swap_makes_other_atomics(cuda):
    text = """
__device__ double multiply(double* at, double by) {
    unsigned long long* bits = (unsigned long long*)at;
    unsigned long long seen, old = __double_as_longlong(1.0);
    do {
        seen = old;
        old = atomicCAS(bits, seen, __double_as_longlong(__longlong_as_double(seen) * by));
    } while (old != seen);
    return __longlong_as_double(old);
}
__global__ void k(double* product, unsigned short* taken) {
    multiply(product, 2.0);
    atomicCAS(taken, (unsigned short)7, (unsigned short)9);
}"""
    given = {"product": np.ones(1), "taken": np.array([7], np.uint16)}
    got = cuda.run(text, cuda.launch("k", 1, 40, "product", "taken"), inout=given)
    assert (got["product"][0], got["taken"][0]) == (2.0**40, 9)


def test_half_precision_is_rounded_after_every_operation(cuda, random):
    text = """
#include <cuda_fp16.h>
__global__ void k(const half* a, const __half* b, half2* out, float* wide, int n) {
    int i = threadIdx.x;
    if (2 * i >= n) return;
    half2 x = reinterpret_cast<const half2*>(a)[i], y = __halves2half2(b[2 * i], b[2 * i + 1]);
    half2 r = __hadd2(__hmul2(x, y), __float2half2_rn(0.5f));
    r = __hfma2(x, y, r) - x / y;
    out[i] = __hgt(r.x, r.y) ? r : __lowhigh2highlow(r);
    wide[i] = __half2float(__hmax(x.x, y.y)) + __low2float(hexp(x.x) > __float2half(0.f) ? y : x);
}"""
    a, b = random.standard_normal((2, 64)).astype(np.float16)
    launch = cuda.launch("k", 1, 32, "a", "b", "out", "wide", 64)
    got = cuda.run(text, launch, inputs={"a": a, "b": b}, outputs={"out": (64, "float16"), "wide": (32, "float32")})
    r = (a * b) + np.float16(0.5)
    fused = (a.astype(np.float64) * b + r).astype(np.float16)
    r = (fused - a / b).reshape(32, 2)
    np.testing.assert_array_equal(got["out"].reshape(32, 2), np.where(r[:, :1] > r[:, 1:], r, r[:, ::-1]))
    even, odd = a[::2].astype(np.float32), b[1::2].astype(np.float32)
    np.testing.assert_array_equal(got["wide"], np.maximum(even, odd) + b[::2].astype(np.float32))


def test_bfloat16_is_rounded_to_nearest_even(cuda, random):
    text = """
#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat162* out, float* wide) {
    int i = threadIdx.x;
    __nv_bfloat162 x = ((const __nv_bfloat162*)a)[i], y = ((const __nv_bfloat162*)b)[i];
    out[i] = __hmul2(x, y) + x;
    float2 f = __bfloat1622float2(y);
    __nv_bfloat16 sum = x.x;
    sum += y.x;
    sum = sum * __float2bfloat16(3.0f);
    wide[i] = float(sum) + f.y + __bfloat162float(__hneg(x.y));
}"""
    a, b = (BFLOAT.encode(values) for values in random.standard_normal((2, 48)))
    arrays = {"inputs": {"a": a, "b": b}, "outputs": {"out": (48, "bfloat16"), "wide": (24, "float32")}}
    got = cuda.run(
        text, cuda.launch("k", 1, 24, "a", "b", "out", "wide"), dtypes={"a": "bfloat16", "b": "bfloat16"}, **arrays
    )

    def rounded(values):
        return BFLOAT.decode(BFLOAT.encode(values))

    x, y = BFLOAT.decode(a), BFLOAT.decode(b)
    np.testing.assert_array_equal(BFLOAT.decode(got["out"]), rounded(rounded(x * y) + x))
    tripled = rounded(rounded(x[::2] + y[::2]) * 3)
    np.testing.assert_allclose(got["wide"], tripled + y[1::2] - x[1::2], rtol=1e-6, atol=1e-6)


def test_double_keeps_its_precision(values):
    got = values(
        "exp(1.0)", "log(10.0)", "sin(1.0)", "pow(2.0, 0.5)", "sqrt(3.0)", "erf(0.5)", "tanh(0.25)", "1.0 / 3.0",
        "fma(3.0, 1.0 / 3.0, -1.0)", "fmax(1.5, 2.5)", "rsqrt(2.0)", "atan2(1.0, -1.0)", "floor(-2.5)",
        dtype="float64",
    )  # fmt: skip
    expected = [
        math.e, math.log(10), math.sin(1), 2**0.5, 3**0.5, math.erf(0.5), math.tanh(0.25), 1 / 3, -(2.0**-54), 2.5,
        0.5**0.5, 0.75 * math.pi, -3,
    ]  # fmt: skip
    np.testing.assert_allclose(got, expected, rtol=4e-16)


def test_mathematics_of_float_in_its_three_spellings(values):
    got = values(
        "expf(v[0])", "exp(v[0])", "__expf(v[0])", "logf(v[1])", "__powf(v[1], 0.5f)", "erff(v[0])", "log1pf(v[0])",
        "rsqrtf(v[1])", "fmaxf(NAN, v[0])", "roundf(-2.5f)", "rintf(2.5f)", "fabs(-v[1])", "max(v[0], v[1])",
        "__fdividef(v[0], v[1])", "normcdff(0.0f)", "cbrtf(8.0f * v[1] / v[1])", "fminf(FLT_MAX, INFINITY) == FLT_MAX",
        inputs={"v": np.array([0.5, 4.0], np.float32)},
    )  # fmt: skip
    expected = [
        math.exp(0.5), math.exp(0.5), math.exp(0.5), math.log(4), 2, math.erf(0.5), math.log(1.5), 0.5, 0.5, -3, 2, 4,
        4, 0.125, 0.5, 2, 1,
    ]  # fmt: skip
    np.testing.assert_allclose(got, expected, rtol=3e-7)


def test_integer_intrinsics(values):
    got = values(
        "__popc(0xF0F0u)", "__clz(1)", "__clz(0)", "__ffs(8)", "__ffs(0)", "__brev(1u)", "__umulhi(0x80000000u, 6u)",
        "__mulhi(-2, 1 << 30)", "__byte_perm(0x33221100u, 0x77665544u, 0x7531u)", "__funnelshift_l(0x80000000u, 1u, 4)",
        "__funnelshift_r(0xF0u, 1u, 4)", "__dp4a(0x01020304, 0x05060708, 10)", "__dp4a(-1, 0x01010101, 0)",
        "__mul24(1 << 23, 2)", "__popcll(~0ull)", "__sad(-3, 4, 1u)", "min(3u, 2u)", "abs(-7)", "max(-1, 0)",
        dtype="int64",
    )  # fmt: skip
    expected = [
        8, 31, 32, 4, 0, 1 << 31, 3, -1, 0x77553311, (1 << 4) | 8, (1 << 28) | 0xF, 5 + 12 + 21 + 32 + 10, -4,
        -(1 << 24), 64, 8, 2, 7, 0,
    ]  # fmt: skip
    assert got.tolist() == expected


def test_conversions_round_as_they_say_and_stay_in_range(values):
    got = values(
        "__float2int_rn(2.5f)", "__float2int_rz(-2.7f)", "__float2int_ru(2.1f)", "__float2int_rd(-2.1f)",
        "__float2int_rn(1e20f)", "__float2int_rz(NAN)", "__float2uint_rn(-5.0f)", "__float_as_int(1.0f)",
        "(long long)__int_as_float(0x40000000)", "__double2int_rn(3.5)", "__half2int_rn(__float2half(7.5f))",
        "__half_as_ushort(__float2half(1.0f))", "__bfloat16_as_ushort(__float2bfloat16(1.0f))",
        dtype="int64",
    )  # fmt: skip
    assert got.tolist() == [2, -2, 3, -3, 2**31 - 1, 0, 0, 0x3F800000, 2, 4, 8, 0x3C00, 0x3F80]


def test_vector_types_have_cudas_sizes_and_alignments(values):
    names = (
        "char2",
        "uchar3",
        "uchar4",
        "short4",
        "int3",
        "uint4",
        "float2",
        "float3",
        "float4",
        "double2",
        "longlong2",
    )
    got = values(*(f"1000 * sizeof({name}) + alignof({name})" for name in names), dtype="int32")
    sizes = [2002, 3001, 4004, 8008, 12004, 16016, 8008, 12004, 16016, 16016, 16016]
    assert got.tolist() == sizes
