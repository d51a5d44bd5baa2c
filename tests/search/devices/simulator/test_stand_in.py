"""A program's own ``mx.fast.metal_kernel`` calls run on the simulator, and MLX is itself again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import numpy as np
import pytest

from search.devices.base import KernelFault
from search.devices.simulator.device import SimulatorDevice
from search.devices.simulator.stand_in import Ledger, metal_simulated

LINE = {"grid": (40, 1, 1), "threadgroup": (32, 1, 1), "output_shapes": [(40,)], "output_dtypes": [mx.float32]}
X = mx.arange(40, dtype=mx.float32)


@pytest.fixture
def device(bench) -> SimulatorDevice:
    return bench.device


@pytest.fixture
def ledger(device: SimulatorDevice) -> Iterator[Ledger]:
    with metal_simulated(device) as ledger:
        yield ledger


def kernel(source: str, name: str = "made", inputs: tuple[str, ...] = ("x",), **more):
    return mx.fast.metal_kernel(name=name, input_names=inputs, output_names=["y"], source=source, **more)


def test_a_program_finds_a_gpu_and_its_kernels_run(ledger):
    assert mx.metal.is_available() and mx.default_device() == mx.gpu
    mx.set_default_device(mx.gpu)
    scaled = kernel("uint i = thread_position_in_grid.x; // 2 × x\ny[i] = twice(T(x[i])) * s + N;", inputs=("x", "s"),
                    header="template <typename T> T twice(T v) { return 2 * v; }")  # fmt: skip
    with mx.stream(mx.gpu):
        (y,) = scaled(inputs=[X, 0.5], template=[("T", mx.float16), ("N", 3)], stream=mx.gpu, verbose=False, **LINE)
    assert mx.array_equal(y, X + 3)
    assert (ledger.kernels["made"].launches, ledger.kernels["made"].faults) == (1, [])


def test_what_mlx_has_is_put_back(device):
    before = (mx.fast.metal_kernel, mx.metal.is_available(), mx.default_device())
    with pytest.raises(ZeroDivisionError), metal_simulated(device):
        raise ZeroDivisionError
    assert before == (mx.fast.metal_kernel, mx.metal.is_available(), mx.default_device())
    traced = []
    compiled = mx.compile(lambda x: traced.append(x) or x + 1)
    mx.eval(compiled(X), compiled(X))
    assert len(traced) == 1


def test_strides_types_initial_values_and_atomics_are_those_of_mlx(ledger):
    pick = kernel("y[0] = float(x[1 * x_strides[0] + 2 * x_strides[1]]);", ensure_row_contiguous=False)
    x = mx.arange(12).reshape(3, 4).astype(mx.bfloat16).T
    one = LINE | {"grid": (1, 1, 1), "output_shapes": [(1,)]}
    assert pick(inputs=[x], **one)[0].item() == x[1, 2].item() == 9
    total = kernel("atomic_fetch_add_explicit(&y[0], int(x[thread_position_in_grid.x]), memory_order_relaxed);",
                   name="total", atomic_outputs=True)  # fmt: skip
    (y,) = total(inputs=[X], init_value=2, **(LINE | {"output_shapes": [(1,)], "output_dtypes": [mx.int32]}))
    assert y.item() == 2 + sum(range(40))
    assert list(ledger.kernels) == ["made", "total"]


def test_a_kernel_within_a_compiled_function_and_within_a_gradient_runs(ledger):
    double = kernel("y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")

    @mx.custom_function
    def doubled(x):
        return double(inputs=[x], **LINE)[0]

    @doubled.vjp
    def _(x, cotangent, _):
        return double(inputs=[cotangent], **LINE)[0]

    assert mx.array_equal(mx.compile(doubled)(X), 2 * X)
    assert mx.array_equal(mx.grad(lambda x: (doubled(x) * X).sum())(X), 2 * X)


def test_what_cannot_run_is_said(ledger):
    double = kernel("y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
    with pytest.raises(RuntimeError, match="the simulator can't run 'made' here"):
        mx.vmap(lambda x: double(inputs=[x], **LINE)[0])(mx.stack([X, X]))
    with pytest.raises(ValueError, match=r"'made' has 1 arrays \(x\), not 2"):
        double(inputs=[X, X], **LINE)
    with pytest.raises(TypeError, match="no arrays of complex64"):
        double(inputs=[X.astype(mx.complex64)], **LINE)


def test_a_fault_names_the_line_of_the_programs_own_text(ledger):
    wrong = kernel("uint i = 0;\ny[i] = nothing;")
    for _ in range(2):
        with pytest.raises(KernelFault, match=r"^made, line 2 of its source: .*nothing"):
            wrong(inputs=[X], **LINE)
    assert len(ledger.kernels["made"].faults) == 2


@pytest.mark.parametrize("checked", [False, True])
def test_an_index_past_the_end_is_on_the_ledger(device, checked):
    with metal_simulated(device, checked=checked) as ledger:
        past = kernel("uint i = thread_position_in_grid.x;\ny[i + 1] = x[i];")
        for _ in range(2):
            (y,) = past(inputs=[X], **LINE)
    np.testing.assert_array_equal(np.array(y)[1:], np.arange(39))
    record = ledger.kernels["made"]
    if checked:
        (report,) = record.reports.values()
        assert (report.stage, report.line) == ("bounds", 2)
    else:
        assert record.overruns == {"y"}


def test_a_launch_has_the_modelled_time_of_its_shapes(device):
    with metal_simulated(device, timed=True) as ledger:
        double = kernel("y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
        for _ in range(3):
            double(inputs=[X], **LINE)
        three = ledger.kernels["made"].modelled
        many = mx.zeros(1 << 20)
        double(inputs=[many], **(LINE | {"grid": (1 << 20, 1, 1), "output_shapes": [many.shape]}))
    record = ledger.kernels["made"]
    assert 0 < three < 3 * (record.modelled - three)
    assert record.bounds.keys() == {"dispatch", "memory"}
    assert sum(record.bounds.values()) == pytest.approx(record.modelled)
