"""The tree as a model sees it: what stands in it, and what goes first when it is too much."""

from __future__ import annotations

import re

import pytest

from search.evaluation.record import PASSED, Evaluation, Failure, WorkloadTime
from search.growth import fields
from search.problems.definition import load_problem
from search.proposers.base import Proposal
from search.proposers.llm.evaluation_text import duration, failure_record, times_line
from search.proposers.llm.tree_view import BOUNDS, LEVELS, guidance_view, tree_view
from search.tree import Tree

SOFTMAX = load_problem("softmax")


def ids(text: str) -> list[str]:
    """The options that have a line of their own."""
    return re.findall(r"^  (\w+) ", text, re.MULTILINE)


def test_the_view_has_the_path_the_best_what_is_beside_what_failed_and_what_waits(grower):
    grower.option("o1", predicted=0)
    grower.passes("o1", 8.0)
    grower.option("o2", "o1")
    grower.passes("o2", 4.0)
    grower.option("o3", "o1")
    grower.passes("o3", 1.0)
    grower.option("o4", "o1")
    grower.fails("o4")
    grower.option("o5", "o2", rating=7, confidence=0.25, difficulty=3, predicted=1.5)
    text = tree_view(grower.tree, SOFTMAX, "o2")
    lines = text.split("\n")
    assert lines[:5] == [
        "path, each step built on the one above:",
        "  o1 o1 [by script]: the start",
        "      w: 8 s, 1% of the roofline",
        "  o2 o2 [by script]: 2.00x its parent (predicted 2.00x), 2.00x the start <- this option",
        "      w: 4 s, 2% of the roofline",
    ]
    assert lines[5:] == [
        "best so far:",
        "  o3 o3 [by script]: 8.00x its parent (predicted 2.00x), 8.00x the start (the best so far)",
        "      w: 1 s, 10% of the roofline",
        "beside it:",
        "  o3 o3 [by script]: 8.00x its parent (predicted 2.00x), 8.00x the start (the best so far)",
        "      w: 1 s, 10% of the roofline",
        "failed:",
        "  o4 under o1, o4 [by script]: compile, line 3: no",
        "open options, best rated first:",
        "  o5 under o2, o5 [by script]: rating 7.0, confidence 0.25, difficulty 3, predicted 1.50x",
    ]


def test_the_view_of_an_empty_tree_says_so():
    assert tree_view(Tree(), SOFTMAX, "") == "The tree is empty."


def a_wide_tree(grower) -> Tree:
    """A path of 20 steps o1 .. o20, 30 options that wait under o1, 12 that failed there, 12 that passed under o19."""
    for number in range(1, 21):
        grower.option(f"o{number}", f"o{number - 1}" if number > 1 else "")
        grower.passes(f"o{number}", 100.0 / number)
    for number in range(30):
        grower.option(f"w{number}", "o1", rating=number / 5)
    for number in range(12):
        grower.option(f"f{number}", "o1")
        grower.fails(f"f{number}")
    for number in range(12):
        grower.option(f"s{number}", "o19")
        grower.passes(f"s{number}", 50.0 + number)
    return grower.tree


def test_the_view_is_bounded_and_says_how_much_went(grower):
    tree = a_wide_tree(grower)
    lengths = []
    for level in LEVELS:
        text = tree_view(tree, SOFTMAX, "o20", level)
        lengths.append(len(text))
        assert len(text) <= BOUNDS[level].characters
        assert {"o1", "o20"} <= set(ids(text))
    assert lengths == sorted(lengths, reverse=True) and len(set(lengths)) == 3
    minimal = tree_view(tree, SOFTMAX, "o20", "minimal")
    assert ids(minimal) == ["o1", "o20"] and "(and 18 more)" in minimal


def test_what_is_least_worth_knowing_goes_first(grower):
    shown = ids(tree_view(a_wide_tree(grower), SOFTMAX, "o20", "short"))
    # Of the path the root, what is nearest, and the option; the best rated, the latest failures, the fastest siblings.
    assert [name for name in shown if name[0] == "o"] == ["o1", "o18", "o19", "o20"]
    assert [name for name in shown if name[0] == "s"] == ["s0", "s1", "s2"]
    assert [name for name in shown if name[0] == "f"] == ["f11", "f10", "f9"]
    assert [name for name in shown if name[0] == "w"][:3] == ["w29", "w28", "w27"]


def test_no_title_of_any_length_makes_the_view_long(grower):
    long = Proposal("t" * 20_000, "", "", 5.0, 0.5, 2, 2.0)
    for number, parent in enumerate(["", "o0", "o1"]):
        grower.happens("option_added", **fields(f"o{number}", parent, long, "b" * 5000))
        grower.passes(f"o{number}", 8.0)
    for level in LEVELS:
        assert len(tree_view(grower.tree, SOFTMAX, "o2", level)) <= BOUNDS[level].characters


def test_of_many_times_the_first_are_told():
    times = tuple(WorkloadTime(f"w{number}", 2.0, 2.0, 2.0, 1.0) for number in range(6))
    evaluation = Evaluation("p", PASSED, "simulator", "modelled", "toy", None, times)
    told = "; ".join(f"w{number}: 2 s, 50% of the roofline" for number in range(4))
    assert times_line(evaluation, SOFTMAX) == f"{told}; and 2 more"


def test_too_long_a_view_loses_open_options_before_anything_else(grower):
    grower.option("o1")
    grower.passes("o1", 8.0)
    for name in [*(f"w{number}" for number in range(24)), *(f"f{number}" for number in range(8))]:
        long = Proposal(f"{name} {'t' * 96}", "", name, 5.0, 0.5, 2, 2.0)
        grower.happens("option_added", **fields(name, "o1", long, "b" * 48))
        if name[0] == "f":
            grower.fails(name)
    text = tree_view(grower.tree, SOFTMAX, "o1")
    assert len(text) <= BOUNDS["full"].characters
    assert [name for name in ids(text) if name[0] == "f"] == [f"f{number}" for number in range(7, -1, -1)]
    waiting = [name for name in ids(text) if name[0] == "w"]
    assert waiting == [f"w{number}" for number in range(len(waiting))] and 0 < len(waiting) < 24
    assert text.endswith(f"(and {24 - len(waiting)} more)")


def test_an_option_that_failed_says_why(grower):
    grower.option("o1")
    grower.passes("o1", 8.0)
    grower.option("o2", "o1")
    grower.fails("o2")
    lines = tree_view(grower.tree, SOFTMAX, "o2").split("\n")
    assert "  o2 o2 [by script]: failed: compile, line 3: no <- this option" in lines
    assert "failed:" not in lines


def test_what_is_pruned_does_not_wait(grower):
    grower.option("o1")
    grower.passes("o1", 8.0)
    grower.option("o2", "o1")
    grower.option("o3", "o1")
    grower.decide("o2", "prune")
    assert ids(tree_view(grower.tree, SOFTMAX, "o1")) == ["o1", "o3"]


def test_guidance_is_told_with_the_place_where_a_person_gave_it(grower):
    grower.option("o1")
    grower.passes("o1", 8.0)
    grower.option("o2", "o1")
    grower.happens("redirected", option="o1", guidance="no threadgroup memory", by="person", policy_choice="")
    grower.happens("redirected", option="o2", guidance="half4", by="person", policy_choice="")
    assert guidance_view(grower.tree, "o2", "and unroll") == [
        "at o1 (o1): no threadgroup memory",
        "at o2 (o2): half4",
        "now: and unroll",
    ]
    assert guidance_view(grower.tree, "o1") == ["at o1 (o1): no threadgroup memory"]


def test_times_of_hidden_workloads_are_left_out():
    hidden = next(workload.name for workload in SOFTMAX.workloads if workload.hidden)
    times = (WorkloadTime("open", 2e-3, 2e-3, 2e-3, 1e-3, bound_by="l1"), WorkloadTime(hidden, 1.0, 1.0, 1.0, 1.0))
    evaluation = Evaluation("p", PASSED, "simulator", "modelled", "toy", None, times)
    assert times_line(evaluation, SOFTMAX) == "open: 2 ms, 50% of the roofline, bound by l1"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(2.0, "2 s"), (1.0, "1 s"), (0.0123, "12.3 ms"), (0.9999, "1000 ms"), (211e-6, "211 us"), (5e-9, "5 ns")],
)
def test_durations_have_the_unit_that_reads_best(seconds: float, told: str):
    assert duration(seconds) == told


def test_a_failure_in_a_hidden_case_shows_no_sizes(story):
    told = story("softmax")
    failure = Failure("correctness", "a hidden case with random inputs failed: 'y' is wrong", workload="hidden")
    assert failure_record(failure, told.failed, told.problem).split("\n") == [
        "stage: correctness",
        "message: a hidden case with random inputs failed: 'y' is wrong",
    ]
