"""The best program of a run as a Python module that needs only MLX: ``exported_module.template``, filled in.

``exported_module_alone.template`` is for a problem without a baseline, with nothing to fall back to or check against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from textwrap import wrap

from search.evaluation.record import Evaluation
from search.kernels.program import ProgramError, bind
from search.option import Option
from search.problems.definition import Problem
from search.tree import Tree, TreeError
from sessions.baseline_source import baseline_source
from sessions.blocks import SessionError
from sessions.module_code import fillings
from sessions.module_plan import plan_module
from sessions.python_text import docstring

_LINE_LENGTH = 120
_WRAP = 110
_BESIDE_MLX, _ALONE, _AXES = (
    Path(__file__).with_name(f"exported_{name}.template") for name in ("module", "module_alone", "axes")
)


def export_module(tree: Tree, problem: Problem, option: str = "", session: str = "") -> str:
    """Return Python source that runs the program of ``option`` (the best one by default) through MLX.

    ``session`` names the file that the run is kept in, for the docstring. Raises `SessionError` when nothing has passed
    yet, ``option`` has not, or the problem's baseline can't be carried along as the fallback.
    """
    chosen, evaluation = _proven(tree, option)
    results = tuple(tensor.name for tensor in problem.outputs)
    try:
        program = tree.program(evaluation.program)
        for workload in problem.workloads:
            bind(program, problem.arrays(workload), results, problem.bind_axes(workload), workload.dtypes)
    except (TreeError, ProgramError) as error:
        raise SessionError(f"option '{chosen.id}' can't be exported: {error}") from error
    baseline = baseline_source(problem) if problem.baseline_at else None
    plan = plan_module(problem, program, baseline.names if baseline is not None else frozenset())
    code = fillings(plan, baseline)
    code["axes_functions"] = _filled(_AXES, code).rstrip("\n")
    code["docstring"] = docstring(_story(tree, problem, chosen, evaluation, session))
    source = _filled(_BESIDE_MLX if baseline is not None else _ALONE, code)
    # Metal lines stay as they were proven, however long.
    long = any(len(line) > _LINE_LENGTH for line in source.splitlines())
    return "# ruff: noqa: E501\n" + source if long else source


def _filled(template: Path, code: Mapping[str, str]) -> str:
    return Template(template.read_text(encoding="utf-8")).substitute(code)


def _proven(tree: Tree, option: str) -> tuple[Option, Evaluation]:
    chosen = tree.options.get(option) if option else tree.best()
    if chosen is None:
        reason = f"there is no option '{option}' in this run" if option else "no option of this run has passed yet"
        raise SessionError(f"{reason}, so there is nothing to export")
    if chosen.passing is None:
        raise SessionError(f"option '{chosen.id}' is {chosen.status}: only a program that was proven can be exported")
    return chosen, chosen.passing


def _story(tree: Tree, problem: Problem, chosen: Option, evaluation: Evaluation, session: str) -> Iterator[str]:
    """Yield the lines of the module's docstring: what it computes, how it was found, and its figures."""
    yield f"{problem.title}: a Metal kernel for MLX, found by ksearch-tui."
    yield ""
    yield from problem.description.splitlines()
    yield ""
    yield from wrap("Options: " + " > ".join(node.title for node in tree.path(chosen.id)), _WRAP)
    yield (
        f"Proven against {_reference(problem)} on {evaluation.cases} cases; "
        f"the largest error is {evaluation.worst_error:.2f} of the tolerance."
    )
    yield ""
    yield f"Figures, {evaluation.kind} {'for' if evaluation.kind == 'modelled' else 'on'} {evaluation.on}:"
    for time in evaluation.times:
        own = f", MLX's own {time.baseline_seconds * 1e6:.1f} us" if time.baseline_seconds else ""
        roofline = f", {time.roofline_seconds / time.seconds:.0%} of the roofline" if time.seconds else ""
        yield f"- {time.workload}: {time.seconds * 1e6:.1f} us{own}{roofline}"
    if chosen.id != tree.root:
        yield f"- {tree.speedup(chosen.id):.2f}x the first kernel of the run"
    yield ""
    kept = f" kept in {session}," if session else ""
    evaluations = f"{tree.evaluations} evaluation{'s' if tree.evaluations != 1 else ''}"
    yield from wrap(f"From a run{kept} begun at {tree.events[0].at}, of {evaluations}; option {chosen.id}.", _WRAP)
    yield f"Program {evaluation.program}."
    yield ""
    yield "This file needs only MLX" + (
        ". Where Metal is not available, MLX's own operations take the kernel's place."
        if problem.baseline_at
        else ", and Metal."
    )


def _reference(problem: Problem) -> str:
    return "the CUDA original, run on a CPU," if problem.original is not None else "a float64 reference"
