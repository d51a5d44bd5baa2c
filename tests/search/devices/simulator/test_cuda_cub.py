"""CUB's reductions and scans over a block or a warp: what they compute, for whom, and which barriers they need."""

from __future__ import annotations

import numpy as np
import pytest

from search.evaluation.originals import unwritten

N = 200
X = (np.sin(np.arange(N, dtype=np.float32)) * 8).astype(np.float32)
OUT = {"out": (N, "float32")}


def kernel(*lines, before=""):
    """A kernel over `N` threads whose body begins in line 4."""
    begin = ["#include <cub/cub.cuh>", before, "__global__ void k(const float* x, float* out) { int t = threadIdx.x;"]
    return "\n".join([*begin, *lines, "}"])


@pytest.fixture
def block(cuda):
    """Return a function that runs one block of `N` threads over `X` and returns what each thread writes."""

    def run(*lines, before="", size=N):
        launch = cuda.launch("k", 1, size, "x", "out")
        text = kernel(*lines, before=before)
        return cuda.run(text, launch, inputs={"x": X[:size]}, outputs={"out": (size, "float32")})["out"]

    return run


@pytest.fixture
def check(cuda):
    """Return a function that checks one block of threads over `X`."""

    def run(*lines, before="", size=N, seed=0):
        launch = cuda.launch("k", 1, size, "x", "out")
        arrays = {"inputs": {"x": X[:size]}, "outputs": {"out": (size, "float32")}}
        return cuda.check(kernel(*lines, before=before), launch, seed=seed, **arrays)

    return run


REDUCE = "typedef cub::BlockReduce<float, 200> Reduce; __shared__ typename Reduce::TempStorage storage;"
SCAN = "using Scan = cub::BlockScan<float, 200>; __shared__ Scan::TempStorage storage; float y;"
WARP = "using Warp = cub::WarpReduce<float>; __shared__ Warp::TempStorage storage[7];"
LADDER = "using Warp = cub::WarpScan<float>; __shared__ Warp::TempStorage storage[7]; float y;"
LINEAR = "struct Linear { __device__ float2 operator()(const float2& a, const float2& b) const { "
LINEAR += "return make_float2(a.x * b.x, b.x * a.y + b.y); } };"
"""Composes x -> a x + b, which doesn't commute."""


@pytest.mark.parametrize(
    ("call", "want"),
    [
        ("Sum(x[t])", X.sum()),
        ("Sum(x[t], 77)", X[:77].sum()),
        ("Reduce(x[t], cub::Max())", X.max()),
        ("Reduce(x[t], cub::Min{})", X.min()),
        ("Reduce(x[t], cub::Sum(), 33)", X[:33].sum()),
        ("Reduce(x[t], cuda::maximum<>{}, 2)", X[:2].max()),
        ("Reduce(x[t], Last())", X[-1]),
        ("Reduce(x[t], Last(), 5)", X[4]),
    ],
)
def test_a_block_reduces_to_its_first_thread_and_no_other(block, call, want):
    last = "struct Last { __device__ float operator()(float a, float b) { return b; } };"
    got = block(REDUCE, f"out[t] = Reduce(storage).{call};", before=last)
    np.testing.assert_allclose(got[0], want, rtol=1e-5)
    assert np.isnan(got[1:]).all()
    assert not unwritten(got).any()  # else it would not be compared


def test_other_threads_get_no_plausible_whole_number(block):
    declared = "typedef cub::BlockReduce<int, 200> Reduce; __shared__ typename Reduce::TempStorage storage;"
    got = block(declared, "out[t] = float(Reduce(storage).Sum(1));")
    assert got[0] == 200
    assert (got[1:] < -1e6).all()


def test_several_items_of_a_thread_are_reduced_in_their_order(block):
    first = "struct First { __device__ float operator()(float a, float b) const { return a; } };"
    got = block(
        REDUCE,
        "float items[3] = {x[t], 2 * x[t], 3 * x[t]};",
        "float sum = Reduce(storage).Sum(items);",
        "__syncthreads();",
        "float first = Reduce(storage).Reduce(items, First());",
        "if (t == 0) { out[0] = sum; out[1] = first; } else if (t > 1) out[t] = 0;",
        before=first,
    )
    np.testing.assert_allclose(got[:2], [6 * X.sum(), X[0]], rtol=1e-5)


def test_the_best_of_pairs_has_the_smaller_key_where_values_are_equal(block):
    got = block(
        "using Pair = cub::KeyValuePair<int, float>;",
        "using Reduce = cub::BlockReduce<Pair, 200>;",
        "__shared__ union { Reduce::TempStorage most; Reduce::TempStorage least; } storage;",
        "Pair own = {t, float((t * 7) % 10)};",
        "Pair most = Reduce(storage.most).Reduce(own, cub::ArgMax());",
        "__syncthreads();",
        "Pair least = Reduce(storage.least).Reduce(own, cub::ArgMin());",
        "if (t == 0) { out[0] = most.key; out[1] = most.value; out[2] = least.key; out[3] = least.value; }",
        "else if (t > 3) out[t] = 0;",
    )
    np.testing.assert_array_equal(got[:4], [7, 9, 0, 0])


@pytest.mark.parametrize(
    ("call", "want"),
    [
        ("InclusiveSum(x[t], y)", np.cumsum(X)),
        ("ExclusiveSum(x[t], y)", np.cumsum(X) - X),
        ("InclusiveScan(x[t], y, cub::Max())", np.maximum.accumulate(X)),
        ("ExclusiveScan(x[t], y, 3, cub::Max())", np.maximum(np.append(3, np.maximum.accumulate(X)[:-1]), 3)),
        ("ExclusiveScan(x[t], y, 3.f, cub::Sum())", 3 + np.cumsum(X) - X),
    ],
)
def test_a_block_scans(block, call, want):
    got = block(SCAN, f"Scan(storage).{call};", "out[t] = y;")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "call", ["InclusiveSum(x[t], y, all)", "ExclusiveSum(x[t], y, all)", "InclusiveScan(x[t], y, cub::Sum(), all)",
             "ExclusiveScan(x[t], y, 100.f, cub::Sum(), all)", "ExclusiveScan(x[t], y, cub::Sum(), all)"]
)  # fmt: skip
def test_every_thread_learns_what_the_block_has_together(block, call):
    got = block(SCAN, f"float all; Scan(storage).{call};", "out[t] = all;")
    np.testing.assert_allclose(got, X.sum(), rtol=1e-4)


def test_an_exclusive_scan_without_a_beginning_gives_the_first_thread_nothing(block):
    got = block(SCAN, "Scan(storage).ExclusiveScan(x[t], y, cub::Max());", "out[t] = y;")
    assert np.isnan(got[0])
    np.testing.assert_array_equal(got[1:], np.maximum.accumulate(X)[:-1])


def test_pairs_are_scanned_in_order_with_several_items_in_place(block):
    got = block(
        "using Scan = cub::BlockScan<float2, 200>; __shared__ Scan::TempStorage storage;",
        "float2 items[2] = {make_float2(0.9f, x[t]), make_float2(0.5f, 1)};",
        "Scan(storage).InclusiveScan(items, items, Linear());",
        "out[t] = items[1].y;",
        before=LINEAR,
    )
    upto, want = 0.0, []
    for value in X:
        upto = 0.5 * (0.9 * upto + value) + 1
        want.append(upto)
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_a_callback_puts_its_value_before_the_block(block):
    running = "struct Running { float total; __device__ float operator()(float all) { "
    running += "float was = total; total += all; return was; } };"
    got = block(
        SCAN,
        "Running running = {1000.f};",
        "Scan(storage).InclusiveSum(x[t], y, running);",
        "__syncthreads();",
        "float z; Scan(storage).ExclusiveSum(x[t], z, running);",
        "out[t] = t < 100 ? y : z;",
        before=running,
    )
    sums = np.cumsum(X)
    want = np.where(np.arange(N) < 100, 1000 + sums, 1000 + X.sum() + sums - X)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "want"),
    [("Sum(x[t])", [X[:32].sum(), X[160:192].sum()]), ("Sum(x[t], 9)", [X[:9].sum(), X[160:169].sum()]),
     ("Reduce(x[t], cub::Max())", [X[:32].max(), X[160:192].max()])],
)  # fmt: skip
def test_a_warp_reduces_to_its_first_lane(block, call, want):
    got = block(WARP, f"out[t] = Warp(storage[t / 32]).{call};", size=192)
    np.testing.assert_allclose(got[[0, 160]], want, rtol=1e-5)
    assert np.isnan(np.delete(got, np.arange(0, 192, 32))).all()


def test_logical_warps_are_parts_of_a_warp(block):
    got = block(
        "using Warp = cub::WarpScan<float, 8>; __shared__ Warp::TempStorage storage[24]; float y, all;",
        "Warp(storage[t / 8]).ExclusiveSum(x[t], y, all);",
        "out[t] = y + 1000 * all;",
        size=192,
    )
    parts = X[:192].reshape(24, 8)
    want = np.cumsum(parts, axis=1) - parts + 1000 * parts.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want.ravel(), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("size", [32, 192])
def test_storage_that_is_used_again_without_a_barrier_is_a_race(check, size):
    declared = REDUCE.replace("200", str(size))
    lines = (declared, "float a = Reduce(storage).Sum(x[t]);", "float b = Reduce(storage).Sum(2 * x[t]);")
    stores = "if (t == 0) out[0] = a + b; else out[t] = 0;"
    reports = check(*lines, stores, size=size).reports
    assert {report.stage for report in reports} == {"race"}
    assert all(report.certain and {report.line, report.other_line} == {5, 6} for report in reports)
    assert "storage" in reports[0].message and "__sync" in reports[0].message
    assert check(lines[0], lines[1], "__syncthreads();", lines[2], stores, size=size).reports == ()


def test_scans_too_need_a_barrier_between(check):
    lines = (SCAN + " float z;", "Scan(storage).InclusiveSum(x[t], y);", "Scan(storage).ExclusiveSum(2 * x[t], z);")
    reports = check(*lines, "out[t] = y + z;").reports
    assert {report.stage for report in reports} == {"race"}
    assert check(*lines[:2], "__syncthreads();", lines[2], "out[t] = y + z;").reports == ()


def test_warps_that_share_one_storage_race(check):
    lines = ("using Warp = cub::WarpReduce<float>; __shared__ Warp::TempStorage storage;",
             "float sum = Warp(storage).Sum(x[t]);", "if (t % 32 == 0) out[t] = sum; else out[t] = 0;")  # fmt: skip
    assert "race" in {report.stage for report in check(*lines, size=192).reports}


def test_fewer_threads_than_the_type_says_are_values_that_nobody_wrote(check):
    lines = (REDUCE, "float sum = Reduce(storage).Sum(x[t]);", "if (t == 0) out[0] = sum; else out[t] = 0;")
    report = check(*lines, size=100).reports[0]
    assert (report.stage, report.line) == ("uninitialised", 5)


def test_a_thread_that_does_not_come_is_told(check):
    lines = (REDUCE, "float sum = 0;", "if (t < 150) sum = Reduce(storage).Sum(x[t], 150);", "out[t] = t ? 0 : sum;")
    report = check(*lines).reports[0]
    assert (report.stage, report.line) == ("divergence", 6)


@pytest.mark.parametrize("name", ["BlockLoad<float, 64, 1>", "BlockRadixSort<float, 64, 1>", "DeviceReduce"])
def test_the_rest_of_cub_is_refused_by_name(cuda, name):
    text = kernel(f"typedef cub::{name} Other;", "out[t] = x[t];")
    fault = cuda.fault(text, cuda.launch("k", 1, N, "x", "out"), inputs={"x": X}, outputs=OUT)
    assert (fault.stage, fault.line) == ("compile", 4)
    assert f"cub::{name.partition('<')[0]}" in fault.message


def test_a_helper_that_is_called_twice_holds_its_own_storage(block):
    helper = """__device__ float total(float v) {
  using Reduce = cub::BlockReduce<float, 200>; __shared__ Reduce::TempStorage room; __shared__ float all;
  float sum = Reduce(room).Sum(v); if (threadIdx.x == 0) all = sum; __syncthreads(); return all; }"""
    got = block("float a = total(x[t]);", "float b = total(x[t] - a / 200);", "out[t] = a + 0 * b;",
                before=helper.replace("\n", " "))  # fmt: skip
    np.testing.assert_allclose(got, X.sum(), rtol=1e-4)


def test_two_calls_of_a_helper_are_two_barriers(check):
    helper = "typedef cub::BlockReduce<float, 200> Own; __device__ float total(float v) { "
    helper += "__shared__ Own::TempStorage room; return Own(room).Sum(v); }"
    report = check("float s = t < 96 ? total(x[t])", "  : total(-x[t]);", "out[t] = s;", before=helper).reports[0]
    assert report.stage == "divergence"
    assert "called from line 4" in report.message and "called from line 5" in report.message
