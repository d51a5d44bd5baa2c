"""What an evaluation found, in lines for a model: times with what bounds them, and failures with the lines they name.

What it says of hidden workloads is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from search.evaluation.record import Evaluation, Failure, WorkloadTime
from search.kernels.program import Program
from search.problems.definition import Problem, Workload
from translator.quoting import plain

LINES_AROUND, MOST_NAMED = 2, 8
MOST_TIMES = 4
LEAST_TERM = 0.01
"""Terms that are less than this share of a time are left out."""

_LINE = re.compile(r"\bline (\d{1,6})( of the header)?")


def times_line(evaluation: Evaluation, problem: Problem) -> str:
    """Return the times of the visible workloads, the first `MOST_TIMES` of them, as one line."""
    times = visible_times(evaluation, problem)
    more = f"; and {len(times) - MOST_TIMES} more" if len(times) > MOST_TIMES else ""
    return "; ".join(map(_time, times[:MOST_TIMES])) + more or "no times"


def timing_record(evaluation: Evaluation, problem: Problem) -> str:
    """Return a line for each visible workload, and one with the terms of its time, where they are known."""
    lines = [f"{evaluation.kind} on {plain(evaluation.on)}"]
    for time in visible_times(evaluation, problem):
        baseline = f", MLX's own call {duration(time.baseline_seconds)}" if time.baseline_seconds > 0 else ""
        lines.append(f"{_time(time)}{baseline}, least possible {duration(time.roofline_seconds)}")
        terms = sorted(time.terms.items(), key=lambda term: (-term[1], term[0]))
        told = [f"{plain(name)} {duration(value)}" for name, value in terms if value >= LEAST_TERM * time.seconds]
        if told:
            lines.append(f"    terms: {', '.join(told)}")
    return "\n".join(lines)


def failure_line(failure: Failure) -> str:
    """Return a failure as one line: stage, place and message."""
    line = f", line {failure.line}{' of the header' if failure.in_header else ''}" if failure.line is not None else ""
    return f"{plain(failure.stage)}{line}: {plain(failure.message)}"


def failure_record(failure: Failure, program: Program, problem: Problem) -> str:
    """Return a failure in full: the stage, the workload with its sizes, the message, and each line that it names."""
    lines = [f"stage: {plain(failure.stage)}"]
    if failure.pass_name:
        lines.append(f"pass: {plain(failure.pass_name)}")
    lines += [f"workload: {where}" for where in _workload(failure.workload, problem)]
    lines.append(f"message: {plain(failure.message)}")
    lines += _named_lines(failure, program)
    return "\n".join(lines)


def visible_times(evaluation: Evaluation, problem: Problem) -> list[WorkloadTime]:
    """Return the times of workloads that are not hidden."""
    hidden = {workload.name for workload in problem.workloads if workload.hidden}
    return [time for time in evaluation.times if time.workload not in hidden]


def duration(seconds: float) -> str:
    """Return seconds in the unit that leaves at least one digit before the point: ``12.3 us``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 999.5 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def sizes(workload: Workload) -> str:
    """Return the values of a workload: ``rows = 4096, n = 1000, T = float32``."""
    values = {**workload.axes, **workload.dtypes, **workload.scalars}
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _time(time: WorkloadTime) -> str:
    bound = f", bound by {plain(time.bound_by)}" if time.bound_by else ""
    return (
        f"{plain(time.workload)}: {duration(time.seconds)}, {time.roofline_seconds / time.seconds:.0%} of the roofline"
        f"{bound}"
    )


def _workload(name: str, problem: Problem) -> Iterator[str]:
    """Yield the name and sizes of a visible workload; a hidden one has neither."""
    for workload in problem.workloads:
        if workload.name == name and not workload.hidden:
            yield plain(f"{name} ({sizes(workload)})")


def _named_lines(failure: Failure, program: Program) -> Iterator[str]:
    """Yield the lines of the kernel that a failure and its message name, each with those around it."""
    step = next((step for step in program.passes if step.name == failure.pass_name), program.passes[0])
    texts = {False: step.source.split("\n"), True: step.header.split("\n")}
    named = [(failure.in_header, failure.line)] if failure.line is not None else []
    named += [(bool(match[2]), int(match[1])) for match in _LINE.finditer(failure.message)]
    places = [(head, line) for head, line in dict.fromkeys(named) if 1 <= line <= len(texts[head])][:MOST_NAMED]
    for in_header in (True, False):
        marked = {line for head, line in places if head is in_header}
        if not marked:
            continue
        yield f"lines of the {'header' if in_header else 'source'} of pass {plain(step.name)}:"
        lines, before = texts[in_header], 0
        for number in _around(marked, len(lines)):
            if before and number != before + 1:
                yield "      ..."
            yield f"{'>>' if number in marked else '  '} {number:4} {lines[number - 1]}"
            before = number


def _around(marked: set[int], count: int) -> list[int]:
    near = {n for line in marked for n in range(line - LINES_AROUND, line + LINES_AROUND + 1)}
    return sorted(n for n in near if 1 <= n <= count)
