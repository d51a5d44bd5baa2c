"""How long a program takes on a bench workload, beside what the hardware allows and what MLX's own call takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from profiles.hardware import HardwareProfile
from profiles.roofline import least_seconds
from search.devices.base import Device, DeviceTime
from search.evaluation.record import WorkloadTime
from search.kernels.dtypes import Array
from search.kernels.program import ArraySpec, BoundProgram
from search.problems.definition import Problem, Workload

Baseline = Callable[[Mapping[str, Any]], list[Any]]


@runtime_checkable
class TimesBaseline(Protocol):
    """A device on which MLX itself runs, so that a program can be timed in turn with MLX's own call."""

    def time_beside(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, Array],
        specs: Mapping[str, ArraySpec],
        baseline: Baseline,
        *,
        time_limit: float,
    ) -> tuple[DeviceTime, DeviceTime]:
        """Return the time of one run of ``bound`` and of ``baseline`` (inputs by name as ``mx.array``), in turn."""


def roofline_seconds(problem: Problem, workload: Workload, profile: HardwareProfile) -> float:
    """Return the least time for the bytes and FLOPs of one run, at the rates of its first output's dtype."""
    bytes_moved, flops = problem.cost(workload)
    dtype = problem.arrays(workload)[problem.outputs[0].name].dtype.name
    return least_seconds(bytes_moved, flops, dtype, profile)


def time_workload(
    device: Device, problem: Problem, workload: Workload, bound: BoundProgram, inputs: Mapping[str, Array], limit: float
) -> tuple[DeviceTime, float]:
    """Return the time of one run on ``device`` and the seconds of MLX's own call (0.0 where none can run there)."""
    if not isinstance(device, TimesBaseline) or not problem.baseline_at:
        return device.time(bound, inputs, time_limit=limit), 0.0
    axes, specs = problem.bind_axes(workload), problem.arrays(workload)
    ours, theirs = device.time_beside(
        bound, inputs, specs, lambda arrays: problem.baseline(**arrays, axes=axes), time_limit=limit
    )
    return ours, theirs.seconds


def workload_time(workload: Workload, time: DeviceTime, least: float, baseline_seconds: float) -> WorkloadTime:
    """Return the record of one bench workload; the modelled terms of several passes are added up."""
    terms: dict[str, float] = {}
    for part in time.passes:
        for name, seconds in part.terms.items():
            terms[name] = terms.get(name, 0.0) + seconds
    return WorkloadTime(workload.name, time.seconds, time.low, time.high, least, baseline_seconds, time.bound_by, terms)
