"""``problem.toml`` as a person reads it: written with its comments, the questions that are open marked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from search.from_cuda.reading import Reading
from search.from_cuda.work_count import WorkCount
from search.problems.definition import Problem, Tensor, Workload
from search.problems.unfinished import ASK
from translator.translation import Refusal


def problem_text(
    problem: Problem,
    descriptions: Mapping[str, str],
    work: WorkCount | None,
    uncounted: Iterable[str],
    refusals: Iterable[Refusal],
    notes: Iterable[str],
) -> str:
    """Return the file of a whole problem; ``descriptions`` are those of its axes."""
    source = problem.cuda[0].name
    return "\n".join(
        [
            *_head(problem, source, refusals),
            "",
            *_costs(problem, work, uncounted),
            "",
            *(["[axes]", ""] if not problem.axes else []),
            *(line for axis in problem.axes for line in (f"[axes.{axis}]", _pair("description", descriptions[axis]))),
            *(line for tensor in problem.inputs for line in _tensor("inputs", tensor)),
            *(line for tensor in problem.outputs for line in _tensor("outputs", tensor)),
            "",
            "# Two evaluations of the same arithmetic that add up in different orders are this near to each other.",
            "[tolerance]",
            *(f"{dtype} = {{ atol = {t.atol!r}, rtol = {t.rtol!r} }}" for dtype, t in problem.tolerance.items()),
            *(f"# {comment(note)}" for note in notes),
            *(line for workload in problem.workloads for line in _workload(workload)),
            "",
        ]
    )


def unfinished_text(reading: Reading, name: str, folder: str) -> str:
    """Return a file that asks for what the source doesn't say; `load_problem` refuses it until it is answered."""
    lines = [
        f"# Not finished. Fill in what is asked below, then run: ksearch-tui new {comment(folder)}",
        _pair("name", name),
        f"cuda = [{quoted(reading.path.name)}]",
        *([_pair("kernel", reading.kernel)] if reading.kernel else []),
        "",
        "[answers]",
        *(f"{quoted(key)} = {quoted(value)}" for key, value in reading.answers.items()),
    ]
    for question in reading.questions:
        lines += ["", f"{ASK}{comment(question.message)}", f"# {comment(reading.evidence(question))}"]
        lines += [f'{quoted(question.answer)} = ""']
    return "\n".join([*lines, ""])


def quoted(text: str) -> str:
    """Return a string as TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Return a text as it can stand in a comment: one line of characters that show."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _head(problem: Problem, source: str, refusals: Iterable[Refusal]) -> Iterator[str]:
    yield _pair("name", problem.name)
    yield _pair("title", problem.title)
    yield f"description = {quoted(problem.description)}"
    yield ""
    yield f"# The reference is {comment(source)} itself: the simulator runs it, launched as original.toml says."
    yield _pair("reference", problem.reference_at)
    yield f"cuda = [{quoted(source)}]"
    if problem.root is not None:
        yield "# What a search starts from: the translation."
        yield _pair("root", problem.root.name)
        return
    yield "# There is no program to start from: what the original does can't be translated by rule."
    for refusal in refusals:
        yield f"#   {comment(f'{source}:{refusal}')}"
    yield "# Write one by hand (its form: `ksearch-tui check --help`), and take the mark from this line."
    yield '# root = "root.metal"'


def _costs(problem: Problem, work: WorkCount | None, uncounted: Iterable[str]) -> Iterator[str]:
    yield "# Every array moves once at least."
    for name in uncounted:
        yield f"# {comment(name)} is read only where the data says, and not counted."
    yield _pair("bytes", problem.bytes)
    if work is None:
        yield f"{ASK}how many floating-point operations one run takes at least, over the axes; 0 when that is no limit"
    elif work.sure:
        yield f"# Counted in runs of the original at {work.sizes} sizes; lower it when another way needs fewer."
    else:
        yield f"# Counted in runs of the original at {work.sizes} sizes, which it follows only roughly: have a look."
    yield _pair("flops", work.expression if work is not None else "")


def _tensor(kind: str, tensor: Tensor) -> Iterator[str]:
    yield ""
    yield f"[[{kind}]]"
    yield _pair("name", tensor.name)
    yield f"shape = [{', '.join(map(quoted, tensor.shape))}]"
    yield _pair("dtype", tensor.dtype)
    if tensor.below:
        yield _pair("below", tensor.below)
    yield _pair("description", tensor.description)


def _workload(workload: Workload) -> Iterator[str]:
    yield ""
    yield "[[workloads]]"
    yield _pair("name", workload.name)
    yield _pair("role", workload.role)
    if workload.hidden:
        yield "hidden = true"
    yield f"axes = {{ {', '.join(f'{axis} = {value}' for axis, value in workload.axes.items())} }}"
    if workload.scalars:
        yield f"scalars = {{ {', '.join(f'{name} = {value!r}' for name, value in workload.scalars.items())} }}"


def _pair(key: str, value: str) -> str:
    return f"{key} = {quoted(value)}"
