"""What the checked mode reports, and where: one small kernel for each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest

X = {"x": np.arange(64, dtype=np.float32)}
LAUNCH = {"inputs": X, "outputs": {"out": ((64,), "float32")}, "grid": 64, "threadgroup": 64}
I = "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;\n"  # noqa: E741
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"


@pytest.fixture
def check(bench):
    """Return a function that runs one kernel in checked mode and returns what was found."""

    def run(source, *, seed=0, seconds=20.0, **launch):
        arguments = {**LAUNCH, **launch}
        bound = bench.bind(source, **arguments)
        return bench.device.check(bound, arguments["inputs"], time_limit=seconds, seed=seed)

    return run


def only(checked):
    (report,) = checked.reports
    return report


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_missing_barrier_is_a_race_between_its_two_lines(check, seed):
    source = I + "threadgroup float a[64];\na[t] = x[i];\n\nout[i] = a[63 - t];"
    report = only(check(source, seed=seed))
    assert (report.stage, {report.line, report.other_line}) == ("race", {3, 5})
    assert "data race on a[" in report.message
    assert "reads it in line 5" in report.message and "writes it in line 3" in report.message
    assert "Put threadgroup_barrier(mem_flags::mem_threadgroup) between line 3 and line 5" in report.message


def test_two_threads_that_write_one_element_race_and_the_values_are_told(check):
    report = only(check(I + "threadgroup float a[64];\na[t / 2] = x[i];\n" + BARRIER + "out[i] = a[t / 2];"))
    assert (report.stage, report.line, report.other_line) == ("race", 3, 3)
    assert "data race on a[0]: thread 0 (simdgroup 0, lane 0) writes it in line 3, thread 1" in report.message
    assert "The value was 0" in report.message and "becomes 1" in report.message


def test_writing_the_same_value_is_said_to_be_that_and_condemns_nothing(check):
    report = only(check(I + "threadgroup float a[1];\na[0] = 3;\n" + BARRIER + "out[i] = a[0];"))
    assert (report.stage, report.line, report.certain) == ("race", 3, False)
    assert "Both write the same value" in report.message


def test_a_race_that_first_writes_the_same_value_is_condemned_for_the_first_that_differs(check):
    report = only(check(I + "threadgroup float a[1];\na[0] = t < 40 ? 3 : 4;\n" + BARRIER + "out[i] = a[0];"))
    assert (report.stage, report.line, report.certain) == ("race", 3, True)
    assert "The value was 3" in report.message and "becomes 4" in report.message


def test_a_tile_that_is_filled_again_too_early_is_a_race(check):
    source = (
        I + "threadgroup float a[64];\nfloat v = 0;\nfor (int k = 0; k < 4; ++k) {\n  a[t] = x[i] + k;\n  " + BARRIER
    )
    report = only(check(source + "  v += a[63 - t];\n}\nout[i] = v;"))
    assert (report.stage, {report.line, report.other_line}) == ("race", {5, 7})
    assert "at the end of the loop" in report.message


def test_lanes_of_one_simdgroup_need_a_simdgroup_barrier(check):
    source = I + "threadgroup float a[32];\na[t] = x[i];\nout[i] = a[31 - t];"
    report = only(check(source, grid=32, threadgroup=32))
    assert (report.stage, {report.line, report.other_line}) == ("race", {3, 4})
    assert "Put simdgroup_barrier(mem_flags::mem_threadgroup) between" in report.message


def test_a_simdgroup_barrier_orders_nothing_between_simdgroups(check):
    source = I + "threadgroup float a[64];\na[t] = x[i];\nsimdgroup_barrier(mem_flags::mem_threadgroup);\n"
    report = only(check(source + "out[i] = a[63 - t];"))
    assert (report.stage, {report.line, report.other_line}) == ("race", {3, 5})
    assert "Put threadgroup_barrier" in report.message


def test_a_barrier_without_the_flag_of_device_memory_does_not_order_it(check):
    report = check(I + "out[i] = x[i];\n" + BARRIER + "float v = out[63 - i];\n").reports
    assert report == ()  # a value that nobody uses is not even read
    source = I + "other[i] = x[i];\n{barrier}out[i] = other[63 - i];"
    outputs = {"outputs": {"out": ((64,), "float32"), "other": ((64,), "float32")}}
    report = only(check(source.format(barrier=BARRIER), **outputs))
    assert (report.stage, {report.line, report.other_line}) == ("race", {2, 4})
    assert "in line 3 does not order device memory: give it mem_flags::mem_device" in report.message
    assert check(source.format(barrier=BARRIER.replace("mem_threadgroup", "mem_device")), **outputs).reports == ()


def test_threadgroups_that_write_one_element_race(check):
    report = only(check(I + "out[t] = x[i];", threadgroup=32))
    assert (report.stage, report.line, report.other_line) == ("race", 2, 2)
    assert "threadgroup (0, 0, 0)) writes it in line 2, thread 0 (simdgroup 0, lane 0; threadgroup (1, 0, 0))" in (
        report.message
    )
    assert "The value was 0 and becomes 32" in report.message
    assert "atomic operation" in report.message


def test_reading_what_another_threadgroup_writes_is_a_race(check):
    outputs = {"outputs": {"out": ((64,), "float32"), "other": ((64,), "float32")}}
    source = I + "other[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\nout[i] = other[63 - i];"
    for seed in (0, 3):
        report = only(check(source, threadgroup=32, seed=seed, **outputs))
        assert (report.stage, {report.line, report.other_line}) == ("race", {2, 4})


def test_an_atomic_and_a_plain_access_race(check):
    source = (
        I + "threadgroup atomic_int n;\nif (t == 0) atomic_store_explicit(&n, 0, memory_order_relaxed);\n" + BARRIER
    )
    source += "atomic_fetch_add_explicit(&n, 1, memory_order_relaxed);\nout[i] = *(threadgroup int*)&n;"
    report = only(check(source))
    assert (report.stage, {report.line, report.other_line}) == ("race", {5, 6})


def test_each_pair_of_lines_is_reported_once(check):
    source = I + "threadgroup float a[64];\na[t] = x[i];\nout[i] = a[63 - t] + a[t ^ 1];\na[t ^ 2] = 1;"
    pairs = [frozenset({report.line, report.other_line}) for report in check(source).reports]
    assert len(pairs) == len(set(pairs)) and frozenset({3, 4}) in pairs and frozenset({3, 5}) in pairs


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        (
            "out[i] = x[i + 1];",
            2,
            "thread 63 (simdgroup 1, lane 31) reads x[64] in line 2; the input has 64 elements (64)",
        ),
        ("\nout[i] = 0;\nout[i + 1] = x[i];", 4, "writes out[64] in line 4; the array has 64 elements"),
        ("out[i] = x[int(i) - 1];", 2, "thread 0 (simdgroup 0, lane 0) reads x[-1] in line 2"),
        (
            "threadgroup float a[64], b[64];\na[t] = 1; b[t] = 2;\n" + BARRIER + "out[i] = a[t + 1] + b[t];",
            5,
            "reads a[64] in line 5; it has 64 elements",
        ),
        ("threadgroup float a[64];\na[t + 1] = 1;\n" + BARRIER + "out[i] = 1;", 3, "writes a[64] in line 3"),
        ("threadgroup float a[64];\na[int(t) - 1] = 1;\n" + BARRIER + "out[i] = 1;", 3, "writes a[-1] in line 3"),
        ("out[i] = ((device float4*)x)[i / 4 + 1].w;", 2, "reads x[67] in line 2"),
    ],
)
def test_an_access_outside_an_array_is_reported_with_its_line(check, body, line, says):
    reports = [report for report in check(I + body).reports if report.stage == "bounds"]
    assert len(reports) == 1
    assert reports[0].line == line
    assert says in reports[0].message


def test_the_line_of_a_helper_in_the_header_is_told_as_that(check):
    header = "\nfloat at(const device float* from, uint where) {\n  return from[where];\n}"
    report = only(check(I + "out[i] = at(x, i * 2);", header=header))
    assert (report.stage, report.line, report.in_header) == ("bounds", 3, True)
    assert "in line 3 of the header" in report.message


def test_far_outside_still_names_the_line(check):
    report = check(I + "\nout[i] = x[i + 100000000];").reports[0]
    assert (report.stage, report.line) == ("bounds", 3)
    assert "reads x[100000000]" in report.message


def test_a_misaligned_vector_access_is_reported(check):
    body = "out[i] = 0;\nif (t < 8) {\n  float4 v = *(const device float4*)(x + 4 * t + 1);\n  out[t] = v.x + v.w;\n}"
    report = only(check(I + body, threadgroup=64))
    assert (report.stage, report.line) == ("misaligned", 4)
    assert "accesses 16 bytes at once at x[1] in line 4" in report.message


def test_reading_threadgroup_memory_that_nobody_wrote_is_reported(check):
    report = only(check(I + "threadgroup float a[64];\nif (t < 40)\n  a[t] = x[i];\n" + BARRIER + "out[i] = a[t];"))
    assert (report.stage, report.line) == ("uninitialised", 6)
    assert "thread 40 (simdgroup 1, lane 8) reads a[40] in line 6" in report.message


def test_what_the_threadgroup_before_wrote_counts_as_written_by_nobody(check):
    source = I + "threadgroup float a[32];\nif (threadgroup_position_in_grid.x == 0) a[t] = 1;\n" + BARRIER
    report = only(check(source + "out[i] = a[t];", threadgroup=32))
    assert (report.stage, report.line) == ("uninitialised", 5)
    assert "threadgroup (1, 0, 0)" in report.message


def test_threads_that_return_before_a_barrier_are_reported_with_both(check):
    checked = check(I + "if (i >= 40) return;\n" + BARRIER + "out[i] = 1;")
    report = only(checked)
    assert (report.stage, report.line) == ("divergence", 3)
    assert "40 threads wait" in report.message and "24 returned" in report.message
    assert not checked.complete


def test_a_simdgroup_barrier_in_a_branch_is_reported(check):
    report = only(check(I + "if (lane < 16)\n  simdgroup_barrier(mem_flags::mem_none);\n" + BARRIER + "out[i] = 1;"))
    assert (report.stage, report.line) == ("divergence", 3)
    assert "16 lanes of simdgroup 0" in report.message and "lane 16 is elsewhere" in report.message


def test_a_matrix_product_in_a_branch_is_reported(check):
    source = I + "simdgroup_matrix<float, 8, 8> a(1.0f), c(0.0f);\nif (lane < 30)\n  simdgroup_multiply(c, a, a);\n"
    report = only(check(source + BARRIER + "out[i] = c.thread_elements()[0];"))
    assert (report.stage, report.line) == ("divergence", 4)


def test_a_lane_that_reads_one_in_another_branch_is_suspected_but_not_condemned(check):
    report = only(
        check(I + "float v = x[i];\nif (lane < 16)\n  v += simd_shuffle_down(v, 8);\n" + BARRIER + "out[i] = v;")
    )
    assert (report.stage, report.line, report.certain) == ("divergence", 4, False)
    assert "lane 8 takes the value of lane 16 in line 4" in report.message


def test_a_lane_that_reads_one_which_returned_is_suspected(check):
    source = (
        "uint i = thread_position_in_grid.x;\nout[i] = 0;\nif (i >= 16) return;\nout[i] = simd_shuffle(float(i), 20);"
    )
    report = only(check(source, outputs={"out": ((32,), "float32")}, grid=32, threadgroup=32))
    assert (report.stage, report.line, report.certain) == ("divergence", 4, False)
    assert "takes the value of lane 20 in line 4, but that lane has returned or never was" in report.message


def test_an_order_of_threads_that_the_result_hangs_on_shows_between_seeds(check):
    source = I + "threadgroup float a[1];\na[0] = float(t);\n" + BARRIER + "out[i] = a[0];"
    results = {float(check(source, seed=seed).outputs["out"][0]) for seed in range(4)}
    assert len(results) > 1


def test_a_check_that_runs_out_of_time_says_so(check):
    checked = check(
        "float v = 0; for (int k = 0; k < 20000; ++k) v += x[(thread_position_in_grid.x + k) % 64];\n"
        "out[thread_position_in_grid.x % 64] += v;",
        grid=64 * 4096,
        seconds=0.3,
    )
    assert not checked.complete
    assert [report.stage for report in checked.reports] == ["race"]


def test_a_matrix_that_is_stored_past_the_end_is_reported_at_the_store(check):
    source = I + "simdgroup_matrix<float, 8, 8> m(1.0f);\nthreadgroup float a[63];\nuint stride = 8;\n\n"
    report = only(check(source + "simdgroup_store(m, a, stride);\nout[i] = 1;", grid=32, threadgroup=32))
    assert (report.stage, report.line) == ("bounds", 6)
    assert "writes a[63] in line 6; it has 63 elements" in report.message
