"""What MLX writes around a kernel's text: parameters, shapes, templates, passes, address spaces."""

from __future__ import annotations

import numpy as np
import pytest

from search.devices.simulator.unit import ATTRIBUTES
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

FLOAT = DTYPES["float32"]


def test_scalars_are_references_and_shapes_and_strides_are_there_by_name(bench):
    source = """
    uint i = thread_position_in_grid.x;
    int rows = x_shape[0]; long step = x_strides[0];
    float v = i < uint(n) ? x[(i % rows) * step + i / rows] * scale : 0.0f;
    out[i] = v + 1000 * x_ndim + 10000 * x_shape[1] + 100000 * int(x_strides[1]);
    """
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    out = bench.run(
        source,
        inputs={"x": x, "n": np.array(10, np.int32), "scale": np.array(0.5, np.float32)},
        outputs={"out": ((12,), "float32")},
        grid=12,
        threadgroup=12,
    )["out"]
    # x[(i % 4), i // 4] / 2 for the first ten, with ndim 2, three columns, column stride 1.
    wanted = x.T.reshape(-1) / 2 * (np.arange(12) < 10) + 2000 + 30000 + 100000
    np.testing.assert_array_equal(out, wanted)


def test_template_values_are_types_and_constants(bench):
    source = """
    uint i = thread_position_in_grid.x;
    T v = T(x[i]); T kept[N];
    for (int k = 0; k < N; ++k) kept[k] = v + T(k);
    if constexpr (Double) v = kept[N - 1] * T(2); else v = kept[0];
    out[i] = v;
    """
    x = np.arange(8, dtype=np.float32) + np.float32(0.0001)
    for doubled, wanted in ((True, 2 * (np.arange(8) + 2)), (False, np.arange(8))):
        out = bench.run(
            source,
            inputs={"x": x},
            outputs={"out": ((8,), "float16")},
            grid=8,
            threadgroup=8,
            template={"T": DTYPES["float16"], "N": 3, "Double": doubled},
        )["out"]
        # 0.0001 is lost in a half, except beside zero.
        np.testing.assert_array_equal(out[1:], wanted[1:].astype(np.float16))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_every_dtype_is_read_and_written(bench, dtype):
    kind = DTYPES[dtype]
    x = kind.encode(np.arange(64))
    out = bench.run(
        "uint i = thread_position_in_grid.x; out[i] = x[63 - i] + x[0];",
        inputs={"x": x},
        dtypes={"x": dtype},
        outputs={"out": ((64,), dtype)},
        grid=64,
        threadgroup=32,
    )["out"]
    np.testing.assert_array_equal(out, x[::-1])


def test_booleans_select(bench):
    flags = np.arange(32) % 3 == 0
    out = bench.run(
        "uint i = thread_position_in_grid.x; out[i] = !flag[i];",
        inputs={"flag": flags},
        outputs={"out": ((32,), "bool")},
        grid=32,
        threadgroup=32,
    )["out"]
    np.testing.assert_array_equal(out, ~flags)


def test_every_attribute_of_mlx_has_a_value(bench):
    parts = " + ".join(f"(float){name}{'.x' if kind == 'uint3' else ''}" for name, (kind, _) in ATTRIBUTES.items())
    out = bench.run(f"out[0] = {parts};", outputs={"out": ((1,), "float32")}, grid=1, threadgroup=1)["out"]
    # Of the twenty, nine extents are 1 and two widths 32; indices, positions and the origin are 0.
    assert out[0] == 9 * 1 + 2 * 32


def test_passes_hand_intermediate_arrays_on(bench):
    def step(name, reads, writes, source):
        specs = [tuple(ArraySpec(n, (64,), FLOAT) for n in names) for names in (reads, writes)]
        return BoundPass(name, *specs, source, "", (64, 1, 1), (32, 1, 1), ())

    i = "uint i = thread_position_in_grid.x;"
    program = BoundProgram(
        (
            step("square", ("x",), ("squares",), i + "squares[i] = x[i] * x[i];"),
            step("flip", ("squares",), ("flipped", "first"), i + "flipped[i] = squares[63 - i]; first[i] = i;"),
            step("add", ("flipped", "x", "first"), ("out",), i + "out[i] = flipped[i] + x[i] + 1000 * first[i];"),
        ),
        ("out", "first"),
    )
    x = np.arange(64, dtype=np.float32)
    result = bench.device.run(program, {"x": x}, time_limit=20)
    assert set(result.outputs) == {"out", "first"}
    np.testing.assert_array_equal(result.outputs["out"], x[::-1] ** 2 + x + 1000 * np.arange(64))


def test_pointers_into_every_address_space_and_qualified_helpers(bench):
    header = """
    // device float* in a comment and "threadgroup" in a string stay as they are
    constant float table[4] = {1.0, 2.0, 4.0, 8.0};
    constant constexpr int width = 4;
    static constexpr constant float half_of = .5;
    struct Pair { float xy; half2 h; };
    template <typename T>
    inline T pick(const device T* from, threadgroup T* through, thread T& kept, constant T* scale,
                  uint i [[maybe_unused]]) {
        through[i] = from[i] * scale[i % width];
        kept += through[i];
        return kept;
    }
    METAL_FUNC float twice(float v) { return v * 2.0; }
    """
    source = """
    threadgroup float shared[32];
    uint i = thread_position_in_grid.x;
    thread float kept = 0;
    Pair p = {1e0, half2(1.0h, 2)};
    float v = pick(x, shared, kept, table, i);
    #pragma unroll
    for (int k = 0; k < 2; ++k) v += p.xy;
    _Pragma("clang loop unroll(full)")
    for (int k = 0; k < 2; ++k) v += float(p.h[k]);
    simdgroup_barrier(mem_flags::mem_none);
    const threadgroup float4* wide = (const threadgroup float4*)shared;
    out[i] = twice(v * half_of) + wide[i / 4][i % 4];
    """
    x = np.arange(32, dtype=np.float32)
    out = bench.run(
        source, header=header, inputs={"x": x}, outputs={"out": ((32,), "float32")}, grid=32, threadgroup=32
    )["out"]
    scaled = x * 2.0 ** (np.arange(32) % 4)
    np.testing.assert_array_equal(out, scaled + 2 + 3 + scaled)


def test_an_unwritten_output_is_not_a_number(bench):
    out = bench.run(
        "if (thread_position_in_grid.x < 5) out[thread_position_in_grid.x] = 1;",
        outputs={"out": ((8,), "float16")},
        grid=8,
        threadgroup=8,
    )["out"]
    np.testing.assert_array_equal(np.isnan(out), [False] * 5 + [True] * 3)


def test_reading_just_past_an_input_gives_not_a_number(bench):
    out = bench.run(
        "uint i = thread_position_in_grid.x; out[i] = x[i + 1];",
        inputs={"x": np.ones(8, np.float32)},
        outputs={"out": ((8,), "float32")},
        grid=8,
        threadgroup=8,
    )["out"]
    np.testing.assert_array_equal(np.isnan(out), [False] * 7 + [True])


def test_the_device_says_that_its_times_are_modelled(bench):
    assert bench.device.describe() == "simulator → apple-m3-max (modelled)"
    program = bench.bind(
        "out[thread_position_in_grid.x] = 1;", outputs={"out": ((64,), "float32")}, grid=64, threadgroup=64
    )
    time = bench.device.time(program, {}, time_limit=20)
    assert (time.kind, time.on) == ("modelled", "apple-m3-max")
    assert time.low == time.seconds == time.high > 0
    assert [entry.name for entry in time.passes] == ["kernel"]
    assert bench.device.time(program, {}, time_limit=20) == time
