"""What no test on outputs can show: a launch that would take the machine down, and a time too good to be true."""

from __future__ import annotations

import math

from search.devices.base import DeviceTime
from search.evaluation.record import Failure
from search.kernels.program import BoundProgram, ProgramError

_MOST_BYTES = 8 << 30
_MOST_THREADS = 1 << 32

# The least time takes the bandwidth that the maker states; a run may beat that by a little where a cache still holds
# some of its inputs.
_SLACK = 0.9


def refuse_if_too_large(bound: BoundProgram) -> None:
    """Raise `ProgramError` when the arrays of one run need more than 8 GiB, or a grid has more than 2^32 threads.

    Buffers and grids come from expressions that a model wrote.
    """
    sizes = {spec.name: spec.nbytes for step in bound.passes for spec in (*step.inputs, *step.outputs)}
    if (total := sum(sizes.values())) > _MOST_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise ProgramError(f"the arrays need {total / 2**30:.3g} GiB, '{largest}' the most; 8 GiB are allowed")
    for step in bound.passes:
        if math.prod(step.grid) > _MOST_THREADS:
            grid = " x ".join(map(str, step.grid))
            raise ProgramError(f"pass '{step.name}' has a grid of {grid} threads; 2^32 are allowed")


def too_fast(time: DeviceTime, least_seconds: float, workload: str) -> Failure | None:
    """Return a failure when the whole interval of ``time`` lies under the least time that the hardware allows.

    Such a kernel does not do the work: a grid too small, rows skipped, an answer kept from an earlier run.
    """
    if time.high >= _SLACK * least_seconds:
        return None
    return Failure(
        "timing",
        f"{time.high * 1e6:.3g} µs is faster than the hardware allows: the bytes and FLOPs of the problem take "
        f"{least_seconds * 1e6:.3g} µs on this profile. Part of the work is not done, or the profile is not this GPU's",
        workload=workload,
    )
