"""The metal device with its kernel launch replaced by MLX on the CPU: what it does before and after the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from search.devices import metal, mlx_kernel
from search.devices.base import MEASURED, DeviceUnavailable, KernelFault
from search.devices.metal import MetalDevice, chain
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

Kernel = Callable[[list[Any], Any], Any]
"""What a pass does to its flat poisoned output, given its inputs."""


def one_pass(dtype: str, size: int = 16, **launch: Any) -> BoundProgram:
    x, y = ArraySpec("x", (2, size // 2), DTYPES[dtype]), ArraySpec("y", (2, size // 2), DTYPES[dtype])
    step = BoundPass("copy", (x,), (y,), "y[i] = x[i];", "", (size, 1, 1), (8, 1, 1), (), **launch)
    return BoundProgram((step,), ("y",))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], MetalDevice]:
    """Return a metal device that runs the given Python in place of the kernel."""

    def build(kernel: Kernel) -> MetalDevice:
        def call(step: BoundPass, known: Any, *, guard: int = 0, init_value: float | None = None) -> list[Any]:
            outputs = []
            for spec in step.outputs:
                size = int(np.prod(spec.shape))
                start = mx.full((size + guard,), init_value or 0, mlx_kernel.mlx_dtype(spec.dtype))
                outputs.append(kernel([known[s.name].reshape(-1) for s in step.inputs], start))
            return [o if guard else o.reshape(s.shape) for o, s in zip(outputs, step.outputs, strict=True)]

        monkeypatch.setattr(mlx_kernel, "call_kernel", call)
        monkeypatch.setattr(mx.metal, "is_available", lambda: True)
        monkeypatch.setattr(mx, "device_info", lambda *_: {"device_name": "Apple M0"})
        return MetalDevice()

    return build


def write(count: int) -> Kernel:
    """Return a kernel that copies ``count`` elements, whatever the size of the output."""

    def kernel(inputs: list[Any], start: Any) -> Any:
        source = mx.concatenate([inputs[0], mx.zeros((1024,), inputs[0].dtype)])
        return mx.where(mx.arange(start.size) < count, source[: start.size], start)

    return kernel


def test_without_metal_the_device_says_what_to_take_instead(monkeypatch):
    monkeypatch.setattr(mx.metal, "is_available", lambda: False)
    with pytest.raises(DeviceUnavailable, match=r"Apple silicon.*simulator"):
        MetalDevice()


def test_outputs_come_back_in_their_shape(device):
    x = np.arange(16, dtype=np.float16).reshape(2, 8)
    result = device(write(16)).run(one_pass("float16"), {"x": x, "unused": x}, time_limit=1)
    assert result.outputs["y"].tolist() == x.tolist()
    assert result.overruns == ()


def test_elements_that_are_not_written_stay_nan(device):
    result = device(write(15)).run(one_pass("float32"), {"x": np.ones((2, 8), np.float32)}, time_limit=1)
    assert np.isnan(result.outputs["y"]).ravel().tolist() == [False] * 15 + [True]


def test_integers_that_are_not_written_differ_between_two_runs(device):
    metal, x = device(write(15)), np.zeros((2, 8), np.int32)
    lasts = [metal.run(one_pass("int32"), {"x": x}, time_limit=1).outputs["y"][1, 7] for _ in range(2)]
    assert lasts[0] != lasts[1]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_what_a_pass_has_its_outputs_begin_with_is_no_sign_that_they_were_not_written(device, dtype: str):
    bound, x = one_pass(dtype, init_value=7.0), DTYPES[dtype].encode(np.ones((2, 8)))
    metal = device(write(15))
    for _ in range(2):
        result = metal.run(bound, {"x": x}, time_limit=1)
        assert result.outputs["y"].ravel().tolist() == [1] * 15 + [7]
        assert result.overruns == ()
    assert device(write(17)).run(bound, {"x": x}, time_limit=1).overruns == ("y",)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_write_past_the_end_is_found_in_the_guard(device, dtype: str):
    x = DTYPES[dtype].encode(np.ones((2, 8)))
    result = device(write(17)).run(one_pass(dtype), {"x": x}, time_limit=1)
    assert result.overruns == ("y",)


def test_a_kernel_is_compiled_once(device):
    launches = []

    def kernel(inputs: list[Any], start: Any) -> Any:
        launches.append(start.size)
        return start

    metal = device(kernel)
    for _ in range(2):
        metal.compile(one_pass("float32", 16))
    metal.compile(one_pass("float32", 64))
    assert len(launches) == 1
    metal.compile(one_pass("float32", 4))  # fewer than 8 elements: another address space, so another kernel
    assert len(launches) == 2
    metal.compile(one_pass("float32", 16, atomic_outputs=True))
    assert len(launches) == 3


def test_what_metal_refuses_becomes_a_fault_of_the_pass(device):
    def kernel(inputs: list[Any], start: Any) -> Any:
        return mx.zeros((4,))

    metal = device(kernel)

    def refuse(*_: Any) -> None:
        raise RuntimeError("Unable to build metal library from source\nkernel_body:1:3: error: no such thing")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KernelFault, match="no such thing") as caught:
        patch.setattr(mx, "eval", refuse)
        metal.compile(one_pass("float32"))
    assert (caught.value.stage, caught.value.pass_name, caught.value.line) == ("compile", "copy", 1)


def test_a_program_and_the_baseline_are_timed_in_the_same_run(device, monkeypatch):
    monkeypatch.setattr(metal, "_CACHE_BYTES", 1 << 10)
    bound = one_pass("float32")
    specs = {"x": bound.passes[0].inputs[0], "scale": ArraySpec("scale", (), DTYPES["float32"])}
    inputs = {"x": np.ones((2, 8), np.float32), "scale": np.float32(0.5).reshape(())}
    seen = []

    def baseline(arrays: Any) -> list[Any]:
        seen.append(float(arrays["scale"]))
        return [arrays["x"] * 2]

    ours, theirs = device(write(16)).time_beside(bound, inputs, specs, baseline, time_limit=0.2)
    assert set(seen) == {0.5}
    for taken in (ours, theirs):
        assert (taken.kind, taken.on) == (MEASURED, "Apple M0")
        assert 0 < taken.low <= taken.seconds <= taken.high < 0.1


def test_chained_runs_follow_one_another_over_all_input_sets():
    order = []

    def work(arrays: Any) -> list[Any]:
        order.append(int(arrays["n"]))
        return [arrays["x"] + 1]

    sets = [{"x": mx.full((4,), float(i)), "n": mx.array(i)} for i in range(3)]
    assert chain(work, sets)(5) > 0
    assert order == [0, 1, 2, 0, 1]


def test_a_chained_run_waits_for_the_outputs_before_it():
    """Exporting the chain shows the next run's input behind a Depends on the one-element read of the last output."""
    found: list[dict[str, Any]] = []

    def twice(x: Any) -> list[Any]:
        first = [mx.exp(x)]
        return [mx.sin(metal._after(first, {"x": x})["x"])]

    mx.export_function(found.append, twice, mx.ones((8,)))
    names = [entry["name"] for entry in found if entry["type"] == "primitive"]
    assert names.index("Exp") < names.index("Depends") < names.index("Sin")
