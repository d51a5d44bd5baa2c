"""MLX's full text of a kernel, as ``verbose=True`` prints it, instead of a body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

TEXT = """\
template <typename T> T twice(T x) { return x + x; }
template <typename T, bool B, int N>
[[kernel]] void custom_kernel_scale_half_1_3(
  const device half* x [[buffer(0)]],
  const constant int* x_shape [[buffer(1)]],
  const constant int64_t* x_strides [[buffer(2)]],
  const constant int& x_ndim [[buffer(3)]],
  const constant int32_t& n [[buffer(4)]],
  device float* y [[buffer(5)]],
  device atomic<float>* total [[buffer(6)]],
  uint3 thread_position_in_grid [[thread_position_in_grid]]) {

  uint i = thread_position_in_grid.x;
  threadgroup T tile[8];
  tile[i] = twice(x[elem_to_loc(i, x_shape, x_strides, x_ndim)]);
  y[i] = float(tile[i]) * n * N + (B ? 0.5 : 0);
  atomic_fetch_add_explicit(total, y[i], memory_order_relaxed);
}

template [[host_name("custom_kernel_scale_half_1_3")]] [[kernel]] decltype(custom_kernel_scale_half_1_3<half, 1, 3>) \
custom_kernel_scale_half_1_3<half, 1, 3>;
"""
X = np.arange(8, dtype=np.float16).reshape(2, 4)


def launch() -> dict[str, object]:
    return {
        "inputs": {"x": X, "n": np.array(10, np.int32)},
        "outputs": {"y": ((8,), "float32"), "total": ((1,), "float32")},
        "grid": 8,
        "threadgroup": 8,
    }


def test_a_full_text_runs_with_its_instance_of_the_template(bench):
    made = bench.run(TEXT, init_value=0, **launch())
    wanted = 2 * np.arange(8) * 10 * 3 + 0.5
    assert made["y"].tolist() == wanted.tolist()
    assert made["total"].tolist() == [wanted.sum()]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("return x + x;", "return x + y;", 1, "'y' was not declared"),
        ("uint i = thread", "uint j = thread", 15, "'i' was not declared"),
        ("twice(x[", "twice(double(x[", 15, "'double' is refused"),
        ("(T x) {", "(T x) { texture2d<float> t;", 1, "'texture2d' is refused"),
        ("uint3 thread_position_in_grid [[", "uint3 thread_position_in_grid[3] [[", 11, "is not a parameter as MLX"),
        ("half, 1, 3>;", "half, 1>;", 2, "3 template parameters, but 2 arguments"),
    ],
)
def test_what_is_wrong_has_the_line_of_the_full_text(bench, old, new, line, words):
    fault = bench.fault(TEXT.replace(old, new), **launch())
    assert fault.stage == "compile"
    assert words in fault.message
    assert (fault.line, fault.in_header) == (line, False)


def test_a_parameter_that_the_launch_does_not_give_is_named(bench):
    fault = bench.fault(TEXT.replace("& n [[", "& m [["), **launch())
    assert "the kernel's parameter 'm' is no array of the launch" in fault.message


def test_an_input_may_lie_in_memory_in_another_order(bench):
    # The kernel walks the rows of x; in memory x lies column by column.
    program = bench.bind(TEXT, init_value=0, **launch())
    step = program.passes[0]
    turned = replace(step, inputs=(replace(step.inputs[0], strides=(1, 2)), step.inputs[1]))
    made = bench.device.run(replace(program, passes=(turned,)), launch()["inputs"], time_limit=20).outputs
    assert made["y"].tolist() == (2 * np.arange(8) * 30 + 0.5).tolist()
