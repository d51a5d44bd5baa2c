"""Operations of one place that are several: helpers called from several places, and two operations in one line.

In each kernel lanes go different ways, so what hardware combines is worked out from which lanes stand where.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from search.devices.simulator.calls import calls_of
from search.devices.simulator.dialect import translate
from search.devices.simulator.unit import unit_of

LAUNCH = {"outputs": {"out": ((32,), "float32")}, "grid": 32, "threadgroup": 32}
LANE = "uint lane = thread_index_in_simdgroup;\n"
HALVES = [16.0] * 16 + [1600.0] * 16  # sixteen ones, sixteen hundreds


def noted(header: str, source: str = "") -> str:
    """Return the header as it is compiled, for what only calls change."""
    return translate(header, in_kernel=False, calls=calls_of(header, source))


REDUCE = "float reduce(float x) {\n    return simd_sum(x);\n}\n"


@pytest.mark.parametrize(
    ("header", "source"),
    [
        (REDUCE, "float r;\nif (lane < 16) r = reduce(1.0f); else r = reduce(100.0f);\nout[lane] = r;"),
        (REDUCE, "out[lane] = lane < 16 ? reduce(1) : reduce(100);"),
        (
            "#define SUM(x) simd_sum(x)\nfloat reduce(float x) { return SUM(x); }\n",
            "out[lane] = lane < 16 ? reduce(1) : reduce(100);",
        ),
        (
            f"{REDUCE}#define REDUCE(x) reduce(x)\n",
            "out[lane] = lane < 16 ? REDUCE(1) : REDUCE(100);",
        ),
        (
            f"{REDUCE}float twice(float x) {{ return reduce(x); }}\n",  # one call in the text, two ways to it
            "if (lane < 16) out[lane] = twice(1);\nelse out[lane] = twice(100);",
        ),
        (
            "template <typename T, int N>\nT reduce(T x) { if constexpr (N > 1) return reduce<T, N / 2>(x);"
            " else return simd_sum(x); }\n",
            "out[lane] = lane < 16 ? reduce<float, 4>(1) : reduce<float, 4>(100);",
        ),
        (
            "float reduce(int x) { return simd_sum(float(x)); }\nfloat reduce(float x) { return simd_sum(x); }\n",
            "out[lane] = lane < 16 ? reduce(1) : reduce(100.0f);",
        ),
        (
            "float reduce(float x);\nfloat outer(float x) { return reduce(x); }\nfloat reduce(float x) {"
            " return simd_sum(x); }\n",
            "out[lane] = lane < 16 ? reduce(1) : outer(100);",
        ),
        (
            "struct Sum {\n  float of(float x) const { return simd_sum(x); }\n"
            "  float operator()(float x) { return simd_sum(x); }\n};\n",
            "Sum sum;\nfloat r = lane < 16 ? sum.of(1) : sum.of(100);\nout[lane] = lane < 16 ? r : sum(100);",
        ),
        (
            "struct Sum { float of(float x); };\nfloat Sum::of(float x) { return simd_sum(x); }\n",
            "Sum sum;\nout[lane] = lane < 16 ? sum.of(1) : sum.of(100);",
        ),
        ("", "auto reduce = [&](float x) { return simd_sum(x); };\nout[lane] = lane < 16 ? reduce(1) : reduce(100);"),
        ("", "auto reduce = [&] { return simd_sum(lane < 16 ? 1.0f : 100.0f); };\n"
             "out[lane] = lane < 16 ? reduce() : reduce();"),
        ("float reduce(void) { return simd_sum(simd_is_first() ? 0.0f : 0.0f) + float(simd_all(true)); }\n",
         "float a = lane < 16 ? reduce() : reduce();\nout[lane] = simd_sum(a) == 32 ? (lane < 16 ? 16 : 1600) : 0;"),
        ("", "out[lane] = simd_sum(1.0f) * 0 + (lane < 16 ? simd_sum(1.0f) : simd_sum(100.0f));"),
        (
            "template <typename F> float apply(F f, float x) { return f(x); }\n",
            "out[lane] = lane < 16 ? apply([](float x) { return simd_sum(x); }, 1)"
            " : apply([](float x) { return simd_sum(x); }, 100);",
        ),
    ],
)  # fmt: skip
def test_each_call_is_a_place_of_its_own(bench, header, source):
    assert bench.run(LANE + source, header=header, **LAUNCH)["out"].tolist() == HALVES


def test_arguments_that_call_the_same_helper_come_before_it(bench):
    # Lanes below 16 sum twice: 16 ones, then with all others; the others wait for them at the outer call.
    source = "out[lane] = reduce(lane < 16 ? reduce(1) : 1);"
    assert bench.run(LANE + source, header=REDUCE, **LAUNCH)["out"].tolist() == [16 * 16 + 16] * 32


def test_a_call_after_a_branch_is_one_for_lanes_that_came_both_ways(bench):
    # What lanes did in one branch only leaves no mark on what they do together.
    source = "float a = 0;\nif (lane % 2) a = reduce(1);\nout[lane] = reduce(1) + a;"
    assert bench.run(LANE + source, header=REDUCE, **LAUNCH)["out"].tolist() == [32, 48] * 16


def test_the_earliest_call_goes_first_whatever_line_its_operation_has(bench):
    # `late` stands before `early` in the header, but is called after it: lanes below 8 must catch up with the others.
    header = "float late(float x) { return simd_sum(x); }\nfloat early(float x) { return simd_sum(x); }\n"
    source = """
    float a = 0;
    if (lane < 8) a = early(1);
    out[lane] = late(1) + a + (lane > 32 ? early(1) + late(1) : 0);
    """
    assert bench.run(LANE + source, header=header, **LAUNCH)["out"].tolist() == [40] * 8 + [32] * 24


def test_a_helper_that_is_called_once_waits_for_those_that_come_from_another_branch(bench):
    # 16 lanes have 16, the others 31, and all add up: 16 * 16 + 16 * 31.
    source = """
    float a;
    if (lane < 16) a = simd_sum(1.0f);
    else a = simd_max(float(lane));
    out[lane] = reduce(a);
    """
    assert bench.run(LANE + source, header=REDUCE, **LAUNCH)["out"].tolist() == [752] * 32


def test_a_barrier_in_a_helper_is_another_with_each_call(bench):
    header = "void sync() {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n}\n"
    right = "sync();\nsync();\nout[thread_position_in_threadgroup.x] = 1;"
    assert bench.run(right, header=header, **LAUNCH)["out"].tolist() == [1] * 32
    fault = bench.fault(
        "uint i = thread_position_in_threadgroup.x;\nif (i < 16)\n    sync();\nelse\n    sync();\nout[i] = 1;",
        header=header,
        **LAUNCH,
    )
    assert (fault.stage, fault.line, fault.in_header) == ("divergence", 2, True)
    assert "thread 0 of the threadgroup at the one in line 2 of the header, called from line 3" in fault.message
    assert "thread 16 at the one in line 2 of the header, called from line 5" in fault.message


def test_a_race_in_a_helper_names_the_calls(bench):
    header = "void put(threadgroup float* t, uint i) {\n    t[i] += 1;\n}\n"
    source = """threadgroup float t[33];
uint i = thread_position_in_threadgroup.x;
t[i] = 0; t[32] = 0;
threadgroup_barrier(mem_flags::mem_threadgroup);
put(t, i);
put(t, i + 1);
out[i] = t[0];
"""
    bound = bench.bind(source, header=header, **LAUNCH)
    reports = bench.device.check(bound, {}, time_limit=20).reports
    race = next(report for report in reports if report.stage == "race" and report.in_header and report.other_in_header)
    assert (race.line, race.other_line) == (2, 2)
    assert "in line 2 of the header, called from line 5" in race.message
    assert "in line 2 of the header, called from line 6" in race.message
    assert "between line 5 and line 6" in race.message


def test_a_helper_with_one_call_or_no_operation_is_left_as_it_is():
    assert noted(REDUCE, "reduce(1);") == REDUCE
    square = "float square(float x) { return x * x; }\n"
    assert noted(square, "square(1) + square(2);") == square


@pytest.mark.parametrize(
    "header",
    [
        "template <typename... T> float reduce(T... x) { return simd_sum((x + ...)); }\n",
        "constexpr float reduce(float x) { return simd_sum(x); }\n",
    ],
)
def test_a_helper_that_can_take_no_parameter_more_is_left_as_it_is(header):
    assert noted(header, "reduce(1) + reduce(2);") == header


def test_a_helper_that_is_handed_on_by_name_is_left_as_it_is():
    assert noted(REDUCE, "reduce(1) + reduce(2) + apply(reduce, 3);") == REDUCE


def test_a_default_is_given_once():
    header = "float f(float x, int n = 2);\nfloat f(float x, int n) { return simd_sum(x); }\n"
    text = re.sub(r"\s+", " ", noted(header, "f(1) + f(2);"))
    assert "float f(float x, int n = 2, KSR_CALLED);" in text
    assert "float f(float x, int n, ksr_called ksr_at) { ksr_call ksr_in(ksr_at.place); return" in text


def test_a_specialization_has_no_default():
    header = (
        "template <typename T> T f(T x) { return simd_sum(x); }\ntemplate <> float f(float x) { return simd_max(x); }\n"
    )
    assert noted(header, "f(1) + f(2.0f);").count("KSR_CALLED") == 1


def test_lines_stay_where_they_were(bench):
    bound = bench.bind(LANE + "out[lane] = reduce(1) + reduce(2);\nnonsense;", header=REDUCE, **LAUNCH)
    unit = unit_of(bound.passes[0])
    assert unit.text.split("\n")[unit.source_begins + 1] == "nonsense;"


def test_recursion_has_as_many_places_as_it_is_deep(bench):
    # Lanes leave at depth lane % 4; those that leave at one depth add up before they return, deepest first or not.
    header = """
    template <int Depth> float climb(float x, uint lane) {
        if constexpr (Depth < 3) {
            if (lane % 4 > Depth) return climb<Depth + 1>(x + 1, lane);
        }
        return simd_sum(x);
    }
    """
    source = "out[lane] = lane < 16 ? climb<0>(1, lane) : climb<0>(10, lane);"
    got = bench.run(LANE + source, header=header, **LAUNCH)["out"]
    lanes = np.arange(32)
    assert got.tolist() == [4.0 * (i % 4 + (1 if i < 16 else 10)) for i in lanes]


def test_a_helper_takes_no_argument_more_than_it_has(bench):
    fault = bench.fault("out[0] = reduce(1) +\n reduce(1, 2);", header=REDUCE, **LAUNCH)
    assert (fault.stage, fault.line, "ksr_" in fault.message) == ("compile", 2, False)
    fault = bench.fault("out[0] = reduce(1) +\n reduce();", header=REDUCE, **LAUNCH)
    assert (fault.stage, fault.line, "ksr_" in fault.message) == ("compile", 2, False)
