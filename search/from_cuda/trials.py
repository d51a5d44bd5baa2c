"""Which sizes a problem from a CUDA file is checked at: small ones at which the original itself has no fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from profiles.hardware import HardwareProfile
from search.devices.base import KernelFault
from search.devices.simulator.cuda_device import CudaSimulator
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.cases import RANDOM, fill_inputs
from search.evaluation.originals import SECONDS, bind_original, given_arrays
from search.kernels.program import Program, ProgramError, bind
from search.problems.definition import Problem, Workload

CHECKS, HIDDEN = 8, 2
"""Check workloads of a problem, and how many of these are hidden."""

CANDIDATES = 3 * CHECKS

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """The sizes that can be checked, and in words why others can't be: what is wrong with the original there."""

    workloads: tuple[Workload, ...]
    finds: tuple[str, ...]


def try_sizes(
    problem: Problem, workloads: Iterable[Workload], root: Program | None, profile: HardwareProfile, progress: Progress
) -> Tried:
    """Run the original at each of ``workloads``, every access watched, until there are enough without a fault.

    A size that ``root`` can't be launched or compiled at is left out too. Raises `KernelFault` when the original does
    not compile.
    """
    kept: list[Workload] = []
    launched: list[Workload] = []
    finds: dict[str, None] = {}
    for workload in workloads:
        progress(f"running the original at {workload.name}")
        try:
            fault = _fault(problem, workload)
        except ProgramError as error:
            finds[f"{workload.name} is left out: {error}"] = None
            continue
        launched.append(workload)
        fault = fault or (_unfit(problem, workload, root, profile) if root is not None else "")
        if fault:
            finds[f"{workload.name} is left out: {fault}"] = None
            continue
        kept.append(workload)
        if len(kept) == CHECKS:
            break
    if launched and not kept:
        finds["no size is without a fault, so that the checks say little: mend the original first"] = None
    return Tried(tuple(kept or launched[:CHECKS]), tuple(finds))


def original_inputs(problem: Problem, workload: Workload) -> Mapping[str, np.ndarray]:
    """Return random inputs of a workload, decoded."""
    inputs = fill_inputs(problem, workload, RANDOM, np.random.default_rng(0))
    arrays = problem.arrays(workload)
    return {name: arrays[name].dtype.decode(array) for name, array in inputs.items()}


def _fault(problem: Problem, workload: Workload) -> str:
    """Return what is certainly wrong with the original at one size, "" when nothing is."""
    assert problem.original is not None
    exact = original_inputs(problem, workload)
    program = bind_original(problem, problem.original, workload, exact)
    given = given_arrays(problem.original, program, exact)
    try:
        reports = CudaSimulator(workers=1).check(program, given, time_limit=SECONDS).reports
    except KernelFault as fault:
        if fault.stage in ("compile", "lint"):
            raise
        return f"line {fault.line or '?'} of the original: {fault.message}"
    certain = [report for report in reports if report.certain]
    return f"line {certain[0].line or '?'} of the original: {certain[0].message}" if certain else ""


def _unfit(problem: Problem, workload: Workload, root: Program, profile: HardwareProfile) -> str:
    """Return why the root program can't be launched at one size, "" when it can."""
    results = tuple(tensor.name for tensor in problem.outputs)
    try:
        bound = bind(root, problem.arrays(workload), results, problem.bind_axes(workload), workload.dtypes)
        SimulatorDevice(profile, workers=1).compile(bound)
    except (ProgramError, KernelFault) as error:
        return f"the translation: {error}"
    return ""
