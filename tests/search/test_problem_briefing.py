"""The briefings of two built-in problems, whole: ``briefings/*.md`` is what ``ksearch-tui briefing`` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.hardware import load_profile
from search.briefing import problem_briefing, problem_facts
from search.problems.definition import built_in_names, load_problem
from translator.briefing import LEVELS, tokens

BRIEFINGS = Path(__file__).parent / "briefings"
PROFILE = "apple-m3-max"


@pytest.mark.parametrize("name", ["softmax", "attention_prefill"])
def test_a_briefing_is_as_it_was_reviewed(name: str):
    text = problem_briefing(load_problem(name), load_profile(PROFILE))
    reviewed = (BRIEFINGS / f"{name}.md").read_text(encoding="utf-8")
    assert text == reviewed, f"read it again, then: ksearch-tui briefing {name} > tests/search/briefings/{name}.md"


@pytest.mark.parametrize("name", built_in_names())
@pytest.mark.parametrize("level", LEVELS)
def test_a_briefing_stays_below_6000_tokens(name: str, level):
    assert tokens(problem_briefing(load_problem(name), load_profile(PROFILE), level)) < 6000


def test_a_briefing_knows_no_hidden_workload():
    problem = load_problem("attention_prefill")
    text = problem_briefing(problem, load_profile(PROFILE))
    hidden = [workload.name for workload in problem.workloads if workload.hidden]
    assert hidden and not any(name in text for name in hidden)


def test_facts_name_what_is_read_and_what_is_written():
    facts = problem_facts(load_problem("softmax"))
    assert [(array.name, array.output) for array in facts.arrays] == [("x", False), ("y", True)]
    # 4096 x 4096 halves read and written: 67.1 MB; five FLOPs an element.
    assert (facts.work[0].bytes, facts.work[0].flops) == (2 * 4096 * 4096 * 2, 5 * 4096 * 4096)
