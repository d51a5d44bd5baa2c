"""The parts that prompts are put together from: each a template of ``prompts/`` filled with facts, with a priority.

When a prompt is too long for a model the parts of the lowest priority are shortened first: the tree, then what the CUDA
references show, then the rest of the briefing. The problem, the program and the task stay. All text that others wrote
is quoted so that it can't end its quotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import Literal

from search.briefing import problem_sections
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.kernels.text import program_to_text
from search.option import Option
from search.problems.definition import Problem
from search.proposers.base import Situation
from search.proposers.llm.asking import Part
from search.proposers.llm.evaluation_text import failure_line, failure_record, sizes, timing_record
from search.proposers.llm.tree_view import LEVELS, guidance_view, tree_view
from search.tree import Tree
from translator.briefing import Sections
from translator.quoting import fenced, plain

Context = Literal["none", "mapping", "full"]

CONTEXTS: tuple[Context, ...] = ("none", "mapping", "full")

PROMPTS = Path(__file__).parent / "prompts"

AT_ALL = 100
"""The priority of what stays."""

TREE, EVIDENCE, PATTERNS, MAPPING, MATHEMATICS, HARDWARE, CODE = 10, 20, 30, 40, 50, 60, 70

WHOLE_LINES, PROSE_LINES = 4000, 1500
"""Where lines of programs, and of text by models and persons, are cut."""

MOST_GUIDANCE, MOST_REPLY = 6000, 12_000
MOST_EARLIER = 3
"""Failures of an option's earlier programs that are told with it."""


@cache
def template(name: str) -> Template:
    """Return a file of ``prompts/``."""
    return Template((PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip())


def filled(name: str, **values: object) -> str:
    """Return a file of ``prompts/`` with its places filled."""
    return template(name).substitute(values)


@dataclass(frozen=True)
class Setting:
    """What all prompts of a run are about: its situation, and how much of the translation layer they tell."""

    situation: Situation
    context: Context

    @property
    def tree(self) -> Tree:
        """The tree of the run."""
        return self.situation.tree

    @property
    def problem(self) -> Problem:
        """The problem of the run."""
        return self.situation.problem

    @cached_property
    def texts(self) -> Sections:
        """The sections of the problem's briefing."""
        return problem_sections(self.situation.problem, self.situation.profile)


def problem_part(setting: Setting) -> Part:
    """What must be computed, with the sizes of the workloads that are not hidden."""
    texts = setting.texts
    lines = [
        f"{'timed' if workload.role == 'bench' else 'tested'}: {workload.name}: {sizes(workload)}"
        for workload in setting.problem.workloads
        if not workload.hidden
    ]
    text = filled(
        "problem",
        statement=fenced(f"{texts.title}\n\n{texts.description}\n\n{texts.arrays}", "text", PROSE_LINES),
        gpu=texts.gpu,
        workloads=fenced("\n".join(map(plain, lines)), "text", PROSE_LINES),
    )
    return Part("problem", text, AT_ALL)


def contract_part(setting: Setting) -> Part:
    """What a program is, and what MLX makes of it."""
    example = fenced((PROMPTS / "row_sums.metal").read_text(encoding="utf-8").strip(), "metal", WHOLE_LINES)
    return Part("contract", filled("contract", program=example, contract=setting.texts.contract), AT_ALL)


def reference_parts(setting: Setting) -> list[Part]:
    """What the translation layer knows, as far as the context goes: nothing, the primitives' mapping, or all of it."""
    texts = setting.texts
    known = {
        "none": [],
        "mapping": [("mapping", texts.mapping, MAPPING)],
        "full": [
            ("hardware", texts.hardware, HARDWARE),
            ("mathematics", texts.mathematics, MATHEMATICS),
            ("mapping", texts.mapping, MAPPING),
            ("patterns", texts.patterns, PATTERNS),
            ("evidence", texts.evidence, EVIDENCE),
        ],
    }[setting.context]
    return [
        Part(name, filled(name, source=texts.source, **{name: text}), priority, shorter=("",))
        for name, text, priority in known
        if text
    ]


def tree_part(setting: Setting, option: str) -> Part:
    """What was tried, at full length and in its shorter versions."""
    texts: list[str] = []
    for level in LEVELS:
        shown = fenced(tree_view(setting.tree, setting.problem, option, level), "text", PROSE_LINES)
        text = filled("tree", shortened="" if level == "full" else " (shortened to fit)", tree=shown)
        if not texts or len(text) < len(texts[-1]):
            texts.append(text)
    return Part("tree", texts[0], TREE, tuple(texts[1:]))


def program_part(program: Program, of: str, *, needed: bool) -> Part:
    """A program in text form; one that is not ``needed`` may be left out."""
    text = filled("program", of=of, program=fenced(program_to_text(program).strip(), "metal", WHOLE_LINES))
    return Part("program", text, AT_ALL) if needed else Part("program", text, CODE, shorter=("",))


def timing_part(setting: Setting, node: Option) -> list[Part]:
    """Where the time of an option that passed goes, nothing for another."""
    if node.passing is None:
        return []
    record = fenced(timing_record(node.passing, setting.problem), "text", PROSE_LINES)
    terms = filled("terms") if any(time.terms for time in node.passing.times) else ""
    return [Part("timing", filled("timing", timing=record, terms=terms).strip(), AT_ALL)]


def failure_part(setting: Setting, program: Program, failure: Failure) -> Part:
    """Why a program failed."""
    record = fenced(failure_record(failure, program, setting.problem), "text", PROSE_LINES)
    return Part("failure", filled("failure", failure=record), AT_ALL)


def option_part(node: Option, failure: Failure | None = None) -> Part:
    """An option: what it is to be, why, and why earlier programs for it failed, apart from ``failure``."""
    predicted = f"predicted: {node.predicted:.2f}x its parent\n" if node.predicted > 0 else ""
    text = f"option: {plain(node.id)}\ntitle: {plain(node.title)}\n{predicted}why: {plain(node.why)}"
    failures = [each.failure for each in node.evaluations if each.failure and each.failure != failure]
    if failures:
        told = "".join(f"\n- {failure_line(each)}" for each in failures[-MOST_EARLIER:])
        text += f"\nearlier programs for it failed:{told}"
    return Part("option", filled("option", option=fenced(text, "text", PROSE_LINES)), AT_ALL)


def guidance_part(setting: Setting, option: str, more: str = "") -> list[Part]:
    """What a person asked for on the way to ``option``, and ``more`` that they ask now; nothing if nothing."""
    if not setting.tree.root:
        return []
    asked = "\n".join(guidance_view(setting.tree, option, more))
    if len(asked) > MOST_GUIDANCE:
        asked = f"(older wishes were cut)\n{asked[-MOST_GUIDANCE:]}"
    return [Part("guidance", filled("guidance", guidance=fenced(asked, "text", PROSE_LINES)), AT_ALL)] if asked else []


def malformed_part(reply: str, fault: str) -> Part:
    """What was wrong with a reply, and that reply, which may be left out."""
    told = fenced(plain(fault), "text", PROSE_LINES)
    without = filled("malformed", fault=told, reply="(It is left out here.)")
    if not reply.strip():
        return Part("malformed reply", without, AT_ALL)
    quoted = fenced(reply[:MOST_REPLY], "text", WHOLE_LINES)
    return Part("malformed reply", filled("malformed", fault=told, reply=quoted), 0, shorter=(without,))


def task_part(call: str, **values: object) -> Part:
    """What is to be done, and the form of the reply."""
    return Part("task", filled(call, **values), AT_ALL)
