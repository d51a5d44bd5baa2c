"""The simulator beside others that run GPU kernels on a CPU: numba's CUDA simulator, and PoCL (OpenCL).

    python benchmarks/against_others.py [--write]

The same three kernels, written for each: saxpy, a softmax with 32 lanes to a row, and a sum over each threadgroup as a
tree with a barrier at every level. Times are medians, compiled before, in nanoseconds an element; ours include the
process that every run starts, PoCL's the copies to and from its device. Numba's simulator, a Python thread for each
CUDA thread, gets fewer elements. A ratio is another's time over ours. Results are compared before anything is timed.

The others are no dependencies of this project. In an environment of its own:

    pip install -e . numba pyopencl pocl-binary-distribution

One that isn't there is left out, with a sentence. ``--write`` keeps the figures in against_others.toml.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from machine import record

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES, Array
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

LANES, GROUP = 32, 256  # threads to a row of the softmax, and in a threadgroup of the other two
LIMIT = 120.0

cuda: Any = None  # numba's module, once it is asked for

Kernel = Callable[[Array], Array]
"""Runs one kernel on [rows, columns] float32 and returns what it wrote."""


def expected(name: str, x: Array) -> Array:
    """Return what kernel ``name`` must write for ``x``."""
    if name == "saxpy":
        return 2.0 * x + 1.0
    if name == "tree":
        return x.reshape(-1, GROUP).sum(axis=1)
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


METAL = {
    "saxpy": "uint i = thread_position_in_grid.x; y[i] = 2.0f * x[i] + 1.0f;",
    "softmax": """
        uint lane = thread_index_in_simdgroup, n = x_shape[1], base = threadgroup_position_in_grid.x * n;
        float peak = -INFINITY, sum = 0.0f;
        for (uint c = lane; c < n; c += 32) peak = max(peak, x[base + c]);
        peak = simd_max(peak);
        for (uint c = lane; c < n; c += 32) sum += exp(x[base + c] - peak);
        sum = simd_sum(sum);
        for (uint c = lane; c < n; c += 32) y[base + c] = exp(x[base + c] - peak) / sum;
    """,
    "tree": """
        threadgroup float part[256];
        uint t = thread_position_in_threadgroup.x;
        part[t] = x[thread_position_in_grid.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint half = 128; half > 0; half /= 2) {
            if (t < half) part[t] += part[t + half];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (t == 0) y[threadgroup_position_in_grid.x] = part[0];
    """,
}

OPENCL = """
kernel void saxpy(global const float* x, global float* y, uint n) {
    uint i = get_global_id(0);
    y[i] = 2.0f * x[i] + 1.0f;
}
kernel void softmax(global const float* x, global float* y, uint n) {
    local float part[32];
    uint lane = get_local_id(0), base = get_group_id(0) * n;
    float peak = -INFINITY, sum = 0.0f;
    for (uint c = lane; c < n; c += 32) peak = max(peak, x[base + c]);
    part[lane] = peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 32; ++i) peak = max(peak, part[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint c = lane; c < n; c += 32) sum += exp(x[base + c] - peak);
    part[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0.0f;
    for (uint i = 0; i < 32; ++i) sum += part[i];
    for (uint c = lane; c < n; c += 32) y[base + c] = exp(x[base + c] - peak) / sum;
}
kernel void tree(global const float* x, global float* y, uint n) {
    local float part[256];
    uint t = get_local_id(0);
    part[t] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_ = 128; half_ > 0; half_ /= 2) {
        if (t < half_) part[t] += part[t + half_];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) y[get_group_id(0)] = part[0];
}
"""


def launch(name: str, x: Array) -> tuple[int, int, tuple[int, ...]]:
    """Return the threads of kernel ``name``, those of a threadgroup, and the shape that it writes."""
    if name == "softmax":
        return x.shape[0] * LANES, LANES, x.shape
    return x.size, GROUP, x.shape if name == "saxpy" else (x.size // GROUP,)


def ours() -> dict[str, Kernel]:
    """Return the kernels on this project's simulator."""
    device = SimulatorDevice(load_profile("apple-m3-max"))

    def kernel(name: str) -> Kernel:
        def run(x: Array) -> Array:
            threads, group, shape = launch(name, x)
            specs = ArraySpec("x", x.shape, DTYPES["float32"]), ArraySpec("y", shape, DTYPES["float32"])
            step = BoundPass(name, specs[:1], specs[1:], METAL[name], "", (threads, 1, 1), (group, 1, 1), ())
            return device.run(BoundProgram((step,), ("y",)), {"x": x}, time_limit=LIMIT).outputs["y"]

        return run

    return {name: kernel(name) for name in METAL}


def pocl() -> dict[str, Kernel]:
    """Return the kernels on PoCL; raise `ImportError` with what is missing."""
    os.environ.setdefault("POCL_CACHE_DIR", os.environ.get("TMPDIR", "/tmp"))
    cl: Any = importlib.import_module("pyopencl")
    platforms = [found for found in cl.get_platforms() if found.name == "Portable Computing Language"]
    if not platforms:
        raise ImportError("there is no PoCL (pip install pocl-binary-distribution)")
    context = cl.Context(platforms[0].get_devices())
    queue, program = cl.CommandQueue(context), cl.Program(context, OPENCL).build()

    def kernel(name: str) -> Kernel:
        function = cl.Kernel(program, name)

        def run(x: Array) -> Array:
            threads, group, shape = launch(name, x)
            y = np.empty(shape, np.float32)
            source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
            target = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, y.nbytes)
            function(queue, (threads,), (group,), source, target, np.uint32(x.shape[1]))
            cl.enqueue_copy(queue, y, target)
            queue.finish()
            return y

        return run

    return {name: kernel(name) for name in METAL}


def numba() -> dict[str, Kernel]:
    """Return the kernels on numba's CUDA simulator, which has no operations of a warp: a shared array stands in."""
    global cuda  # the simulator looks for the module among a kernel's globals, and puts its own in place
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    cuda = importlib.import_module("numba.cuda")
    kinds: Any = importlib.import_module("numba").float32

    @cuda.jit
    def saxpy(x, y, n):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        y[i] = np.float32(2.0) * x[i] + np.float32(1.0)

    @cuda.jit
    def softmax(x, y, n):  # type: ignore[no-untyped-def]
        part = cuda.shared.array(32, kinds)
        lane, base = cuda.threadIdx.x, cuda.blockIdx.x * n
        peak, total = np.float32(-np.inf), np.float32(0.0)
        for c in range(lane, n, 32):
            peak = max(peak, x[base + c])
        part[lane] = peak
        cuda.syncthreads()
        for i in range(32):
            peak = max(peak, part[i])
        cuda.syncthreads()
        for c in range(lane, n, 32):
            total += np.exp(x[base + c] - peak)
        part[lane] = total
        cuda.syncthreads()
        total = np.float32(0.0)
        for i in range(32):
            total += part[i]
        for c in range(lane, n, 32):
            y[base + c] = np.exp(x[base + c] - peak) / total

    @cuda.jit
    def tree(x, y, n):  # type: ignore[no-untyped-def]
        part = cuda.shared.array(256, kinds)
        t = cuda.threadIdx.x
        part[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        half = 128
        while half > 0:
            if t < half:
                part[t] += part[t + half]
            cuda.syncthreads()
            half //= 2
        if t == 0:
            y[cuda.blockIdx.x] = part[0]

    def kernel(name: str, function: Any) -> Kernel:
        def run(x: Array) -> Array:
            threads, group, shape = launch(name, x)
            y = np.empty(int(np.prod(shape)), np.float32)
            function[threads // group, group](x.reshape(-1), y, x.shape[1])
            return y.reshape(shape)

        return run

    return {name: kernel(name, function) for name, function in (("saxpy", saxpy), ("softmax", softmax), ("tree", tree))}


def nanoseconds(kernel: Kernel, x: Array, repeats: int) -> float:
    """Return the median time of ``kernel`` for each element of ``x``."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        kernel(x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / x.size * 1e9


SIMULATORS: dict[str, tuple[Callable[[], dict[str, Kernel]], tuple[int, int], int]] = {
    "ours": (ours, (4096, 1024), 7),
    "pocl": (pocl, (4096, 1024), 7),
    "numba": (numba, (16, 256), 3),
}
"""How to open each, rows and columns that it gets, and how often it is timed."""


def main() -> None:
    """Compare results, measure, print, and with ``--write`` keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    figures: dict[str, Any] = {}
    for simulator, (open_kernels, shape, repeats) in SIMULATORS.items():
        try:
            kernels = open_kernels()
        except ImportError as error:
            print(f"{simulator} is left out: {error}", file=sys.stderr)
            continue
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        for name, kernel in kernels.items():
            np.testing.assert_allclose(
                kernel(x), expected(name, x), rtol=1e-4, atol=1e-5, err_msg=f"{name} {simulator}"
            )
            figures[f"{name}_{simulator}_ns"] = nanoseconds(kernel, x, repeats)
            if simulator != "ours":
                ratio = figures[f"{name}_{simulator}_ns"] / figures[f"{name}_ours_ns"]
                figures[f"{name}_{simulator}_over_ours"] = ratio
    if write:
        record(__file__, figures)
        return
    for key, value in figures.items():
        print(f"{key:<36}{value:.4g}")


if __name__ == "__main__":
    main()
