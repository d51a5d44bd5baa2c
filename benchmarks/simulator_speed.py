"""What the simulator costs: ns a lane for a simdgroup operation, ns a thread for a barrier, seconds a compile.

    python benchmarks/simulator_speed.py

Times are medians; those in ns are processor time, which other work on the machine disturbs less. The results and the
machine go to simulator_speed.toml.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
from machine import record

from profiles.hardware import load_profile
from search.devices.simulator.compilers import find_compiler
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

THREADS, GROUPS, REPEATS = 1024, 64, 7
LIMIT = 120.0

OPERATIONS = {
    "simd_sum": "v = simd_sum(v) * 0.03125f;",
    "simd_shuffle_xor": "v += simd_shuffle_xor(v, 1) * 0.5f;",
    "simd_max": "v = simd_max(v) + 1.0f;",
    "threadgroup_barrier": "threadgroup_barrier(mem_flags::mem_threadgroup); v += 1.0f;",
}


def program(body: str) -> BoundProgram:
    """Return a kernel of `GROUPS` threadgroups of `THREADS` that runs ``body`` on a float ``v``."""
    spec = ArraySpec("out", (THREADS * GROUPS,), DTYPES["float32"])
    source = f"float v = thread_index_in_simdgroup;\n{body}\nout[thread_position_in_grid.x] = v;"
    grid, group = (THREADS * GROUPS, 1, 1), (THREADS, 1, 1)
    return BoundProgram((BoundPass("speed", (), (spec,), source, "", grid, group, ()),), ("out",))


def seconds(action: Callable[[], object]) -> float:
    """Return how long ``action`` takes."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def processor_seconds(action: Callable[[], object]) -> float:
    """Return the processor time of the processes that ``action`` starts and waits for."""
    before = getrusage(RUSAGE_CHILDREN)
    action()
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def nanoseconds_each(device: SimulatorDevice, body: str) -> float:
    """Return what one more ``body`` costs a thread: the slope between 32 and 544 of them."""
    few, many = (program(f"for (int k = 0; k < {count}; ++k) {{ {body} }}") for count in (32, 544))
    for bound in (few, many):
        device.compile(bound)
    slopes = []
    for _ in range(REPEATS):
        base = processor_seconds(lambda: device.run(few, {}, time_limit=LIMIT))
        full = processor_seconds(lambda: device.run(many, {}, time_limit=LIMIT))
        slopes.append((full - base) / (512 * THREADS * GROUPS) * 1e9)
    return statistics.median(slopes)


def tiled_matmul(salt: int, size: int = 64) -> BoundProgram:
    """Return a kernel of the size that a search tries, different for each ``salt``, on ``size`` x ``size`` matrices."""
    square = (size, size)
    a, b, c = (ArraySpec(name, square, DTYPES["float32"]) for name in "abc")
    source = f"""
    threadgroup float left[16][17], right[16][17];
    uint3 t = thread_position_in_threadgroup, g = thread_position_in_grid;
    float4 sum = 0.0f;
    for (uint k = 0; k < {size}; k += 16) {{
        left[t.y][t.x] = a[g.y * {size} + k + t.x];
        right[t.y][t.x] = b[(k + t.y) * {size} + g.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 16; i += 4)
            sum += float4(left[t.y][i], left[t.y][i + 1], left[t.y][i + 2], left[t.y][i + 3])
                 * float4(right[i][t.x], right[i + 1][t.x], right[i + 2][t.x], right[i + 3][t.x]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    c[g.y * {size} + g.x] = exp2(simd_max(sum.x + sum.y + sum.z + sum.w) * {salt}.0f);
    """
    return BoundProgram((BoundPass("matmul", (a, b), (c,), source, "", (size, size, 1), (16, 16, 1), ()),), ("c",))


def checked_ratio(device: SimulatorDevice) -> float:
    """Return how many times the processor time of a plain run a checked run of a 256 x 256 product takes."""
    bound, matrices = tiled_matmul(1, 256), {name: np.ones((256, 256), np.float32) for name in "ab"}
    device.compile(bound)
    device.check(bound, matrices, time_limit=LIMIT)
    plain = [processor_seconds(lambda: device.run(bound, matrices, time_limit=LIMIT)) for _ in range(REPEATS)]
    checked = [processor_seconds(lambda: device.check(bound, matrices, time_limit=LIMIT)) for _ in range(REPEATS)]
    return statistics.median(checked) / statistics.median(plain)


def main() -> None:
    """Measure and record."""
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KSEARCH_CACHE"] = cache
        profile = load_profile("apple-m3-max")
        one_core, all_cores = SimulatorDevice(profile, workers=1), SimulatorDevice(profile)
        matrices = {name: np.ones((64, 64), np.float32) for name in "ab"}
        first = tiled_matmul(1)
        results["first_run_s"] = seconds(lambda: all_cores.run(first, matrices, time_limit=LIMIT))
        compiles = [seconds(lambda salt=salt: all_cores.compile(tiled_matmul(salt))) for salt in range(2, 2 + REPEATS)]
        results["compile_s"] = statistics.median(compiles)
        results["first_time_s"] = seconds(lambda: all_cores.time(first, matrices, time_limit=LIMIT))
        results["run_s"] = statistics.median(
            seconds(lambda: all_cores.run(first, matrices, time_limit=LIMIT)) for _ in range(REPEATS)
        )
        results["checked_ratio"] = checked_ratio(one_core)
        for name, body in OPERATIONS.items():
            results[f"{name}_ns"] = nanoseconds_each(one_core, body)
    record(__file__, {**results, "compiler": find_compiler().version})


if __name__ == "__main__":
    main()
