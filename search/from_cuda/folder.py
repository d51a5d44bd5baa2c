"""The folder of a problem from a CUDA file: ``problem.toml``, the source, the original as data, and the translation."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import tomli_w

from profiles.hardware import HardwareProfile
from search.devices.base import KernelFault
from search.evaluation.trial_sizes import NoSizes, trial_sizes
from search.from_cuda.bench_sizes import bench_size, counting_sizes
from search.from_cuda.draft import Draft, draft_of
from search.from_cuda.problem_text import problem_text, unfinished_text
from search.from_cuda.reading import Reading
from search.from_cuda.trials import CANDIDATES, HIDDEN, Progress, Tried, try_sizes
from search.from_cuda.work_count import count_work
from search.kernels.program import Program
from search.kernels.text import program_to_text
from search.kernels.translated import program_of
from search.problems.definition import Problem, Workload
from search.problems.original import original_tables

PROBLEM, ORIGINAL, ROOT = "problem.toml", "original.toml", "root.metal"

_OPEN_NUMBERS = (0.5, 1.25, 0.75, 1.0)

_ORIGINAL_HEAD = """\
# The CUDA original as the simulator runs it: `ksearch-tui new` read this off the host code. Sizes are over the axes of
# problem.toml; a grid counts blocks. The device code is the source with all else blanked, line for line.
"""


class CantStart(ValueError):
    """No problem can be made of a source, or not in that folder; the message says why and what to do."""


@dataclass(frozen=True)
class Written:
    """What was written: the folder, and what was found on the way (faults of the original, sizes left out).

    ``asks``: a line of its ``problem.toml`` is still to be filled in.
    """

    folder: Path
    finds: tuple[str, ...]
    has_root: bool
    asks: bool


@dataclass(frozen=True)
class Unfinished:
    """A problem that asks for something: the source, the kernel that is meant, and the answers so far."""

    source: Path
    kernel: str | None
    answers: Mapping[str, str]


def require_free(folder: Path, *, force: bool) -> None:
    """Raise `CantStart` when ``folder`` has a problem already, unless ``force``."""
    if (folder / PROBLEM).exists() and not force:
        raise CantStart(
            f"{folder} has a {PROBLEM} already: choose another folder with -o, or overwrite it with --force"
        )


def read_unfinished(folder: Path) -> Unfinished:
    """Read a problem that asked for something; raise `CantStart` when it is none, or reads no more."""
    path = folder / PROBLEM if folder.is_dir() else folder
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        if "answers" not in data or "reference" in data:
            raise CantStart(f"{path} is finished already: run `ksearch-tui explore {path.parent}`")
        answers = {str(key): str(value) for key, value in data["answers"].items() if str(value).strip()}
        return Unfinished(path.parent / str(data["cuda"][0]), data.get("kernel"), answers)
    except FileNotFoundError:
        raise CantStart(f"there is no {path}: give a CUDA file, or a folder that `new` wrote") from None
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        if isinstance(error, CantStart):
            raise
        raise CantStart(f"{path}: {error}") from error


def write_unfinished(reading: Reading, folder: Path) -> None:
    """Write a folder that asks for what is open, with a copy of the source; `load_problem` names the open line."""
    if fixed := [question.message for question in reading.questions if not question.answer]:
        raise CantStart(f"no problem can be made of {reading.path}: {fixed[0]}")
    _copy_source(reading, folder)
    text = unfinished_text(reading, folder.resolve().name, str(folder))
    (folder / PROBLEM).write_text(text, encoding="utf-8")


def write_problem(reading: Reading, folder: Path, profile: HardwareProfile, progress: Progress) -> Written:
    """Try the original at several sizes, and write the problem of a reading without open questions.

    Raises `CantStart` when the original can't be run, `OSError` when the folder can't be written.
    """
    draft = draft_of(reading)
    root = program_of(reading.translation) if reading.complete and reading.translation is not None else None
    problem = Problem(
        draft.name, draft.title, draft.description, folder, dict.fromkeys(draft.axes), draft.inputs, draft.outputs,
        draft.tolerance, draft.bytes, "0", (), (Path(reading.path.name),), ORIGINAL, original=draft.original,
        root=Path(ROOT) if root is not None else None,
    )  # fmt: skip
    tried = _try(reading, draft, problem, root, profile, progress)
    progress("counting the work of the original")
    counted = [Workload(_named(axes), "check", axes, {}, _scalars(draft, 3)) for axes in counting_sizes(reading.plan)]
    work = count_work(problem, counted, profile)
    workloads = (*_checks(tried), _bench(draft, tried.workloads))
    problem = replace(problem, workloads=workloads, flops=work.expression if work is not None else "0")
    refusals = reading.translation.refusals if reading.translation is not None else ()
    notes = [f"The caller chooses {name}: these values are examples." for name in draft.open_numbers]
    _write_original(reading, draft, folder)
    if root is not None:
        (folder / ROOT).write_text(program_to_text(root), encoding="utf-8")
    text = problem_text(problem, draft.axes, work, draft.uncounted, refusals, notes)
    (folder / PROBLEM).write_text(text, encoding="utf-8")
    return Written(folder, tried.finds, has_root=root is not None, asks=work is None)


def _try(
    reading: Reading, draft: Draft, problem: Problem, root: Program | None, profile: HardwareProfile, progress: Progress
) -> Tried:
    try:
        tried = try_sizes(problem, _candidates(draft), root, profile, progress)
    except NoSizes as error:
        raise CantStart(f"{reading.path}: {error}") from error
    except KernelFault as fault:
        raise CantStart(f"{reading.path}:{fault.line or '?'}: the simulator can't run the original: {fault}") from fault
    if not tried.workloads:
        raise CantStart(f"{reading.path}: the original can't be launched at any size tried: {tried.finds[0]}")
    return tried


def _write_original(reading: Reading, draft: Draft, folder: Path) -> None:
    """Write what the reference consists of: the source, its device code, and its launches."""
    _copy_source(reading, folder)
    device_code = reading.path.with_suffix(".device.cu").name
    (folder / device_code).write_text(draft.original.device_code, encoding="utf-8")
    tables = {"device_code": device_code, "answers": dict(reading.answers), **original_tables(draft.original)}
    (folder / ORIGINAL).write_text(_ORIGINAL_HEAD + tomli_w.dumps(tables), encoding="utf-8")


def _copy_source(reading: Reading, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / reading.path.name
    if not target.exists() or not target.samefile(reading.path):
        target.write_bytes(reading.path.read_bytes())


def _candidates(draft: Draft) -> Iterator[Workload]:
    for number, axes in enumerate(trial_sizes(draft.original.plan, CANDIDATES)):
        yield Workload(_named(axes), "check", axes, {}, _scalars(draft, number))


def _scalars(draft: Draft, number: int) -> dict[str, float]:
    chosen = _OPEN_NUMBERS[number % len(_OPEN_NUMBERS)]
    return {**draft.numbers, **dict.fromkeys(draft.open_numbers, chosen)}


def _checks(tried: Tried) -> Iterator[Workload]:
    """Yield the check workloads, the last ones hidden where there are enough."""
    for number, workload in enumerate(tried.workloads):
        yield replace(workload, hidden=len(tried.workloads) > HIDDEN and number >= len(tried.workloads) - HIDDEN)


def _bench(draft: Draft, checks: tuple[Workload, ...]) -> Workload:
    """Return the workload that is timed; the largest of the checks when nothing larger is admitted."""
    axes = bench_size(draft.original.plan) or checks[-1].axes
    return Workload(f"bench: {_named(axes)}", "bench", axes, {}, _scalars(draft, 3))


def _named(axes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in axes.items()) or "as launched"
