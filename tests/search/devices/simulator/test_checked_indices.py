"""Indices past private arrays, tables and rows, which only the compiler knows the size of, and past small inputs."""

from __future__ import annotations

import numpy as np
import pytest

from search.devices.base import CheckReport
from search.devices.simulator.compilers import find_compiler
from search.kernels.dtypes import Array

LAUNCH = {"outputs": {"out": ((32,), "float32")}, "grid": 32, "threadgroup": 32}


def reports(bench, source: str, header: str = "", **inputs: Array) -> list[CheckReport]:
    """Return what the checked mode says of ``source``, in which ``i`` is the thread."""
    bound = bench.bind(f"uint i = thread_position_in_grid.x;\n{source}", header=header, inputs=inputs, **LAUNCH)
    return list(bench.device.check(bound, inputs, time_limit=20).reports)


def test_an_index_past_a_private_array_is_found(bench):
    found, *others = reports(bench, "float acc[4] = {1, 2, 3, 4};\nacc[i % 5] += 1;\nout[i] = acc[0] + acc[3];")
    assert not others or find_compiler().clang  # whose layout has something else behind the array
    assert (found.stage, found.line, found.certain) == ("bounds", 3, True)
    assert "thread 4 (simdgroup 0, lane 4) uses the index 4 of 'acc', a `float[4]` in line 3" in found.message


def test_an_index_below_zero_is_told_as_it_is(bench):
    (found,) = reports(bench, "float acc[4] = {1, 2, 3, 4};\nint k = int(i % 4) - 1;\nout[i] = acc[k];")
    assert "uses the index -1 of 'acc'" in found.message


def test_an_index_past_a_table_in_a_helper_names_the_call(bench):
    header = "constant float table[3] = {1, 2, 3};\nfloat look(thread uint& k) {\n    return table[k];\n}\n"
    source = "uint a = i % 3, b = i % 4;\nout[i] = look(a)\n    + look(b);"
    (found,) = reports(bench, source, header)
    assert (found.line, found.in_header, found.certain) == (3, True, True)
    assert "uses the index 3 of 'table', a `float[3]` in line 3 of the header, called from line 4" in (
        found.message.replace("const float", "float")
    )


def test_an_index_into_the_next_row_is_only_suspected(bench):
    source = """threadgroup float t[8][4];
t[i / 4][i % 4] = i;
threadgroup_barrier(mem_flags::mem_threadgroup);
out[i] = t[0][i];"""
    (found,) = reports(bench, source)
    assert (found.stage, found.line, found.certain) == ("bounds", 5, False)
    assert "the index 4 of 't', a `float[4]`" in found.message


def test_an_index_past_a_whole_threadgroup_array_is_told_once(bench):
    source = "threadgroup float t[32];\nt[i] = i;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = t[i + 1];"
    (found,) = reports(bench, source)
    assert (found.line, found.certain) == (5, True)
    assert "reads t[32]" in found.message


@pytest.mark.parametrize(
    "source",
    [
        "float acc[4] = {1, 2, 3, 4};\nthread float* end = &acc[4];\nout[i] = *(end - 1) + acc[i % 4];",
        "float m[2][3] = {};\nfor (uint k = 0; k < 6; ++k) m[k / 3][k % 3] = k;\nout[i] = m[1][2];",
        "float4 v = float4(i);\nout[i] = v[i % 4];",
    ],
)
def test_indices_within_are_accepted(bench, source):
    assert reports(bench, source) == []


@pytest.mark.parametrize(("index", "says"), [("i % 5", "x[4]"), ("int(i % 4) - 1", "x[-1]")])
def test_an_index_outside_an_input_in_constant_memory_is_found(bench, index, says):
    # MLX gives an input of fewer than 8 elements as constant.
    (found,) = reports(bench, f"out[i] = x[{index}];", x=np.ones(4, np.float32))
    assert (found.stage, found.line, found.certain) == ("bounds", 2, True)
    assert f"reads {says} in line 2; the input has 4 elements" in found.message


@pytest.mark.parametrize(
    ("index", "says"),
    [("i - 1", "x[4294967295]"), ("i * 500000000ul", "x[500000000]"), ("int(i) - 2000000000", "x[-2000000000]")],
)
def test_an_index_far_outside_is_told_once_of_the_array_that_was_meant(bench, index, says):
    x = np.ones(64, np.float32)
    (found,) = reports(bench, f"out[i] = x[{index}];", before=x, x=x, after=x)
    assert (found.stage, found.line, found.certain) == ("bounds", 2, True)
    assert f"reads {says} in line 2; the input has 64 elements" in found.message
