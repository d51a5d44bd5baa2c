"""Correct kernels of unusual shape: the checked mode has nothing to say about them, and computes what they compute."""

from __future__ import annotations

import numpy as np
import pytest

N = 128
X = np.arange(N, dtype=np.float32)
I = "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;\n"  # noqa: E741
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
SIMD = "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
RELAXED = "memory_order_relaxed"

# name: body, what `out` must be. Two threadgroups of 64 threads, x = 0, 1, 2 ...
ROWS = X.reshape(2, 64)
KERNELS = {
    "warp-synchronous reversal": (
        f"threadgroup float a[64];\na[t] = x[i];\n{SIMD}out[i] = a[t ^ 31];",
        X.reshape(4, 32)[:, ::-1].reshape(-1),
    ),
    "order by a simdgroup operation": (
        "threadgroup float a[64];\na[t] = x[i];\nfloat s = simd_sum(1.0f);\nout[i] = a[t ^ 1] * s / 32;",
        X.reshape(-1, 2)[:, ::-1].reshape(-1),
    ),
    "warp-synchronous tree in a loop": (
        f"threadgroup float a[64];\na[t] = x[i];\n{SIMD}for (uint d = 16; d > 0; d /= 2) {{\n"
        f"  if (lane < d) a[t] += a[t + d];\n  {SIMD}}}\nout[i] = a[t / 32 * 32];",
        np.repeat(X.reshape(4, 32).sum(axis=1), 32),
    ),
    "atomic reduction in threadgroup memory": (
        f"threadgroup atomic_int n;\nif (t == 0) atomic_store_explicit(&n, 0, {RELAXED});\n{BARRIER}"
        f"atomic_fetch_add_explicit(&n, int(x[i]), {RELAXED});\n{BARRIER}out[i] = atomic_load_explicit(&n, {RELAXED});",
        np.repeat(ROWS.sum(axis=1), 64),
    ),
    "early exit of whole simdgroups": (
        "out[i] = x[i];\nif (t >= 32) return;\nout[i] = simd_max(x[i]);",
        np.concatenate([np.full(32, 31), X[32:64], np.full(32, 95), X[96:]]),
    ),
    "early exit without later barriers": (
        f"out[i] = 1;\n{BARRIER}if (t % 3) return;\nout[i] = x[i];",
        np.where(np.arange(N) % 64 % 3, 1, X),
    ),
    "overlapping reads": (
        f"threadgroup float a[66];\na[t + 1] = x[i];\nif (t < 2) a[t * 65] = 0;\n{BARRIER}"
        "out[i] = a[t] + a[t + 1] + a[t + 2];",
        np.concatenate([np.convolve(row, [1, 1, 1], "same") for row in ROWS]),
    ),
    "double buffer, one barrier a step": (
        f"threadgroup float a[2][64];\nfloat v = 0;\na[0][t] = x[i];\n{BARRIER}for (int k = 0; k < 4; ++k) {{\n"
        f"  a[(k + 1) % 2][t] = x[i] + k + 1;\n  v += a[k % 2][63 - t];\n  {BARRIER}}}\nout[i] = v;",
        (4 * ROWS[:, ::-1] + 6).reshape(-1),
    ),
    "tile reused after a barrier": (
        f"threadgroup float a[64];\na[t] = x[i];\n{BARRIER}float v = a[63 - t];\n{BARRIER}"
        f"a[t] = v;\n{BARRIER}out[i] = a[63 - t];",
        X,
    ),
    "flag set by one thread": (
        f"threadgroup int flag;\nif (t == 0) flag = 7;\n{BARRIER}out[i] = flag;",
        np.full(N, 7),
    ),
    "memory read as another type": (
        f"threadgroup float a[64];\nthreadgroup uint* bits = (threadgroup uint*)a;\n"
        f"bits[t] = as_type<uint>(x[i]);\n{BARRIER}"
        "out[i] = a[63 - t];",
        ROWS[:, ::-1].reshape(-1),
    ),
    "two halves of a word by two threads": (
        f"threadgroup half a[64];\na[t] = half(x[i]);\n{BARRIER}out[i] = float(a[t ^ 1]);",
        X.reshape(-1, 2)[:, ::-1].reshape(-1),
    ),
    "bytes by neighbours": (
        f"threadgroup uchar a[64];\na[t] = uchar(i);\n{BARRIER}out[i] = float(a[63 - t]);",
        ROWS[:, ::-1].reshape(-1),
    ),
    "one array for two purposes": (
        f"threadgroup float4 room[16];\nthreadgroup float* a = (threadgroup float*)room;\na[t] = x[i];\n{BARRIER}"
        f"float4 v = room[t / 4];\n{BARRIER}if (t < 16) room[t] = float4(t);\n{BARRIER}out[i] = v.x + room[t / 4].y;",
        np.concatenate([ROWS[g][::4].repeat(4) + np.arange(16).repeat(4) for g in range(2)]),
    ),
    "vectors of three": (
        f"threadgroup float3 a[64];\na[t].x = x[i]; a[t].y = 1; a[t].z = 2;\n{BARRIER}float3 v = a[63 - t];\n"
        "out[i] = v.x + v.y + v.z;",
        (ROWS[:, ::-1] + 3).reshape(-1),
    ),
    "a padded tile": (
        f"threadgroup float a[8][9];\na[t / 8][t % 8] = x[i];\n{BARRIER}out[i] = a[t % 8][t / 8];",
        ROWS.reshape(2, 8, 8).transpose(0, 2, 1).reshape(-1),
    ),
    "a pointer one past the end": (
        "const device float* end = x + 128;\nfloat v = 0;\n"
        "for (const device float* p = x + i; p < end && p < x + i + 2; ++p) v += *p;\nout[i] = v;",
        X + np.append(X[1:], 0),
    ),
    "guarded neighbours": (
        "float left = i > 0 ? x[i - 1] : 0, right = i + 1 < 128 ? x[i + 1] : 0;\nout[i] = left + right;",
        np.append(0, X[:-1]) + np.append(X[1:], 0),
    ),
    "a reduction over eight lanes": (
        f"threadgroup float part[2];\nfloat s = simd_sum(x[i]);\nif (lane == 0) part[t / 32] = s;\n{BARRIER}"
        f"float v = lane < 2 ? part[lane] : 0;\nv = simd_sum(v);\nout[i] = v;",
        np.repeat(ROWS.sum(axis=1), 64),
    ),
    "device memory handed on within a threadgroup": (
        "out[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\nfloat v = out[i ^ 1];\n"
        "threadgroup_barrier(mem_flags::mem_device);\nout[i] = v;",
        X.reshape(-1, 2)[:, ::-1].reshape(-1),
    ),
    "barriers in a uniform branch": (
        f"threadgroup float a[64];\nif (threadgroup_position_in_grid.x == 0) {{\n  a[t] = x[i];\n  {BARRIER}"
        "  out[i] = a[63 - t];\n"
        "} else {\n  out[i] = 5;\n}",
        np.concatenate([X[:64][::-1], np.full(64, 5)]),
    ),
    "different trip counts": (
        "float v = 0;\nfor (uint k = 0; k <= lane; ++k) v += simd_is_first() ? 0.0f : 0.0f + 1.0f * (k < 200);\n"
        "out[i] = v * 0 + x[i];",
        X,
    ),
    "a matrix product per simdgroup": (
        "simdgroup_matrix<float, 8, 8> a(2.0f), b(3.0f), c(0.0f);\nsimdgroup_multiply_accumulate(c, a, b, c);\n"
        f"threadgroup float m[2][64];\nsimdgroup_store(c, &m[t / 32][0], 8);\n{SIMD}"
        "out[i] = m[t / 32][lane] + 0 * x[i];",
        np.tile(6 * np.eye(8, dtype=np.float32).reshape(-1)[:32], 4),
    ),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_a_correct_kernel_raises_no_alarm(bench, name, seed):
    body, want = KERNELS[name]
    bound = bench.bind(I + body, inputs={"x": X}, outputs={"out": ((N,), "float32")}, grid=N, threadgroup=64)
    checked = bench.device.check(bound, {"x": X}, time_limit=20, seed=seed)
    assert checked.reports == ()
    assert checked.complete
    np.testing.assert_array_equal(checked.outputs["out"], want)


def test_the_last_threadgroup_may_read_what_the_others_left_behind_a_fence(bench):
    source = (
        "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;\nthreadgroup int last;\n"
        "device atomic_int* count = (device atomic_int*)done;\n"
        "parts[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\n"
        "if (t == 0) {\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n"
        "  int before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);\n"
        "  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n"
        "  last = before == start[0] + 3;\n}\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "if (last && t == 0) {\n  float v = 0;\n  for (uint k = 0; k < 128; ++k) v += parts[k];\n  out[0] = v;\n}"
    )
    # The count begins with poison, as every output does.
    inputs = {"x": X, "start": np.array([0xFFD5FFD5], np.uint32).view(np.int32)}
    outputs = {"out": ((1,), "float32"), "parts": ((N,), "float32"), "done": ((1,), "int32")}
    bound = bench.bind(source, inputs=inputs, outputs=outputs, grid=N, threadgroup=32)
    for seed in (0, 1, 2):
        checked = bench.device.check(bound, inputs, time_limit=20, seed=seed)
        assert checked.reports == ()
        assert checked.outputs["out"][0] == X.sum()


def test_an_atomic_histogram_over_all_threadgroups_raises_no_alarm(bench):
    source = (
        "device atomic_int* bins = (device atomic_int*)out;\n"
        "atomic_fetch_add_explicit(&bins[thread_position_in_grid.x % 4], 1, memory_order_relaxed);"
    )
    bound = bench.bind(source, outputs={"out": ((4,), "int32")}, grid=256, threadgroup=64)
    for seed in (0, 1, 2):
        checked = bench.device.check(bound, {}, time_limit=20, seed=seed)
        assert checked.reports == ()
        # The array begins with poison, so only the differences between equal bins are known.
        assert len(set(checked.outputs["out"].tolist())) == 1
