"""Each pattern, on the smallest kernel that shows it and on one that only looks like it."""

from __future__ import annotations

import pytest

from translator.cuda_source import parse_cuda
from translator.inventory import PATTERNS, take_inventory

KERNEL = "__global__ void kernel(const float* x, float* y, int n) {\n"


def hints(body: str, before: str = "") -> dict[str, str]:
    return take_inventory(parse_cuda(before + KERNEL + body + "\n}\n", "kernel.cu")).hints()


XOR_TREE = "for (int m = 16; m > 0; m >>= 1) v += __shfl_xor_sync(~0u, v, m);"
ONLINE = """
  for (int i = 0; i < n; ++i) {
    float m_new = fmaxf(m, x[i]);
    l = l * expf(m - m_new) + expf(x[i] - m_new);
    m = m_new;
  }"""

SHOWN = {
    "shuffle": ["v = __shfl_sync(~0u, v, 3);", "v = __shfl_up_sync(~0u, v, 1);"],
    "warp_reduce": [
        XOR_TREE,
        "for (int d = warpSize / 2; d > 0; d /= 2) { float o = __shfl_down_sync(~0u, v, d); v = fmaxf(v, o); }",
        "v += __shfl_xor_sync(~0u, v, 4); v += __shfl_xor_sync(~0u, v, 2); v += __shfl_xor_sync(~0u, v, 1);",
        "v = __reduce_add_sync(~0u, v);",
    ],
    "block_reduce": [
        "__shared__ float s[256]; for (int k = 128; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }",
        "__shared__ float s[8]; " + XOR_TREE + " if (lane == 0) s[warp] = v; __syncthreads();",
        "typedef cub::BlockReduce<float, 128> Reduce;",
    ],
    "shared_tile": [
        "__shared__ float t[32]; t[threadIdx.x] = x[i]; __syncthreads();",
        "__shared__ float t[32]; float v = __ldg(x + i); t[threadIdx.x] = v * 2; __syncthreads();",
        "extern __shared__ float s[]; float *k = s + 64; k[threadIdx.x] = i < n ? x[i] : 0.0f; __syncthreads();",
        "__shared__ float t[32]; *(float4*)&t[4 * i] = *(const float4*)(x + 4 * i); __syncthreads();",
    ],
    "padded_tile": [
        "__shared__ float t[32][32 + 1];",
        "constexpr int kPitch = kTile + 4; __shared__ float t[32][kPitch];",
        "__shared__ float t[kRows * (kColumns + 1)];",
        "__shared__ float t[32][32]; t[threadIdx.x][threadIdx.y] = x[i];",
        "__shared__ float t[32][32]; int lane = threadIdx.x % 32; t[lane][r] = x[i];",
    ],
    "exp2": ["y[0] = exp2f(x[0]);", 'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(a) : "f"(b));'],
    "fast_math": ["y[0] = __expf(x[0]);", "y[0] = __fdividef(a, b);"],
    "vector_load": ["v = reinterpret_cast<const float4*>(x)[i];", "v = *(int4*)(x + i);"],
    "unroll": ["#pragma unroll\n for (int i = 0; i < 4; ++i) y[i] = 0;"],
    "async_copy": [
        "__pipeline_memcpy_async(&s[0], x, 16);",
        "cuda::memcpy_async(s, x, 16, barrier);",
        'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(b));',
    ],
    "double_buffer": [
        "__shared__ float t[2][32]; int b = 0; for (;;) { y[0] = t[b][0]; b ^= 1; }",
        "__shared__ float t[2][32]; int b = 0; for (;;) { y[0] = t[b][0]; b = 1 - b; }",
        "__shared__ float t[2][32]; for (int k = 0; k < n; ++k) y[k] = t[k & 1][0];",
        "constexpr int kStages = 3; __shared__ float t[kStages][8]; for (int k = 0; ; ++k) y[k] = t[k % kStages][0];",
    ],
    "half2": ["__half2 v = __hadd2(a, b);", "v = ((const half2*)x)[i];"],
    "atomics": ["atomicAdd(y, 1.0f);", "atomicCAS(p, 0, 1);"],
    "grid_stride": [
        "for (int i = threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = 0;",
        "int step = gridDim.x * blockDim.x; for (int i = 0; i < n; i += step) y[i] = 0;",
    ],
    "online_softmax": [
        ONLINE,
        "for (int i = 0; i < n; ++i) { float old = m; m = max(m, x[i]); l = l * __expf(old - m) + __expf(x[i] - m); }",
        "for (;;) { float g = fmaxf(m[r], s); float c = exp2f((m[r] - g) * scale); l *= c; m[r] = g; }",
        "for (;;) { float g = fmaxf(m, s); float c = exp2f(m * scale - g * scale); l *= c; m = g; }",
        "for (;;) { if (s > m) { l *= expf(m - s); m = s; } l += expf(s - m); }",
    ],
    "small_tiles": [
        "constexpr int kRows = 128; __shared__ float t[kRows][64 + 1];",
        "__shared__ float a[64][64]; __shared__ half b[64][64 * 3];",
        "} void h() { cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);",
        "} void h() { kernel<<<1, 32, 48 * 1024>>>(x, y, 0);",
        "} constexpr int kFloats = 12288; void h() { kernel<<<1, 32, kFloats * sizeof(float)>>>(x, y, 0);",
    ],
    "scan_ladder": [
        "for (int d = 1; d < 32; d *= 2) { float p = __shfl_up_sync(~0u, v, d); if (lane >= d) v += p; }",
        "for (int d = 1; d < 32; d <<= 1) { float p = __shfl_up_sync(~0u, v, d); if (lane >= d) v = v * p; }",
        "typedef cub::BlockScan<float2, 128> Scan;",
    ],
    "matrix_tiles": [
        "wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;",
        'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1};" :: "r"(a));',
    ],
    "split_reduction": [
        "int from = blockIdx.y * part; int to = min(from + part, n); for (int k = from + t; k < to; ++k) sum += x[k];",
        "int s = blockIdx.x; int a = s * part; int all = min(part, n - a); for (int j = 0; j < all; ++j) l += x[j];",
        """__threadfence(); if (t == 0) last = atomicInc(&count, gridDim.x) == gridDim.x - 1;""",
    ],
}  # fmt: skip

ONLY_ALIKE = {
    "shuffle": ["v = shuffle(v, 3);", "// __shfl_sync(~0u, v, 3)\n"],
    "warp_reduce": ["for (int i = 0; i < 4; ++i) v += __shfl_xor_sync(~0u, v, 1);", "v = __shfl_sync(~0u, v, 0);"],
    "block_reduce": [
        XOR_TREE,
        "__shared__ float s[8]; s[warp] = v; __syncthreads();",
        "__shared__ float s[8]; for (int i = 0; i < 8; ++i) { s[i] = v; __syncthreads(); }",
    ],
    "shared_tile": [
        "__shared__ float t[32]; t[threadIdx.x] = 0.0f; __syncthreads();",
        "__shared__ float t[32]; t[threadIdx.x] = t[threadIdx.x + 1]; __syncthreads();",
        "__shared__ float t[32]; float v = x[i]; v = sum(v); t[warp] = v; __syncthreads();",
        "float t[32]; t[0] = x[i]; __syncthreads();",
    ],
    "padded_tile": [
        "__shared__ float t[32][32];",
        "__shared__ float t[32 + 1][32];",
        "__shared__ float t[n + 1];",
        "__shared__ float t[32][32 + 64];",
        "__shared__ float t[32][32]; t[threadIdx.y][threadIdx.x] = x[i];",
    ],
    "exp2": ["y[0] = expf(x[0]);"],
    "fast_math": ["y[0] = expf(x[0]) / 2;"],
    "vector_load": ["float4 v = make_float4(0, 0, 0, 0);", "v = (float)x[i];"],
    "unroll": ["for (int i = 0; i < 4; ++i) y[i] = 0;"],
    "async_copy": ["memcpy(a, b, 16);"],
    "double_buffer": [
        "__shared__ float t[2][32]; for (int b = 0; b < 2; ++b) y[b] = t[b][0];",
        "__shared__ float t[8][32]; int b = 0; for (;;) { y[0] = t[b][0]; b ^= 1; }",
        "__shared__ float t[2][32]; for (int k = 0; k < n; ++k) { int odd = k & 1; y[k] = odd; }",
    ],
    "half2": ["__half v = x[0];"],
    "atomics": ["y[0] += 1.0f;"],
    "grid_stride": ["for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;", "int all = gridDim.x;"],
    "online_softmax": [
        "for (int i = 0; i < n; ++i) m = fmaxf(m, x[i]); for (int i = 0; i < n; ++i) l += expf(x[i] - m);",
        "for (int i = 0; i < n; ++i) { float d = x[i]; y[i] = expf(d - m); }",
        "float m_new = fmaxf(m, s); l = l * expf(m - m_new); m = m_new;",
        "for (int i = 0; i < n; ++i) { l = l * expf(a - b); a = b; }",
    ],
    "small_tiles": [
        "__shared__ float t[64][128];",
        "__shared__ float t[n][65536];",
        "} void h() { kernel<<<1, 32, 32 * 1024>>>(x, y, 0);",
    ],
    "scan_ladder": [
        "for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);",
        "float p = __shfl_up_sync(~0u, v, 1);",
    ],
    "matrix_tiles": ["float c = matrix[3]; multiply(c, a, b);"],
    "split_reduction": [
        "int from = blockIdx.y * part; int to = min(from + part, n); for (int k = from; k < to; ++k) y[k] = x[k];",
        "int to = min(part, n); for (int k = blockIdx.x * part; k < to; ++k) sum += x[k];",
        "if (t == 0) atomicInc(&count, gridDim.x);",
        "int from = blockIdx.y * part; int to = min(from + part, n); for (int k = 0; k < to; k += 32) sum += x[k];",
        "int from = blockIdx.y * part; int to = min(from + part, n);"
        "for (int k = from; k < to; ++k) { float s = 0; s += x[k]; y[k] = s; }",
    ],
}


def cases(table: dict[str, list[str]]):
    return [pytest.param(name, body, id=f"{name}-{number}") for name, bodies in table.items()
            for number, body in enumerate(bodies)]  # fmt: skip


def test_every_pattern_has_both_kinds_of_example():
    assert set(SHOWN) == set(ONLY_ALIKE) == set(PATTERNS)


@pytest.mark.parametrize(("pattern", "body"), cases(SHOWN))
def test_a_pattern_is_found(pattern, body):
    assert pattern in hints(body)


@pytest.mark.parametrize(("pattern", "body"), cases(ONLY_ALIKE))
def test_what_only_looks_alike_is_not(pattern, body):
    assert pattern not in hints(body)


def test_a_reduction_in_a_helper_makes_the_caller_a_block_reduction():
    helper = "__device__ float warp_sum(float v) { " + XOR_TREE + " return v; }\n"
    outer = "__device__ float wrapped(float v) { return warp_sum(v); }\n"
    body = "__shared__ float s[8]; v = wrapped(v); if (lane == 0) s[warp] = v; __syncthreads();"
    assert hints(body, helper + outer)["block_reduce"] == "kernel.cu:4 s[warp] = v"
    assert "block_reduce" not in hints("v = wrapped(v);", helper + outer)


def test_a_hint_names_file_line_and_text():
    assert hints("  y[0] = 1;\n  v = __shfl_xor_sync(~0u, v, 16);")["shuffle"] == "kernel.cu:3 __shfl_xor_sync"


def test_a_hint_of_several_lines_is_one_short_line():
    hint = hints("__shared__ float tile[32]\n   [32 + 1];\n" + " " * 200)["padded_tile"]
    assert hint == "kernel.cu:2 __shared__ float tile[32] [32 + 1];"
    assert len(hints(f"__shared__ float {'t' * 300}[32][32 + 1];")["padded_tile"]) <= 60


def test_deeply_nested_code_is_inventoried_in_time():
    calls = "for (;;) { m = max(m, s); old = m; y[0] = " + "expf(" * 2000 + "old - m" + ")" * 2000 + "; }"
    assert "online_softmax" in hints(calls)
