"""The simulator: a Metal kernel compiled for this machine's CPU, run to be judged and counted to be modelled."""

from __future__ import annotations

import os
from collections.abc import Mapping

from profiles.counts import PassCounts
from profiles.hardware import HardwareProfile
from profiles.roofline import modelled_pass
from search.devices.base import MODELLED, Checked, DeviceTime, PassTime, RunResult
from search.devices.simulator.builds import build_unit, built_runner
from search.devices.simulator.compilers import find_compiler
from search.devices.simulator.counting import pass_counts, registers_per_thread
from search.devices.simulator.job import Limits, Outcome, checked_run, run_job
from search.devices.simulator.screening import screen
from search.devices.simulator.toolchain import CHECKED, COUNTED, FAST, frame_bytes
from search.devices.simulator.unit import Unit, unit_of
from search.kernels.dtypes import Array
from search.kernels.program import BoundPass, BoundProgram

COUNTING_BUDGET = 40_000_000
"""Accesses and basic blocks to run while counting one pass: about a second."""


class SimulatorDevice:
    """Runs Metal kernels on the CPU; times are modelled for ``profile``. ``workers`` defaults to the CPU's cores."""

    name = "simulator"

    def __init__(self, profile: HardwareProfile, *, workers: int | None = None) -> None:
        self.profile = profile
        self.workers = workers or os.cpu_count() or 1
        find_compiler()

    def describe(self) -> str:
        """Return what a person should see as the device."""
        return f"simulator → {self.profile.name} (modelled)"

    def compile(self, bound: BoundProgram) -> None:
        """Compile every pass; raise `KernelFault` (stage ``compile``) with the kernel's own line. Repeats are free."""
        for step in bound.passes:
            build_unit(_unit(step), FAST, step.name)

    def run(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> RunResult:
        """Run once on ``inputs`` (storage dtype) with outputs poisoned and guarded; raise `KernelFault` on failure."""
        outcome = self._job(bound, inputs, time_limit)
        return RunResult({name: outcome.arrays[name] for name in bound.results}, outcome.overruns)

    def time(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> DeviceTime:
        """Return the modelled time of one run, from the work that a sample of its threadgroups did."""
        passes = []
        for counts in self.count(bound, inputs, time_limit=time_limit):
            modelled = modelled_pass(counts, self.profile)
            passes.append(PassTime(counts.name, modelled.seconds, modelled.terms, modelled.bound_by))
        seconds = sum(entry.seconds for entry in passes)
        longest = max(passes, key=lambda entry: entry.seconds)
        return DeviceTime(
            MODELLED, self.profile.name, seconds, seconds, seconds, bound_by=longest.bound_by, passes=tuple(passes)
        )

    def count(
        self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float, budget: int = COUNTING_BUDGET
    ) -> tuple[PassCounts, ...]:
        """Return the work of each pass, from a sample of its threadgroups that is as large as ``budget`` allows."""
        outcome = self._job(bound, inputs, time_limit, budget=budget)
        counts = []
        for step, raw in zip(bound.passes, outcome.counts, strict=True):
            registers = registers_per_thread(frame_bytes(unit_of(step).text))
            counts.append(pass_counts(step.name, raw, self.profile, registers=registers))
        return tuple(counts)

    def check(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, Array],
        *,
        time_limit: float,
        seed: int = 0,
        in_turns: bool = False,
    ) -> Checked:
        """Run once, every access watched, threads in an order that ``seed`` chooses (0: that of their numbers).

        In the order of numbers a simdgroup goes on to the next barrier, which shows what is missing between two; with
        ``in_turns`` simdgroups keep pace, operation by operation, as a GPU mostly has them do.
        """
        return checked_run(self._job(bound, inputs, time_limit, seed=seed, in_turns=in_turns), bound.results)

    def close(self) -> None:
        """Nothing outlives a call: each run is a process that has ended."""

    def _job(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, Array],
        time_limit: float,
        *,
        budget: int = 0,
        seed: int | None = None,
        in_turns: bool = False,
    ) -> Outcome:
        units = tuple(_unit(step) for step in bound.passes)
        how = CHECKED if seed is not None else COUNTED if budget else FAST
        libraries = tuple(build_unit(unit, how, step.name) for step, unit in zip(bound.passes, units, strict=True))
        limits = Limits(
            seconds=time_limit,
            workers=self.workers,
            line_bytes=self.profile.cache_line_bytes,
            block_bytes=self.profile.l1_bytes_per_cycle,
            threadgroup_bytes=self.profile.threadgroup_memory_bytes,
            budget=budget,
            seed=seed,
            in_turns=in_turns,
        )
        return run_job(built_runner(), bound, units, libraries, inputs, limits)


def _unit(step: BoundPass) -> Unit:
    screen(step)
    return unit_of(step)
