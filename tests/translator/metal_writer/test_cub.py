"""CUB's reductions and scans: what their Metal computes, against the original on the simulator where it says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate
from translator.launch_plan import LaunchPlan

N = 200
X = (np.sin(np.arange(N, dtype=np.float32)) * 8).astype(np.float32)


def kernel(body: str, helpers: str = "") -> str:
    return f"""\
#include <cub/cub.cuh>
{helpers}
__global__ void k(const float* x, float* out) {{
  int t = threadIdx.x;
  float v = x[t];
  {body}
}}
"""


def steps(size: int = N, dtype: str = "float32") -> LaunchPlan:
    return plan([launch("k", "1", str(size), "x, out")], {"x": f"in {dtype} {size}", "out": f"out float32 {size}"})


REDUCE = "typedef cub::BlockReduce<float, 200> Reduce; __shared__ typename Reduce::TempStorage storage;"
SCAN = "using Scan = cub::BlockScan<float, 200>; __shared__ Scan::TempStorage storage; float y;"
STORE = "if (t == 0) out[0] = s; else out[t] = 0;"
LAST = "struct Last { __device__ float operator()(const float& a, const float& b) const { return b; } };"


@pytest.mark.parametrize(
    ("call", "want"),
    [
        ("Sum(v)", X.sum()),
        ("Sum(v, 77)", X[:77].sum()),
        ("Reduce(v, cub::Max())", X.max()),
        ("Reduce(v, cub::Min{})", X.min()),
        ("Reduce(v, cub::Sum(), 33)", X[:33].sum()),
        ("Reduce(v, cub::Min(), 3)", X[:3].min()),
        ("Reduce(v, cuda::maximum<>{}, blockDim.x)", X.max()),
        ("Reduce(v, Last())", X[-1]),
        ("Reduce(v, Last{}, 70)", X[69]),
        ("Sum(t < 3)", 3),
    ],
)
def test_a_block_is_reduced(run: Runner, call: str, want: float) -> None:
    made = translate(kernel(f"{REDUCE} float s = Reduce(storage).{call}; {STORE}", LAST), steps())
    np.testing.assert_allclose(run(made, {"x": X})["out"][0], want, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "want"),
    [
        ("InclusiveSum(v, y)", np.cumsum(X)),
        ("ExclusiveSum(v, y)", np.cumsum(X) - X),
        ("InclusiveScan(v, y, cub::Max())", np.maximum.accumulate(X)),
        ("ExclusiveScan(v, y, 3, cub::Max())", np.maximum(np.append(3, np.maximum.accumulate(X)[:-1]), 3)),
        ("ExclusiveScan(v, y, 3.f, cub::Sum())", 3 + np.cumsum(X) - X),
        ("InclusiveScan(v, y, Last())", X),
        ("InclusiveSum(v, out[t]); y = out[t]", np.cumsum(X)),
    ],
)
def test_a_block_is_scanned(run: Runner, call: str, want: np.ndarray) -> None:
    made = translate(kernel(f"{SCAN} Scan(storage).{call}; out[t] = y;", LAST), steps())
    np.testing.assert_allclose(run(made, {"x": X})["out"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["InclusiveSum(v, y, all)", "ExclusiveSum(v, y, all)", "InclusiveScan(v, y, cub::Sum(), all)",
             "ExclusiveScan(v, y, 100.f, cub::Sum(), all)", "ExclusiveScan(v, y, cub::Sum(), all)"]
)  # fmt: skip
def test_every_thread_learns_what_the_block_has_together(run: Runner, call: str) -> None:
    made = translate(kernel(f"{SCAN} float all; Scan(storage).{call}; out[t] = all;"), steps())
    np.testing.assert_allclose(run(made, {"x": X})["out"], X.sum(), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 96, 1024])
def test_blocks_of_any_size_are_whole(run: Runner, size: int) -> None:
    x = np.arange(1, size + 1, dtype=np.float32)
    body = f"""\
using Reduce = cub::BlockReduce<int, {size}>; using Scan = cub::BlockScan<int, {size}>;
  __shared__ union {{ Reduce::TempStorage reduce; typename Scan::TempStorage scan; }} both;
  int most = Reduce(both.reduce).Reduce(int(v), cub::Max()), y, all;
  __syncthreads();
  Scan(both.scan).ExclusiveSum(int(v), y, all);
  out[t] = t == 0 ? most + 2000 * (all % 1000) : y;"""
    made = translate(kernel(body), steps(size))
    want = np.cumsum(x) - x
    want[0] = size + 2000 * (int(x.sum()) % 1000)
    np.testing.assert_array_equal(run(made, {"x": x})["out"], want)


@pytest.mark.parametrize(
    ("kind", "value", "scale"),
    [("__half", "__float2half(v)", 1), ("__nv_bfloat16", "__float2bfloat16(v)", 1), ("int", "int(v)", 1),
     ("unsigned", "unsigned(v)", 1), ("short", "short(v)", 1), ("long long", "1099511627776LL * int(v)", 2.0**40)],
)  # fmt: skip
def test_values_of_each_type_are_added_and_scanned(run: Runner, kind: str, value: str, scale: float) -> None:
    x = (np.arange(100) % 3).astype(np.float32)
    body = f"""\
typedef cub::BlockReduce<{kind}, 100> Reduce; typedef cub::BlockScan<{kind}, 100> Scan;
  __shared__ Reduce::TempStorage room; __shared__ Scan::TempStorage scans;
  {kind} own = {value}, y;
  {kind} s = Reduce(room).Sum(own);
  Scan(scans).InclusiveSum(own, y);
  out[t] = t == 0 ? float(s) : float(y);"""
    made = translate(kernel(body), steps(100))
    got = run(made, {"x": x})["out"] / np.float32(scale)
    np.testing.assert_array_equal(got, np.append(x.sum(), np.cumsum(x)[1:]))


LINEAR = """struct Linear { __device__ __forceinline__ float2 operator()(const float2& a, const float2& b) const {
  return make_float2(a.x * b.x, b.x * a.y + b.y); } };"""
"""Composes x -> a x + b, which doesn't commute."""


def linear(x: np.ndarray) -> np.ndarray:
    upto, found = 0.0, []
    for value in x:
        upto = 0.9 * upto + value
        found.append(upto)
    return np.array(found)


def test_a_block_of_two_dimensions_is_reduced_by_its_numbers(run: Runner) -> None:
    body = """\
typedef cub::BlockReduce<float, 10, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 20> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  int at = threadIdx.y * 10 + t;
  float s = Reduce(storage).Reduce(x[at], Last(), 150); out[at] = at == 0 ? s : 0.f;"""
    launches = plan([launch("k", "1", "10;20", "x, out")], {"x": "in float32 200", "out": "out float32 200"})
    assert run(translate(kernel(body, LAST), launches), {"x": X})["out"][0] == X[149]


def test_a_size_that_counts_stays_the_same_for_all_threads(run: Runner) -> None:
    body = f"""{REDUCE} int n = 150; float s = 0;
  for (int i = 0; i < n; i += 100) {{ s += Reduce(storage).Sum(v, n); __syncthreads(); }} {STORE}"""
    np.testing.assert_allclose(run(translate(kernel(body), steps()), {"x": X})["out"][0], 2 * X[:150].sum(), rtol=1e-5)


def test_functors_over_pairs_are_scanned_in_order(run: Runner) -> None:
    body = """\
using Scan = cub::BlockScan<float2, 200, cub::BLOCK_SCAN_WARP_SCANS>; __shared__ Scan::TempStorage storage;
  float2 y, all; Scan(storage).InclusiveScan(make_float2(0.9f, v), y, Linear(), all); out[t] = y.y;"""
    np.testing.assert_allclose(run(translate(kernel(body, LINEAR), steps()), {"x": X})["out"], linear(X), rtol=1e-4)


@pytest.mark.parametrize("scan", ["Inclusive", "Exclusive"])
def test_items_of_a_thread_follow_those_of_the_one_before(run: Runner, scan: str) -> None:
    body = f"""\
using Scan = cub::BlockScan<float2, 100>; __shared__ Scan::TempStorage storage;
  float2 items[2];
  for (int i = 0; i < 2; ++i) items[i] = make_float2(0.9f, x[2 * t + i]);
  Linear op; float2 begin = make_float2(1.f, 0.f);
  Scan(storage).{scan}Scan(items, items, {"begin, " if scan == "Exclusive" else ""}op);
  for (int i = 0; i < 2; ++i) out[2 * t + i] = items[i].y;"""
    launches = plan([launch("k", "1", "100", "x, out")], {"x": "in float32 200", "out": "out float32 200"})
    want = linear(X) if scan == "Inclusive" else np.append(0, linear(X)[:-1])
    got = run(translate(kernel(body, LINEAR).replace("float v = x[t];", ""), launches), {"x": X})["out"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_callback_carries_what_came_before_from_tile_to_tile(run: Runner) -> None:
    helpers = """\
struct Running {
  float total;
  __device__ float operator()(float all) { float was = total; total += all; return was; }
};"""
    body = """\
using Scan = cub::BlockScan<float, 64>; __shared__ Scan::TempStorage storage;
  Running running; running.total = 100.f;
  for (int base = 0; base < 192; base += 64) {
    float y;
    Scan(storage).InclusiveSum(x[base + t], y, running);
    out[base + t] = y;
    __syncthreads();
  }"""
    launches = plan([launch("k", "1", "64", "x, out")], {"x": "in float32 192", "out": "out float32 192"})
    got = run(translate(kernel(body, helpers), launches), {"x": X[:192]})["out"]
    np.testing.assert_allclose(got, 100 + np.cumsum(X[:192]), rtol=1e-5)


def test_the_best_of_pairs_is_found_with_its_key(run: Runner) -> None:
    body = """\
using Pair = cub::KeyValuePair<int, float>; typedef cub::BlockReduce<Pair, 200> Reduce;
  __shared__ typename Reduce::TempStorage storage; __shared__ int best;
  cub::ArgMax arg_max;
  Pair own; own.key = t; own.value = v;
  Pair nothing(1000, -1.f);
  own = arg_max(own, nothing);
  const Pair most = Reduce(storage).Reduce(own, arg_max);
  if (t == 0) best = most.key;
  __syncthreads();
  const Pair least = Reduce(storage).Reduce(own, cub::ArgMin());
  if (t == 0) { out[0] = best; out[1] = least.key; } else if (t > 1) out[t] = 0;"""
    got = run(translate(kernel(body), steps()), {"x": X})["out"]
    np.testing.assert_array_equal(got[:2], [X.argmax(), 1000])


def test_pairs_are_known_where_the_file_ends_with_a_comment(run: Runner) -> None:
    body = """\
typedef cub::BlockReduce<cub::KeyValuePair<int, float>, 200> Reduce; __shared__ Reduce::TempStorage storage;
  cub::KeyValuePair<int, float> own = {t, v};
  own = Reduce(storage).Reduce(own, cub::ArgMin()); out[t] = t == 0 ? own.key : 0;"""
    made = translate(kernel(body) + "// the end\n", steps())
    assert run(made, {"x": X})["out"][0] == X.argmin()


def test_structs_of_the_source_go_from_lane_to_lane_by_their_members(run: Runner) -> None:
    helpers = """\
struct MD { float m; float d; };
struct Merge {
  __device__ MD operator()(MD a, MD b) const {
    bool larger = a.m > b.m;
    MD big = larger ? a : b, small = larger ? b : a;
    MD result;
    result.d = big.d + small.d * __expf(small.m - big.m);
    result.m = big.m;
    return result;
  }
};"""
    body = """\
typedef cub::BlockReduce<MD, 200> Reduce; __shared__ typename Reduce::TempStorage storage;
  MD own = {v, 1.f};
  MD total = Reduce(storage).Reduce(own, Merge());
  if (t == 0) { out[0] = total.m; out[1] = total.d; } else if (t > 1) out[t] = 0;"""
    got = run(translate(kernel(body, helpers), steps()), {"x": X})["out"]
    np.testing.assert_allclose(got[:2], [X.max(), np.exp(X - X.max()).sum()], rtol=1e-4)


PARTS = X[:192].reshape(6, 32)
EIGHTS = X[:192].reshape(24, 8)


def first_lanes(parts: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.zeros(parts.shape, np.float32)
    found[:, 0] = values
    return found.ravel()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "call", "want"),
    [
        (32, "Sum(v)", first_lanes(PARTS, PARTS.sum(1))),
        (32, "Sum(v, 9)", first_lanes(PARTS, PARTS[:, :9].sum(1))),
        (32, "Reduce(v, cub::Max())", first_lanes(PARTS, PARTS.max(1))),
        (32, "Reduce(v, Last(), 5)", first_lanes(PARTS, PARTS[:, 4])),
        (8, "Reduce(v, cub::Min())", first_lanes(EIGHTS, EIGHTS.min(1))),
        (8, "Reduce(v, Last())", first_lanes(EIGHTS, EIGHTS[:, 7])),
    ],
)
def test_a_warp_is_reduced(run: Runner, width: int, call: str, want: np.ndarray) -> None:
    body = f"""\
using Warp = cub::WarpReduce<float, {width}>; __shared__ typename Warp::TempStorage storage[192 / {width}];
  float s = Warp(storage[t / {width}]).{call}; out[t] = t % {width} == 0 ? s : 0.f;"""
    made = translate(kernel(body, LAST), steps(192))
    assert "storage" not in made.passes[0].source
    np.testing.assert_allclose(run(made, {"x": X[:192]})["out"], want, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "call", "want"),
    [
        (32, "InclusiveSum(v, y)", np.cumsum(PARTS, 1)),
        (32, "ExclusiveSum(v, y)", np.cumsum(PARTS, 1) - PARTS),
        (8, "ExclusiveSum(v, y)", np.cumsum(EIGHTS, 1) - EIGHTS),
        (32, "InclusiveScan(v, y, cub::Max())", np.maximum.accumulate(PARTS, 1)),
        (8, "InclusiveScan(v, y, Last())", EIGHTS),
        (32, "InclusiveSum(v, z, y)", np.repeat(PARTS.sum(1), 32)),
    ],
)
def test_a_warp_is_scanned(run: Runner, width: int, call: str, want: np.ndarray) -> None:
    body = f"""\
using Warp = cub::WarpScan<float, {width}>; __shared__ typename Warp::TempStorage storage[192 / {width}];
  float y, z; Warp(storage[t / {width}]).{call}; out[t] = y;"""
    made = translate(kernel(body, LAST), steps(192))
    np.testing.assert_allclose(run(made, {"x": X[:192]})["out"], want.ravel(), rtol=1e-3, atol=1e-4)


def test_functions_with_storage_of_their_own_or_of_the_caller(run: Runner) -> None:
    helpers = """\
using namespace cub;
typedef BlockReduce<float, 200> Reduce;
using AddOp = cub::Sum;
__device__ float total(float v) {
  __shared__ typename Reduce::TempStorage room;
  __shared__ float all;
  float sum = Reduce(room).Sum(v);
  if (threadIdx.x == 0) all = sum;
  __syncthreads();
  return all;
}
template <typename T> __device__ T largest(T v, typename Reduce::TempStorage& room) {
  Reduce reduce(room);
  return reduce.Reduce(v, cub::Max());
}"""
    body = """\
__shared__ typename Reduce::TempStorage room;
  AddOp add;
  float mean = total(v) / 200;
  float most = largest(v - mean, room);
  __syncthreads();
  float sum = Reduce(room).Reduce(v - mean, add);
  if (t == 0) { out[0] = most; out[1] = sum; } else if (t > 1) out[t] = mean;"""
    got = run(translate(kernel(body, helpers), steps()), {"x": X})["out"]
    mean = X.mean()
    np.testing.assert_allclose(got[:3], [(X - mean).max(), 0, mean], rtol=1e-4, atol=1e-4)


def test_types_that_a_traits_struct_names(run: Runner) -> None:
    helpers = """\
template <int kThreads, typename T> struct Traits { using scan_t = T; using ScanT = cub::BlockScan<scan_t, kThreads>; };
using Own = Traits<200, float>;"""
    body = """\
__shared__ typename Own::ScanT::TempStorage storage;
  float y; typename Own::ScanT(storage).InclusiveSum(v, y); out[t] = y;"""
    got = run(translate(kernel(body, helpers), steps()), {"x": X})["out"]
    np.testing.assert_allclose(got, np.cumsum(X), rtol=1e-4, atol=1e-4)


def test_functors_that_a_function_is_given(run: Runner) -> None:
    helpers = (
        LAST
        + """
template <typename T, typename Op> __device__ T reduced(T v, Op op) {
  using Reduce = cub::BlockReduce<T, 200>;
  __shared__ typename Reduce::TempStorage room;
  return Reduce(room).Reduce(v, op);
}"""
    )
    made = translate(kernel(f"float s = reduced(v, Last()); {STORE}", helpers), steps())
    assert run(made, {"x": X})["out"][0] == X[-1]


def test_threads_that_share_an_aggregate_may_branch_on_it(run: Runner) -> None:
    body = f"{SCAN} float all; Scan(storage).InclusiveSum(v, y, all); out[t] = all > 1e6f ? 0.f : y;"
    got = run(translate(kernel(body), steps()), {"x": X})["out"]
    np.testing.assert_allclose(got, np.cumsum(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("typedef cub::BlockLoad<float, 200, 1> Load; __shared__ Load::TempStorage s; float y[1]; Load(s).Load(x, y);",
         "'cub::BlockLoad' has no translation: load with a loop"),
        ("typedef cub::BlockRadixSort<float, 200, 1> Sort; __shared__ Sort::TempStorage s; Sort(s).Sort(v);",
         "'cub::BlockRadixSort' has no translation: sort with mx.sort"),
        (REDUCE.replace("float", "double") + " double s = Reduce(storage).Sum(v); " + STORE, "'double'"),
        (REDUCE + " float s = Reduce(storage).Reduce(v, [](float a, float b) { return a + b; }); " + STORE,
         "is not known as an operation on two values"),
        (REDUCE + " float s = 0; if (t < 64) s = Reduce(storage).Sum(v, 64); " + STORE,
         "a barrier in a branch that threads take differently"),
        (SCAN + " float& other = out[t]; other = 0; Scan(storage).InclusiveSum(v, other);", "which is not a local"),
        ("using Warp = cub::WarpReduce<float, 12>; __shared__ Warp::TempStorage s; out[t] = Warp(s).Sum(v);",
         "of 12 threads"),
        ("struct Room { cub::BlockReduce<float, 200>::TempStorage reduce; float sum; }; __shared__ Room room;",
         "not known"),
        ("typedef cub::BlockReduce<float, 200> Reduce; extern __shared__ char raw[]; "
         "Reduce::TempStorage& s = *reinterpret_cast<Reduce::TempStorage*>(raw); out[t] = Reduce(s).Sum(v);",
         "'Reduce::TempStorage' is not known as the storage"),
        ("float s = __cub_BlockReduce_Sum<float, 200>(); " + STORE, "is not known"),
        (REDUCE + " float s = Reduce(storage).Sum(); " + STORE, "should have 1 or 2 arguments"),
        ("using Warp = cub::WarpReduce<float>; __shared__ Warp::TempStorage s; Warp(s).HeadSegmentedSum(v, t);",
         "HeadSegmentedSum"),
    ],
)  # fmt: skip
def test_what_has_no_correct_translation_is_refused_with_the_reason(body: str, reason: str) -> None:
    assert any(reason in said for said in refusals(kernel(body), steps())), refusals(kernel(body), steps())
