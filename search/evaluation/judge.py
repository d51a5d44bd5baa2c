"""The judge: lint, compile, correctness on visible and hidden cases, then timing, into one frozen record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import numpy as np

from profiles.hardware import HardwareProfile
from search.devices.base import Checked, Checking, CheckReport, Device, KernelFault
from search.evaluation.cases import RANDOM, Case, bench_inputs, make_case, plan_cases
from search.evaluation.correctness import compare
from search.evaluation.guard import refuse_if_too_large, too_fast
from search.evaluation.limits import DEFAULT_LIMITS, Limits
from search.evaluation.record import FAILED, PASSED, Evaluation, Failure, WorkloadTime
from search.evaluation.timing import roofline_seconds, time_workload, workload_time
from search.evaluation.watching import failing, suspicion, watch, workloads_to_watch
from search.kernels.dtypes import Array, DType
from search.kernels.program import BoundProgram, Program, ProgramError, bind
from search.problems.definition import Problem, Workload
from translator.metal_lint import Launch, Rule, Surroundings, lint

Progress = Callable[[str], None]

HIDDEN = "hidden"


class _Refused(Exception):
    """The program failed; carries why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def evaluate(
    program: Program,
    problem: Problem,
    device: Device,
    profile: HardwareProfile,
    *,
    progress: Progress = lambda text: None,
    seed: int = 0,
    limits: Limits = DEFAULT_LIMITS,
) -> Evaluation:
    """Judge ``program`` on ``device``: proven correct and timed, or failed with the reason.

    ``seed`` draws the inputs. What is no fault of the program is raised: `search.problems.definition.ProblemError`
    when the problem's own code fails, `search.devices.base.DeviceUnavailable` when the device does.
    """
    trial = _Trial(program, problem, device, profile, progress, seed, limits)
    started = time.monotonic()
    failure = None
    try:
        trial.run()
    except _Refused as refused:
        failure = refused.failure
    return Evaluation(
        program=program.sha256,
        outcome=FAILED if failure else PASSED,
        device=device.name,
        kind=trial.kind,
        on=trial.on or device.describe(),
        failure=failure,
        times=() if failure else tuple(trial.times),
        cases=trial.cases,
        worst_error=trial.worst_error,
        compile_seconds=trial.compile_seconds,
        elapsed_seconds=time.monotonic() - started,
        mlx_version=version("mlx"),
    )


@dataclass
class _Trial:
    """One evaluation under way, and what it has found so far."""

    program: Program
    problem: Problem
    device: Device
    profile: HardwareProfile
    progress: Progress
    seed: int
    limits: Limits
    bound: dict[str, BoundProgram] = field(default_factory=dict)
    times: list[WorkloadTime] = field(default_factory=list)
    kind: str = ""
    on: str = ""
    cases: int = 0
    worst_error: float = 0.0
    compile_seconds: float = 0.0
    watched: dict[str, Checked] = field(default_factory=dict)
    doubt: str = ""
    """What the lint suspects of the launch: told when the outputs are wrong."""

    def run(self) -> None:
        """Take the stages in order, cheapest first; raise `_Refused` at the first that fails."""
        self.bind()
        self.lint()
        self.compile()
        for workload in workloads_to_watch(self.problem):
            self.watch(make_case(self.problem, workload, RANDOM, self.seed))
        planned = plan_cases(self.problem, self.seed)
        for number, (workload, kind) in enumerate(planned, 1):
            self.progress(f"checking {number}/{len(planned)} {HIDDEN if workload.hidden else workload.name}")
            case = make_case(self.problem, workload, kind, self.seed)
            try:
                self.check(case)
            except _Refused as refused:
                raise self.explained(case, refused) from refused
            self.cases = number
        bench = self.problem.of_role("bench")
        for number, workload in enumerate(bench, 1):
            self.progress(f"timing {number}/{len(bench)} {workload.name}")
            self.time(workload)

    def bind(self) -> None:
        results = tuple(tensor.name for tensor in self.problem.outputs)
        for workload in self.problem.workloads:
            arrays, axes = self.problem.arrays(workload), self.problem.bind_axes(workload)
            with _blame(workload):
                bound = bind(self.program, arrays, results, axes, workload.dtypes)
                refuse_if_too_large(bound)
            self.bound[workload.name] = bound

    def lint(self) -> None:
        for number, step in enumerate(self.program.passes):
            for finding in lint(step.source, step.header, self.around(number)):
                if finding.severity == "error":
                    raise _Refused(_at_line("lint", finding.message, step.name, finding.line, finding.in_header))
                if finding.rule == Rule.GRID_IN_BLOCKS:
                    self.doubt = self.doubt or finding.message

    def around(self, number: int) -> Surroundings:
        """Return the arrays of a pass and its launch under each workload that isn't hidden."""
        visible = [workload.name for workload in self.problem.workloads if not workload.hidden]
        steps = [self.bound[name].passes[number] for name in visible]
        launches = (Launch(step.grid, step.threadgroup, _as_metal(step.template)) for step in steps)
        step = self.program.passes[number]
        return Surroundings(step.inputs, step.outputs, tuple(launches))

    def compile(self) -> None:
        self.progress("compiling")
        started = time.monotonic()
        for workload in self.problem.workloads:
            with _blame(workload):
                self.device.compile(self.bound[workload.name])
        self.compile_seconds = time.monotonic() - started

    def watch(self, case: Case) -> None:
        """Run one case with every access watched, where the device can: that says why, not only that."""
        if not isinstance(self.device, Checking):
            return
        name = case.workload.name
        self.progress(f"watching {name}")
        with _blame(case.workload):
            self.watched[name] = watch(self.device, self.bound[name], case)
        if report := failing(self.watched[name]):
            raise _Refused(_reported(report, case.workload))

    def explained(self, case: Case, refused: _Refused) -> _Refused:
        """Return the refusal with its reason, if watching the case that failed finds one."""
        name = case.workload.name
        if case.workload.hidden or refused.failure.stage in ("timeout", "launch", "compile"):
            return refused
        if name not in self.watched:
            try:
                self.watch(case)
            except _Refused as explanation:
                return explanation
        if reason := (suspicion(self.watched[name]) if name in self.watched else "") or self.doubt:
            told = f"{refused.failure.message}; perhaps because {reason}"
            return _Refused(replace(refused.failure, message=told))
        return refused

    def check(self, case: Case) -> None:
        """Run one case, random ones twice: a race or an element that is never written shows as runs that differ."""
        first = self.run_once(case)
        second = self.run_once(case) if case.kind == RANDOM else first
        specs = self.problem.arrays(case.workload)
        for name, want in case.want.items():
            dtype = specs[name].dtype
            tolerance = self.problem.tolerance[dtype.name]
            compared = case.compared.get(name)
            again = compare(second[name], dtype.decode(first[name]).astype(np.float64), dtype, tolerance, compared)
            if again.mismatch:
                summary = (
                    f"two runs on the same inputs differ in '{name}': is a barrier missing, or an element unwritten?"
                )
                raise _refusal(case, "nondeterministic", summary, again.mismatch.describe(name))
            found = compare(first[name], want, dtype, tolerance, compared)
            self.worst_error = max(self.worst_error, found.error)
            if found.mismatch:
                summary = f"'{name}' is wrong, by up to {found.error:.3g} times the tolerance"
                raise _refusal(case, "correctness", summary, found.mismatch.describe(name))
        if case.kind == RANDOM and (watched := self.watched.get(case.workload.name)) and watched.complete:
            self.check_other_order(case, watched)

    def check_other_order(self, case: Case, watched: Checked) -> None:
        """Check what the watched run computed: its threads ran in another order than those of plain runs."""
        specs = self.problem.arrays(case.workload)
        for name, got in watched.outputs.items():
            dtype = specs[name].dtype
            tolerance = self.problem.tolerance[dtype.name]
            found = compare(got, case.want[name], dtype, tolerance, case.compared.get(name))
            if found.mismatch:
                summary = (
                    f"'{name}' is right when threads run in the order of their numbers, and wrong in another order: it "
                    "hangs on which thread comes first, which a GPU does not promise"
                )
                raise _refusal(case, "nondeterministic", summary, found.mismatch.describe(name))

    def run_once(self, case: Case) -> Mapping[str, Array]:
        with _blame(case.workload):
            result = self.device.run(self.bound[case.workload.name], case.inputs, time_limit=self.limits.run)
        if result.overruns:
            names = ", ".join(f"'{name}'" for name in result.overruns)
            raise _refusal(case, "bounds", f"{names} was written outside its bounds")
        return result.outputs

    def time(self, workload: Workload) -> None:
        bound = self.bound[workload.name]
        inputs = bench_inputs(self.problem, workload, self.seed)
        with _blame(workload):
            taken, baseline = time_workload(self.device, self.problem, workload, bound, inputs, self.limits.timing)
        least = roofline_seconds(self.problem, workload, self.profile)
        if failure := too_fast(taken, least, workload.name):
            raise _Refused(failure)
        self.kind, self.on = taken.kind, taken.on
        self.times.append(workload_time(workload, taken, least, baseline))


def _as_metal(template: tuple[tuple[str, int | bool | DType], ...]) -> dict[str, str]:
    """Return template values as they stand in Metal."""
    return {name: value.metal if isinstance(value, DType) else str(value).lower() for name, value in template}


@contextmanager
def _blame(workload: Workload) -> Iterator[None]:
    """Turn what a program does wrong under ``workload`` into a failure; nothing of a hidden workload's data shows."""
    try:
        yield
    except ProgramError as error:
        failure = Failure("launch", str(error), workload=workload.name)
    except KernelFault as fault:
        failure = replace(
            _at_line(fault.stage, fault.message, fault.pass_name, fault.line, fault.in_header), workload=workload.name
        )
    else:
        return
    if workload.hidden:
        told = failure.message if failure.stage == "compile" else _HIDDEN_WORDS.get(failure.stage, failure.stage)
        failure = replace(failure, message=f"a hidden case failed: {told}", workload=HIDDEN)
    raise _Refused(failure)


# What may be said of a fault in a hidden case, whose own message would give away its sizes.
_HIDDEN_WORDS = {
    "launch": "it can't be launched for that shape",
    "crash": "the kernel crashed",
    "timeout": "the kernel did not end in time",
    "bounds": "an array was accessed outside its bounds",
    "divergence": "threads of a group disagreed at a barrier or simdgroup operation",
    "memory": "more threadgroup memory was asked for than there is",
}


def _at_line(stage: str, message: str, pass_name: str, line: int | None, in_header: bool) -> Failure:
    """Return a failure with a line of the kernel's source, or of its header, which the message then says too."""
    told = f"in the header: {message}" if in_header else message
    return Failure(stage, told, pass_name, line, in_header=in_header)


def _reported(report: CheckReport, workload: Workload) -> Failure:
    failure = _at_line(report.stage, report.message, report.pass_name, report.line, report.in_header)
    return replace(failure, workload=workload.name)


def _refusal(case: Case, stage: str, summary: str, detail: str = "") -> _Refused:
    """Return the refusal on ``case``; ``detail`` has its data, so a hidden case leaves it out."""
    if case.workload.hidden:
        return _Refused(Failure(stage, f"a hidden case with {case.kind} inputs failed: {summary}", workload=HIDDEN))
    text = f"{summary}: {detail}" if detail else summary
    return _Refused(Failure(stage, f"with {case.kind} inputs, {text}", workload=case.workload.name))
