"""Try the judge on kernels whose verdict is known: planted faults it must catch, right kernels it must not refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from profiles.hardware import HardwareProfile
from search.devices.base import Device
from search.evaluation.judge import evaluate
from search.evaluation.record import Failure
from search.evaluation.selftest.planted import Fault, Kernel
from search.kernels.text import program_from_text
from search.problems.definition import load_problem


@dataclass(frozen=True)
class Trial:
    """One kernel to judge: right when ``fault`` is None, else with that fault planted."""

    kernel: Kernel
    fault: Fault | None = None

    @property
    def name(self) -> str:
        """The kernel, and the fault where there is one."""
        return f"{self.kernel.name}: {self.fault.name}" if self.fault else self.kernel.name


@dataclass(frozen=True)
class Verdict:
    """What the judge made of a trial: why it failed the kernel, None when it passed."""

    trial: Trial
    failure: Failure | None

    @property
    def caught(self) -> bool:
        """Whether a planted fault failed the kernel at a stage where its own reason shows."""
        return (
            self.failure is not None and self.trial.fault is not None and self.failure.stage in self.trial.fault.stages
        )

    @property
    def complaint(self) -> str:
        """What is wrong with the verdict, '' when it is the known one."""
        fault, failure = self.trial.fault, self.failure
        if fault is None:
            return f"falsely refused at {failure.stage}: {failure.message}" if failure else ""
        if failure is None:
            return f"passed: {fault.what}"
        if not self.caught:
            return f"refused at {failure.stage}, not at {' or '.join(fault.stages)}: {failure.message}"
        return ""


def trials_of(kernels: Iterable[Kernel]) -> tuple[Trial, ...]:
    """Return one trial for each kernel and for each fault planted in it."""
    return tuple(Trial(kernel, fault) for kernel in kernels for fault in (None, *kernel.faults))


def judge(trial: Trial, device: Device, profile: HardwareProfile, *, seed: int = 0) -> Verdict:
    """Judge one trial as a candidate of a search is judged, up to the timing: that is no part of what is known."""
    problem = load_problem(trial.kernel.folder)
    untimed = replace(problem, workloads=problem.of_role("check"))
    text = trial.kernel.with_fault(trial.fault) if trial.fault else trial.kernel.text
    return Verdict(trial, evaluate(program_from_text(text), untimed, device, profile, seed=seed).failure)


def judge_all(trials: Iterable[Trial], device: Device, profile: HardwareProfile, *, workers: int) -> Iterator[Verdict]:
    """Judge ``trials``, ``workers`` at a time; yield each verdict as it comes.

    Compiling and running happen in other processes, so threads are enough.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(judge, trial, device, profile) for trial in trials]
        try:
            yield from (done.result() for done in as_completed(waiting))
        finally:
            pool.shutdown(cancel_futures=True)
