"""The device ``metal``: a program as MLX custom kernels on an Apple GPU, proven there and timed by the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import mlx.core as mx

from search.devices.base import MEASURED, DeviceTime, DeviceUnavailable, RunResult
from search.devices.measuring import Batch, Interval, measure_in_turn
from search.devices.mlx_kernel import Arrays, launch, launch_guarded, mlx_dtype, to_mlx
from search.kernels.dtypes import Array
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

# The last-level cache of the largest chip (M-Ultra): inputs are rotated through more than that.
_CACHE_BYTES = 96 << 20
_MOST_SETS = 16


class MetalDevice:
    """MLX's Metal back end on this Mac."""

    name = "metal"

    def __init__(self) -> None:
        """Raise `DeviceUnavailable` where MLX has no Metal back end."""
        if not mx.metal.is_available():
            raise DeviceUnavailable(
                "the device 'metal' needs a Mac with Apple silicon and macOS 14 or later, and MLX finds no Metal here: "
                "take the device 'simulator', which runs the same kernels on any machine"
            )
        self.gpu = str(mx.device_info(mx.gpu)["device_name"])
        self._compiled: set[tuple[object, ...]] = set()
        self._runs = 0

    def describe(self) -> str:
        """Return the GPU as a person knows it."""
        return f"metal → {self.gpu} (measured)"

    def compile(self, bound: BoundProgram) -> None:
        """Compile every pass by launching it once on zeros, because MLX compiles at the first launch and no sooner."""
        kernels = tuple(_kernel_key(step) for step in bound.passes)
        if kernels in self._compiled:
            return
        written = {spec.name for step in bound.passes for spec in step.outputs}
        needed = {spec.name: spec for step in bound.passes for spec in step.inputs if spec.name not in written}
        launch_guarded(bound, {name: mx.zeros(spec.shape, mlx_dtype(spec.dtype)) for name, spec in needed.items()}, 0)
        self._compiled.add(kernels)

    def run(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> RunResult:
        """Run once with outputs poisoned and a guard behind each; raise `KernelFault` when MLX or Metal refuses.

        Reads out of bounds, and writes before an array or far behind it, only the simulator sees: an MLX array can't
        be given a guard in front. ``time_limit`` can't be held here, for nothing in a process stops a GPU that is under
        way: the limit of the whole evaluation does, by ending the process.
        """
        self._runs += 1
        specs = {spec.name: spec for step in bound.passes for spec in step.inputs}
        arrays = {name: to_mlx(array, specs[name].dtype) for name, array in inputs.items() if name in specs}
        return launch_guarded(bound, arrays, self._runs)

    def time(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> DeviceTime:
        """Return the measured time of one run, each after the one before, on inputs that no cache holds."""
        specs = {spec.name: spec for step in bound.passes for spec in step.inputs}
        sets = _input_sets({name: array for name, array in inputs.items() if name in specs}, specs)
        (taken,) = measure_in_turn([chain(lambda arrays: launch(bound, arrays), sets)], time_limit=time_limit)
        return self._device_time(taken)

    def time_beside(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, Array],
        specs: Mapping[str, ArraySpec],
        baseline: Callable[[Arrays], list[Any]],
        *,
        time_limit: float,
    ) -> tuple[DeviceTime, DeviceTime]:
        """Return the measured times of ``bound`` and of MLX's own ``baseline``, on the same inputs, in turn."""
        sets = _input_sets(inputs, specs)
        batches = [chain(lambda arrays: launch(bound, arrays), sets), chain(baseline, sets)]
        ours, theirs = measure_in_turn(batches, time_limit=time_limit)
        return self._device_time(ours), self._device_time(theirs)

    def close(self) -> None:
        """Give the buffers that MLX keeps back to the system."""
        mx.clear_cache()

    def _device_time(self, taken: Interval) -> DeviceTime:
        return DeviceTime(MEASURED, self.gpu, taken.median, taken.low, taken.high)


def chain(work: Callable[[Arrays], list[Any]], input_sets: list[Arrays]) -> Batch:
    """Return a batch that runs ``work`` again and again, each run after the one before, over ``input_sets`` in turn.

    MLX is lazy and Metal runs independent kernels side by side, so a run is made to follow: a kernel of one thread
    reads an element of each output, and the next run's inputs depend on it. Only the execution is timed, not the
    building of the graph.
    """

    def run(count: int) -> float:
        outputs: list[Any] = []
        for i in range(count):
            outputs = work(_after(outputs, input_sets[i % len(input_sets)]))
        mx.synchronize()
        start = time.perf_counter()
        mx.eval(outputs)
        mx.synchronize()
        return time.perf_counter() - start

    return run


def _after(outputs: list[Any], inputs: Arrays) -> Arrays:
    """Return ``inputs`` so that they can't be used before ``outputs`` are there.

    Scalars stay as they are, because a baseline may read their value in Python.
    """
    if not outputs:
        return inputs
    read = [output.reshape(-1)[:1] == 0 for output in outputs]
    names = [name for name, array in inputs.items() if array.ndim]
    return {**inputs, **dict(zip(names, mx.depends([inputs[name] for name in names], read), strict=True))}


def _input_sets(inputs: Mapping[str, Array], specs: Mapping[str, ArraySpec]) -> list[Arrays]:
    """Return copies of ``inputs`` on the GPU, enough that by the time one comes round again no cache holds it."""
    size = sum(specs[name].nbytes for name in inputs)
    count = min(_MOST_SETS, max(2, math.ceil(2 * _CACHE_BYTES / max(size, 1))))
    sets: list[Arrays] = [
        {name: to_mlx(array, specs[name].dtype) for name, array in inputs.items()} for _ in range(count)
    ]
    mx.eval(sets)
    return sets


def _kernel_key(step: BoundPass) -> tuple[object, ...]:
    """Return what decides which kernel MLX compiles: text, template, and each array's type and address space."""
    arrays = tuple(
        (spec.name, spec.dtype.name, not spec.shape, math.prod(spec.shape) < 8)
        for spec in (*step.inputs, *step.outputs)
    )
    return step.source, step.header, step.template, arrays, step.threadgroup, step.atomic_outputs
