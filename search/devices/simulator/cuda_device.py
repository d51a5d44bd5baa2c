"""CUDA kernels as they are, on the simulator: run to be compared with a translation, and checked for mistakes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile
from search.devices.base import Checked, RunResult
from search.devices.simulator.builds import build_unit, built_runner
from search.devices.simulator.compilers import find_compiler
from search.devices.simulator.counting import pass_counts
from search.devices.simulator.cuda_screening import screen_cuda
from search.devices.simulator.cuda_unit import bound_program, contents, device_code, units_of
from search.devices.simulator.cuda_words import cuda_report, telling_in_cudas_words
from search.devices.simulator.device import COUNTING_BUDGET
from search.devices.simulator.job import Limits, Outcome, checked_run, run_job
from search.devices.simulator.toolchain import CHECKED, COUNTED, FAST
from search.devices.simulator.unit import Unit
from search.kernels.cuda_program import MOST_SHARED_BYTES, CudaProgram
from search.kernels.dtypes import Array
from search.kernels.program import BoundProgram

LINE_BYTES = 128
"""A cache line of an NVIDIA GPU."""

SECTOR_BYTES = 32
"""The part of a line that such a cache moves at once."""


class CudaSimulator:
    """Runs the kernels of a `CudaProgram` on the CPU. ``workers`` defaults to the CPU's cores."""

    def __init__(self, *, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        find_compiler()

    def compile(self, program: CudaProgram) -> None:
        """Compile every launch; raise `KernelFault` (stage ``compile``) at the source's own line. Repeats are free."""
        with telling_in_cudas_words():
            bound, units = _passes(program)
            for step, unit in zip(bound.passes, units, strict=True):
                build_unit(unit, FAST, step.name)

    def run(self, program: CudaProgram, inputs: Mapping[str, Array], *, time_limit: float) -> RunResult:
        """Run the launches in order on ``inputs`` (storage dtype, one for each of ``program.given``).

        What is neither given nor zeroed begins as poison. Raises `KernelFault` on failure.
        """
        outcome = self._job(program, inputs, time_limit)
        return RunResult({name: outcome.arrays[name] for name in program.results}, outcome.overruns)

    def check(self, program: CudaProgram, inputs: Mapping[str, Array], *, time_limit: float, seed: int = 0) -> Checked:
        """Do as `run`, every access watched, threads in an order that ``seed`` chooses (0: that of their numbers)."""
        checked = checked_run(self._job(program, inputs, time_limit, seed=seed), program.results)
        return replace(checked, reports=tuple(cuda_report(report) for report in checked.reports))

    def count(
        self,
        program: CudaProgram,
        inputs: Mapping[str, Array],
        profile: HardwareProfile,
        *,
        time_limit: float,
        budget: int = COUNTING_BUDGET,
    ) -> tuple[PassCounts, ...]:
        """Return the work of each launch, from a sample of its blocks, as the GPU of ``profile`` would do it."""
        lines = profile.cache_line_bytes, profile.l1_bytes_per_cycle
        outcome = self._job(program, inputs, time_limit, budget=budget, lines=lines)
        return tuple(
            pass_counts(launch.kernel, raw, profile)
            for launch, raw in zip(program.launches, outcome.counts, strict=True)
        )

    def _job(
        self,
        program: CudaProgram,
        inputs: Mapping[str, Array],
        time_limit: float,
        *,
        seed: int | None = None,
        budget: int = 0,
        lines: tuple[int, int] = (LINE_BYTES, SECTOR_BYTES),
    ) -> Outcome:
        how = CHECKED if seed is not None else COUNTED if budget else FAST
        limits = Limits(
            seconds=time_limit,
            workers=self.workers,
            line_bytes=lines[0],
            block_bytes=lines[1],
            threadgroup_bytes=MOST_SHARED_BYTES,
            budget=budget,
            seed=seed,
        )
        with telling_in_cudas_words():
            bound, units = _passes(program)
            libraries = tuple(build_unit(unit, how, step.name) for step, unit in zip(bound.passes, units, strict=True))
            return run_job(built_runner(), bound, units, libraries, contents(program, inputs), limits)


def _passes(program: CudaProgram) -> tuple[BoundProgram, tuple[Unit, ...]]:
    screen_cuda(program)
    code = device_code(program)
    return bound_program(program, code), units_of(program, code)
