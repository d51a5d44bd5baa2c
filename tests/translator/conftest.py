"""A frame in which pieces of Metal run: the names that primitives.toml and patterns.toml use in their code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

NAMES = """\
const uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;
const half e = h[i];
const bfloat16_t g = b[i];
const uint w = u[i];
float v = x[i];
const bool p = v > 0.0f;
threadgroup float s[1024];
// the last line of the names
"""
LINES = NAMES.count("\n")

Run = Callable[..., np.ndarray]


def bound(source: str, arrays: dict[str, np.ndarray], group: int, header: str = "") -> BoundProgram:
    count = len(arrays["x"])
    kinds = {"x": "float32", "h": "float16", "b": "bfloat16", "u": "uint32"}
    inputs = [ArraySpec(name, (count,), DTYPES[kind]) for name, kind in kinds.items()]
    inputs.append(ArraySpec("n", (), DTYPES["int32"]))
    outputs = (ArraySpec("y", (count,), DTYPES["float32"]), ArraySpec("c", (count,), DTYPES["uint32"]))
    step = BoundPass(
        "piece", tuple(inputs), outputs, NAMES + source, header, (count, 1, 1), (group, 1, 1), (), init_value=0.0
    )
    return BoundProgram((step,), ("y", "c"))


@pytest.fixture(scope="session")
def simulator() -> SimulatorDevice:
    return SimulatorDevice(load_profile("apple-m3-max"))


@pytest.fixture(scope="session")
def compile_piece(simulator: SimulatorDevice) -> Callable[..., None]:
    """Compile statements over the frame's names; raises `KernelFault`, its line counted from the frame's first."""

    def compile_piece(source: str, header: str = "") -> None:
        simulator.compile(bound(source, {"x": np.zeros(64, np.float32)}, 64, header))

    return compile_piece


@pytest.fixture(scope="session")
def run_piece(simulator: SimulatorDevice) -> Run:
    """Run statements over the frame's names on given inputs (zeros where none is) and return ``y``."""

    def run_piece(source: str, *, group: int, header: str = "", **inputs: np.ndarray) -> np.ndarray:
        count = len(inputs["x"])
        whole = bound(source, inputs, group, header)
        stored = {
            spec.name: spec.dtype.encode(inputs.get(spec.name, np.zeros(spec.shape))) for spec in whole.passes[0].inputs
        }
        stored["n"] = np.array(count, np.int32)
        result = simulator.run(whole, stored, time_limit=30)
        assert not result.overruns
        return result.outputs["y"]

    return run_piece
