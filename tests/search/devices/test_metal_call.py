"""The Metal path up to Apple's compiler: MLX records the call and prints the text that it would compile."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from search.devices import mlx_kernel
from search.devices.mlx_kernel import call_kernel, from_mlx, kernel_fault, mlx_dtype, to_mlx
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass


def spec(name: str, shape: tuple[int, ...], dtype: str) -> ArraySpec:
    return ArraySpec(name, shape, DTYPES[dtype])


STEP = BoundPass(
    name="row max, first",
    inputs=(spec("x", (16, 4), "float16"), spec("bias", (3,), "float32"), spec("n", (), "int32")),
    outputs=(spec("y", (16,), "bfloat16"), spec("count", (2, 5), "uint32")),
    source="uint i = thread_position_in_grid.x;\nif (i < uint(x_shape[0])) { y[i] = twice(x[i]) + n; }",
    header="inline float twice(float a) { return 2 * a; }",
    grid=(16, 1, 1),
    threadgroup=(8, 1, 1),
    template=(("T", DTYPES["float16"]), ("N", 3), ("LAST", True)),
)


def recorded(step: BoundPass, guard: int = 0) -> dict[str, Any]:
    """Return the call as MLX records it: name, the text for Apple's compiler, grid and threadgroup, outputs."""
    found: list[dict[str, Any]] = []

    def call(*arrays: mx.array) -> list[mx.array]:
        return call_kernel(step, {s.name: a for s, a in zip(step.inputs, arrays, strict=True)}, guard=guard)

    mx.export_function(found.append, call, *(mx.zeros(s.shape, mlx_dtype(s.dtype)) for s in step.inputs))
    (kernel,) = (entry for entry in found if entry.get("name") == "CustomKernel")
    name, text, *launch = kernel["arguments"]
    return {
        "name": name,
        "text": text,
        "grid": tuple(launch[:3]),
        "threadgroup": tuple(launch[3:6]),
        "outputs": [(shape, dtype) for _, shape, dtype in kernel["outputs"]],
    }


def test_each_array_is_declared_as_metal_binds_it():
    text = recorded(STEP)["text"]
    parameters = re.findall(r"^ +(.*?) ?\[\[", text, re.MULTILINE)
    assert parameters == [
        "const device float16_t* x",
        "const constant int* x_shape",
        "const constant float* bias",  # fewer than 8 elements
        "const constant int32_t& n",  # a scalar
        "device bfloat16_t* y",
        "device uint32_t* count",
        "uint3 thread_position_in_grid",
    ]


def test_the_template_reaches_the_kernel_by_name_and_value():
    text = recorded(STEP)["text"]
    assert "template <typename T, int N, bool LAST>" in text
    assert re.search(r"decltype\(\w+<float16_t, 3, 1>\)", text)


def test_header_and_body_stand_behind_lines_that_name_them():
    lines = recorded(STEP)["text"].splitlines()
    assert lines[lines.index('#line 1 "kernel_header"') + 1] == STEP.header
    assert lines[lines.index('#line 1 "kernel_body"') + 1] == "uint i = thread_position_in_grid.x;"


def test_the_name_of_the_kernel_changes_with_its_text():
    def name(step: BoundPass) -> str:
        return recorded(step)["name"]

    other = BoundPass(**{**STEP.__dict__, "header": STEP.header.replace("2 *", "3 *")})
    assert name(STEP) == name(STEP)
    assert name(STEP) != name(other)


def test_grid_and_threadgroup_count_threads_and_outputs_keep_their_shapes():
    call = recorded(STEP)
    assert (call["grid"], call["threadgroup"]) == ((16, 1, 1), (8, 1, 1))
    assert call["outputs"] == [((16,), mx.bfloat16), ((2, 5), mx.uint32)]


COUNTS = BoundPass(
    "counts", (spec("x", (16,), "int32"),), (spec("y", (4,), "int32"),),
    "atomic_fetch_add_explicit(&y[x[0]], 1, memory_order_relaxed);", "",
    (16, 1, 1), (16, 1, 1), (), init_value=3.0, atomic_outputs=True,
)  # fmt: skip


def test_atomic_outputs_are_declared_so_under_another_name():
    counts, plain = recorded(COUNTS), recorded(replace(COUNTS, atomic_outputs=False))
    assert "device atomic<int32_t>* y" in counts["text"]
    assert "device int32_t* y" in plain["text"]
    assert counts["name"] != plain["name"]


@pytest.mark.parametrize(("own", "asked", "filled"), [(3.0, None, 3.0), (3.0, 5.0, 5.0), (None, None, None)])
def test_mlx_is_asked_to_fill_the_outputs_with_the_initial_value(monkeypatch, own, asked, filled):
    calls = []  # MLX's export leaves the initial value out of what it records
    monkeypatch.setattr(mlx_kernel, "_kernel", lambda *_: lambda **call: calls.append(call) or [])
    call_kernel(replace(COUNTS, init_value=own), {"x": mx.zeros((16,), mx.int32)}, init_value=asked)
    assert [call["init_value"] for call in calls] == [filled]


def test_guarded_outputs_are_flat_and_longer_by_the_guard():
    assert [shape for shape, _ in recorded(STEP, guard=64)["outputs"]] == [(80,), (74,)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives_the_way_to_mlx_and_back(dtype: str):
    stored = DTYPES[dtype].encode(np.array([0, 1, 1.5, 3]))
    array = to_mlx(stored, DTYPES[dtype])
    assert array.dtype == mlx_dtype(DTYPES[dtype])
    back = from_mlx(array, DTYPES[dtype])
    assert back.dtype == stored.dtype
    assert back.tolist() == stored.tolist()


METAL_SAYS = """[metal::Device] Unable to build metal library from source
kernel_body:2:17: error: use of undeclared identifier 'tota'
    y[i] = tota;
           ^
kernel_body:9:1: error: expected ';'
"""


def test_a_compile_error_carries_the_line_of_the_kernels_own_source():
    fault = kernel_fault("rows", METAL_SAYS)
    assert (fault.stage, fault.pass_name, fault.line, fault.in_header) == ("compile", "rows", 2, False)
    assert fault.message == "use of undeclared identifier 'tota'"


def test_a_compile_error_in_the_header_says_so():
    fault = kernel_fault("rows", METAL_SAYS.replace("kernel_body:2", "kernel_header:1"))
    assert (fault.line, fault.in_header) == (1, True)


@pytest.mark.parametrize("place", ["kernel_signature", "program_source"])
def test_a_compile_error_in_what_mlx_wrote_has_no_line(place: str):
    fault = kernel_fault("rows", METAL_SAYS.replace("kernel_body:2", f"{place}:2"))
    assert (fault.stage, fault.line, fault.in_header) == ("compile", None, False)


def test_too_much_threadgroup_memory_is_a_fault_of_memory():
    text = "Unable to load kernel f\nThreadgroup memory size (65536) exceeds the maximum allowed (32768)"
    fault = kernel_fault("rows", text)
    assert (fault.stage, fault.line) == ("memory", None)
    assert "65536" in fault.message
