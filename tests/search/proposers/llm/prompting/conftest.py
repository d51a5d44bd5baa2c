"""A small search as its prompts tell it: a start, what came of it, and what waits; the same for two problems.

o1 the start, passed; o2 under it, redirected by a person, passed; o3 under o1, failed; o4 and o5 wait under o2, o4 is
approved; o6 waits under o1. Programs are real ones, times and messages those that the judge gave, rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profiles.hardware import load_profile
from search.attempt import store
from search.evaluation.record import FAILED, PASSED, Evaluation, Failure, WorkloadTime
from search.growth import fields
from search.kernels.program import Program
from search.kernels.text import program_from_text
from search.problems.definition import Problem, load_problem
from search.proposers.base import Proposal, Situation
from search.proposers.llm.prompt_parts import Context, Setting
from search.tree import Tree

HERE = Path(__file__).parent
ON = "apple-m3-max"

TIMES = {
    "softmax": {
        "attention scores 4096 x 4096": (3.53e-3, 0.211e-3, 0.163e-3),
        "class logits 32768 x 1000": (3.21e-3, 0.805e-3, 0.639e-3),
    },
    "attention_prefill": {
        "chat prompt: H32 L1024 D64 causal": (3.10e-3, 2.40e-3, 0.305e-3),
        "image tokens: H32 L2048 D128": (50.7e-3, 40.8e-3, 4.87e-3),
    },
}

RACE = Failure(
    "race",
    "data race on partial[0]: thread 16 (simdgroup 0, lane 16) reads it in line 8, thread 0 (simdgroup 0, lane 0) "
    "writes it in line 7 (threadgroup (0, 2, 0)), and nothing orders the two. Put "
    "threadgroup_barrier(mem_flags::mem_threadgroup) between line 7 and line 8.",
    "softmax",
    8,
    "one over a full threadgroup",
)
UNDECLARED = Failure(
    "compile", "'DD' was not declared in this scope; did you mean 'D'?", "attention", 19, "single token"
)

OPTIONS = {
    "softmax": [
        ("Naive: one thread a row", "What everything is measured against."),
        ("One simdgroup a row", "32 lanes read neighbouring elements."),
        ("One threadgroup a row", "More threads for a long row."),
        ("Load four elements as half4", "A quarter of the loads; n is a multiple of 4 in both timed workloads."),
        ("Keep the row in registers", "Reads it once in place of three times."),
        ("Two threads a row", "Halves the longest chain."),
    ],
    "attention_prefill": [
        ("Naive: one thread a query", "What everything is measured against."),
        ("One simdgroup a query", "Lanes share the head dimension: loads of keys are coalesced."),
        ("Eight queries a thread", "Each key is read once for eight queries."),
        ("Tiles of K and V in threadgroup memory", "All simdgroups of a group read the same keys."),
        ("Exponentials to base two", "exp2 is one instruction."),
        ("Vectors of four in the head dimension", "A quarter of the loads."),
    ],
}


@dataclass(frozen=True)
class Story:
    """The search, how a prompt would see it, and its failed program with why it failed."""

    tree: Tree
    problem: Problem
    failed: Program
    failure: Failure

    def setting(self, context: Context = "full") -> Setting:
        return Setting(Situation(self.problem, load_profile(ON), self.tree), context)


def read(name: str) -> Program:
    return program_from_text((HERE / f"{name}.metal").read_text(encoding="utf-8"))


def _evaluate(grower: Any, option: str, program: Program, evaluation: Evaluation) -> None:
    if not grower.tree[option].approved_by:
        grower.decide(option, "approve", "autopilot")
    attempt = grower.tree[option].attempts + 1
    grower.happens("started", option=option, attempt=attempt)
    store(grower.tree, grower.happens, program)
    grower.happens("wrote", option=option, program=program.sha256, attempt=attempt, by="llm", note="")
    grower.happens("evaluated", option=option, attempt=attempt, **evaluation.to_fields())


def _passed(program: Program, problem: str, column: int, bound_by: str) -> Evaluation:
    times = tuple(
        WorkloadTime(
            name, row[column], row[column], row[column], row[2], 2 * row[2], bound_by, _terms(row[column], bound_by)
        )
        for name, row in TIMES[problem].items()
    )
    return Evaluation(program.sha256, PASSED, "simulator", "modelled", ON, None, times, 27, 0.6)


def _terms(seconds: float, bound_by: str) -> dict[str, float]:
    """Terms of which ``bound_by`` is the largest, and one that is too small to tell."""
    return {
        "latency": seconds * 0.001,
        "arithmetic": seconds * 0.125,
        "threadgroup": seconds * 0.25,
        bound_by: seconds * 0.75,
    }


@pytest.fixture
def story(grower: Any) -> Callable[[str], Story]:
    """Return the story of a problem by its name."""

    def told(problem: str) -> Story:
        failure, failed = {
            "softmax": (RACE, read("softmax_racing")),
            "attention_prefill": (UNDECLARED, read("attention_prefill_wrong")),
        }[problem]
        parents = ["", "o1", "o1", "o2", "o2", "o1"]
        ratings = [5.0, 8.0, 6.0, 7.0, 6.5, 3.0]
        for number, (title, why) in enumerate(OPTIONS[problem]):
            proposal = Proposal(title, why, "", ratings[number], confidence=0.5, difficulty=2, predicted=2.0)
            grower.happens("option_added", **fields(f"o{number + 1}", parents[number], proposal, "llm"))
            if number == 0:
                start = read(f"{problem}_start")
                _evaluate(grower, "o1", start, _passed(start, problem, 0, "l1"))
            if number == 2:
                faster = read(f"{problem}_faster")
                _evaluate(grower, "o2", faster, _passed(faster, problem, 1, "memory"))
                refused = Evaluation(failed.sha256, FAILED, "simulator", "modelled", ON, failure)
                _evaluate(grower, "o3", failed, refused)
                grower.happens("failed", option="o3", reason="1 attempt failed")
        wish = "stay with one simdgroup, and use wider loads"
        grower.happens("redirected", option="o2", guidance=wish, by="person", policy_choice="")
        grower.decide("o4", "approve")
        return Story(grower.tree, load_problem(problem), failed, failure)

    return told
