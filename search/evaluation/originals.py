"""The right outputs by a problem's CUDA original, run on the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from search.devices.base import DeviceUnavailable, KernelFault
from search.devices.simulator.cuda_device import CudaSimulator
from search.devices.simulator.job import POISON
from search.kernels.cuda_program import CudaProgram, bind_launches
from search.kernels.dtypes import Array
from search.kernels.program import ProgramError
from search.problems.definition import Problem, ProblemError, Workload
from search.problems.original import Original

SECONDS = 60.0
"""The most that one run of an original may take."""


class OriginalFault(ProblemError):
    """The original does not run on these inputs; the message says where it went wrong."""


@dataclass(frozen=True)
class OriginalOutputs:
    """The outputs by the problem's names (float64), and where the original wrote them; the rest says nothing."""

    values: Mapping[str, Array]
    written: Mapping[str, Array]


def run_original(problem: Problem, workload: Workload, exact: Mapping[str, Array]) -> OriginalOutputs:
    """Run the original on ``exact`` (decoded values by the problem's names).

    Raises `OriginalFault` when it does not end well, `ProblemError` when it can't be launched or compiled.
    """
    original = problem.original
    assert original is not None
    where = f"{problem.folder / problem.reference_at} on workload '{workload.name}'"
    try:
        program = bind_original(problem, original, workload, exact)
        # One worker: the atomics of several blocks then come in one order, and sums come out the same each time.
        result = CudaSimulator(workers=1).run(program, given_arrays(original, program, exact), time_limit=SECONDS)
    except DeviceUnavailable as error:
        raise ProblemError(f"{where}: the CUDA original runs on the simulator: {error}") from error
    except ProgramError as error:
        raise ProblemError(f"{where}: {error}") from error
    except KernelFault as fault:
        line = f"line {fault.line}: " if fault.line is not None else ""
        kind = ProblemError if fault.stage in ("compile", "lint") else OriginalFault
        raise kind(f"{where}: the original: {line}{fault.message}") from fault
    if result.overruns:
        raise OriginalFault(f"{where}: the original writes outside of {', '.join(result.overruns)}")
    types = {array.spec.name: array.spec.dtype for array in program.arrays}
    values, written = {}, {}
    for tensor, spec in ((tensor, problem.arrays(workload)[tensor.name]) for tensor in problem.outputs):
        name = original.outputs[tensor.name]
        stored = result.outputs[name].reshape(-1)
        written[tensor.name] = ~unwritten(stored).reshape(spec.shape)
        values[tensor.name] = types[name].decode(stored).astype(np.float64).reshape(spec.shape)
    return OriginalOutputs(values, written)


def bind_original(problem: Problem, original: Original, workload: Workload, exact: Mapping[str, Array]) -> CudaProgram:
    """Return the launches of ``original`` under ``workload``, its numbers from ``exact``; raise `ProgramError`."""
    plan = original.plan
    numbers = {scalar.name for scalar in plan.scalars}
    scalars = {name: float(exact[tensor]) for tensor, name in original.inputs.items() if name in numbers}
    return bind_launches(plan, original.device_code, problem.bind_axes(workload), scalars)


def given_arrays(original: Original, program: CudaProgram, exact: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays that a run of ``program`` is given, in storage dtype."""
    tensors = {name: tensor for tensor, name in original.inputs.items()}
    return {spec.name: spec.dtype.encode(exact[tensors[spec.name]].reshape(spec.shape)) for spec in program.given}


def unwritten(array: Array) -> Array:
    """Return where a flat array in storage dtype still has the bits of memory that nothing wrote."""
    itemsize = array.dtype.itemsize
    if itemsize < 2:
        return np.zeros(array.shape, dtype=bool)
    words = array.view(np.uint16).reshape(array.size, itemsize // 2)
    return np.asarray((words == POISON).all(axis=1))
