"""Pointers into one address space where another is meant: what Metal's compiler refuses, and what it accepts."""

from __future__ import annotations

import numpy as np
import pytest

from search.devices.simulator.spaces import foreign_pointer

ARRAYS = {"x": "device", "few": "constant", "out": "device"}
HELPERS = """
float first(const device float* p) { return p[0]; }
float look(constant float* p, uint i) { return p[i]; }
void fill(threadgroup float* to, float value);
template <typename T, int N> void clear(thread T* items) { for (int i = 0; i < N; ++i) items[i] = 0; }
float both(const device float* p) { return p[0]; }
float both(const threadgroup float* p) { return p[0]; }
template <typename P> float any(P p) { return p[0]; }
float own(const float* p) { return p[0]; }
constant float table[4] = {1, 2, 3, 4};
"""
TILE = "threadgroup float tile[32]; threadgroup float flag; float acc[4]; device float* row = out + 4;\n"


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("first(tile);", "'tile' is in threadgroup memory, but parameter 1 of 'first' points into device memory"),
        ("first(tile + i * 4);", "'tile' is in threadgroup memory"),
        ("first(&tile[2]);", "'tile' is in threadgroup memory"),
        ("first(acc);", "'acc' is in thread memory"),
        ("first(few);", "'few' is in constant memory"),
        ("first(table);", "'table' is in constant memory"),
        ("look(x, 3);", "'x' is in device memory, but parameter 1 of 'look' points into constant memory"),
        ("fill(row, 1);", "'row' is in device memory, but parameter 1 of 'fill' points into threadgroup memory"),
        ("fill(&acc[1], 1);", "'acc' is in thread memory"),
        ("clear<float, 4>(tile);", "'tile' is in threadgroup memory, but parameter 1 of 'clear' points into thread"),
        ("both(acc);", "but parameter 1 of 'both' points into device or threadgroup memory"),
        ("device float* p = tile;", "'tile' is in threadgroup memory, but 'p' points into device memory"),
        ("threadgroup float* p = x + 4;", "'x' is in device memory, but 'p' points into threadgroup memory"),
        ("device float* p = &flag;", "'flag' is in threadgroup memory"),
        ("row = tile;", "'tile' is in threadgroup memory, but 'row' points into device memory"),
    ],
)
def test_a_pointer_into_a_foreign_space_is_found(statement, says):
    found = foreign_pointer(HELPERS, f"{TILE}{statement}\n", ARRAYS)
    assert found is not None
    line, in_header, words = found
    assert (line, in_header) == (2, False)
    assert says in words


@pytest.mark.parametrize(
    "statement",
    [
        "first(x); first(out + i); first(&x[3]); first(row);",
        "threadgroup Pair<int, float> pairs[4]; fill(pairs, 1); if (a < b, c > tile[0]) fill(tile, 1);",
        "look(few, 1); look(table, 2); look(table + 1, 2);",
        "fill(tile, first(x)); fill(&tile[i], acc[0]); fill(&flag, tile[i] * acc[i]);",
        "clear<float, 4>(acc); both(x); both(tile); any(acc); any(tile); own(acc);",
        "float v = first(x) + tile[0]; v *= tile[1] * tile[2]; first(&x[int(tile[0])]);",
        "{ device float* tile = out; first(tile); }",  # another of that name
        "auto p = tile; p = tile; threadgroup float4* q = (threadgroup float4*)tile;",
        "device float* p = i < 4 ? x : out; p = p + 1;",
        "auto f = [&](const device float* tile) { return first(tile); };",
        "threadgroup alignas(16) half wide[8]; threadgroup half4* q = wide;",
        "// first(tile);\n",
    ],
)
def test_what_metal_accepts_is_not_found(statement):
    assert foreign_pointer(HELPERS, f"{TILE}{statement}\n", ARRAYS) is None


def test_helpers_are_looked_through_too():
    header = f"{HELPERS}float second(threadgroup float* p) {{\n    return first(p) + p[1];\n}}\n"
    found = foreign_pointer(header, "", {})
    assert found is not None
    assert found[:2] == (header.count("\n") - 1, True)


def test_the_simulator_refuses_it_with_its_line(bench):
    header = "float first(const device float* p) { return p[0]; }\n"
    source = "threadgroup float tile[4];\ntile[thread_position_in_grid.x] = 1;\nout[0] = first(tile);"
    launch = {"outputs": {"out": ((4,), "float32")}, "grid": 4, "threadgroup": 4}
    fault = bench.fault(source, header=header, **launch)
    assert (fault.stage, fault.line, fault.in_header) == ("compile", 3, False)
    assert "add a version for threadgroup memory" in fault.message


def test_an_input_of_few_elements_lies_in_constant_memory_as_in_mlx(bench):
    header = "float first(const device float* p) { return p[0]; }\n"
    launch = {"outputs": {"out": ((1,), "float32")}, "grid": 1, "threadgroup": 1, "header": header}
    fault = bench.fault("out[0] = first(x);", inputs={"x": np.ones(7, np.float32)}, **launch)
    assert "'x' is in constant memory" in fault.message
    assert bench.run("out[0] = first(x);", inputs={"x": np.ones(8, np.float32)}, **launch)["out"].tolist() == [1]
