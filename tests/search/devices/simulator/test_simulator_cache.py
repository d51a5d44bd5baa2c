"""The cache of compiled kernels, and the processes that share it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np

from search.devices.simulator.cache import cache_folder
from search.devices.simulator.unit import unit_of

SCRIPT = """
import numpy as np
from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram
spec = ArraySpec("out", (64,), DTYPES["float32"])
source = "out[thread_position_in_grid.x] = simd_sum(1.0f);"
step = BoundPass("shared", (), (spec,), source, "", (64, 1, 1), (64, 1, 1), ())
device = SimulatorDevice(load_profile("apple-m1"))
print(device.run(BoundProgram((step,), ("out",)), {}, time_limit=60).outputs["out"].sum())
"""


def test_two_processes_that_compile_the_same_at_once_both_succeed(tmp_path):
    environment = {**os.environ, "KSEARCH_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        printed, complaints = process.communicate(timeout=120)
        assert printed.strip() == "2048.0", complaints
    left = sorted(path.name.split("-")[0] for path in (tmp_path / "simulator").iterdir())
    assert left == ["compiler", "confine", "kernel", "memory", "runner"]


def test_a_kernel_is_compiled_once(bench):
    program = bench.bind(
        "out[thread_position_in_grid.x] = 41 + 1;", outputs={"out": ((8,), "int32")}, grid=8, threadgroup=8
    )
    bench.device.compile(program)
    before = set(cache_folder().iterdir())
    begin = time.perf_counter()
    bench.device.compile(program)
    assert time.perf_counter() - begin < 0.05
    assert set(cache_folder().iterdir()) >= before
    np.testing.assert_array_equal(bench.device.run(program, {}, time_limit=20).outputs["out"], [42] * 8)


def test_the_same_text_for_other_sizes_is_not_compiled_again(bench):
    source = "out[thread_position_in_grid.x] = float(x_shape[0]) + 0.125f;"
    texts = set()
    for size in (8, 100):
        launch = {
            "inputs": {"x": np.zeros(size, np.float32)},
            "outputs": {"out": ((size,), "float32")},
            "grid": size,
            "threadgroup": 8,
        }
        np.testing.assert_array_equal(bench.run(source, **launch)["out"], [size + 0.125] * size)
        texts.add(unit_of(bench.bind(source, **launch).passes[0]).text)
    assert len(texts) == 1
