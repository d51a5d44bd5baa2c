"""The facts of a report are those of the run: what the events make, and nothing that was taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from search.calibration import Calibration
from search.events import KINDS
from search.problems.definition import load_problem
from search.tree import Tree
from sessions.examples import example_names, example_path
from sessions.report import gather
from sessions.report_nodes import Decision, Node
from sessions.store import Session, SessionError, read_session
from tests.sessions.all_kinds import (
    a_root_that_failed,
    all_kinds,
    decided,
    in_session,
    kinds,
    program,
    proposed,
)
from tests.sessions.conftest import evaluated, passed, stored

ALL = in_session(all_kinds())


def node(session: Session, option: str) -> Node:
    return next(each for each in gather("a", session).nodes if each.option.id == option)


def test_the_run_of_these_tests_has_every_kind_of_event() -> None:
    assert kinds(ALL.events) == KINDS


@pytest.mark.parametrize("name", example_names())
def test_an_example_is_told_with_the_figures_of_its_events(name: str) -> None:
    session = read_session(example_path(name))
    tree = Tree.fold(session.events)
    report = gather(name, session, load_problem(session.config.problem))
    best = tree.best()
    assert best is not None and best.passing is not None and report.best is not None
    assert [node.option for node in report.path] == tree.path(best.id)
    assert report.best.over_naive == tree.speedup(best.id)
    assert {node.option.id: node.option for node in report.nodes} == tree.options
    assert {node.option.id: node.over_parent for node in report.nodes} == {
        option: tree.speedup_over_parent(option) for option in tree.options
    }
    assert report.kernel == tree.program(best.passing.program)
    assert [timing.time for timing in report.timings] == list(best.passing.times)
    assert len(report.attempts) == report.evaluations == tree.evaluations
    outcomes = [event["outcome"] for event in session.events if event.kind == "evaluated"]
    assert len(report.failures) == outcomes.count("failed")
    assert report.comparisons == Calibration.of(tree).comparisons
    assert sum(use.questions for use in report.models) == tree.account.replies
    assert sum(use.prompt_tokens + use.completion_tokens for use in report.models) == tree.account.tokens
    assert (report.title, report.stopped, report.torn) == (
        load_problem(session.config.problem).title,
        tree.stopped,
        False,
    )


def test_a_workload_is_told_over_the_first_program_and_over_mlx_with_its_sizes() -> None:
    problem = load_problem("softmax")
    known = problem.of_role("bench")[0]
    happenings = [proposed("o1", "", "root", ""), *passed("o1", program("a"), {known.name: 0.004})]
    happenings += [proposed("o2", "o1", "fast", ""), *passed("o2", program("b"), {known.name: 0.001, "new": 0.002})]
    happenings[-1][1]["baseline_seconds"] = [0.0, 0.006]
    first, second = gather("a", in_session(happenings), problem).timings
    assert (first.over_naive, first.over_baseline) == (4.0, 0.0)
    assert (second.over_naive, second.over_baseline) == (0.0, 3.0)
    assert first.sizes == (*(f"{axis} {value}" for axis, value in known.axes.items()), *known.dtypes.values())
    assert second.sizes == ()
    assert [timing.sizes for timing in gather("a", in_session(happenings)).timings] == [(), ()]


def test_times_of_another_kind_are_not_compared() -> None:
    happenings = [proposed("o1", "", "root", ""), *passed("o1", program("a"), {"tall": 0.004})]
    happenings += [proposed("o2", "o1", "fast", ""), *passed("o2", program("b"), {"tall": 0.001})]
    happenings[-1][1].update(time_kind="measured", on="Apple M3 Max")
    report = gather("a", in_session(happenings))
    assert [node.over_naive for node in report.nodes] == [1.0, 0.0]
    assert [attempt.over_naive for attempt in report.attempts] == [1.0, 0.0]


def test_options_stand_under_their_parents_with_what_goes_on_beside_them() -> None:
    happenings = [proposed("o1", "", "root", ""), *passed("o1", program("a"), {"tall": 0.004})]
    happenings += [proposed("o2", "o1", "first", ""), proposed("o3", "o1", "last", "")]
    happenings += passed("o2", program("b"), {"tall": 0.003})
    happenings += [proposed("o4", "o2", "under the first", "")]
    found = [
        (node.option.id, node.depth, node.last, set(node.open_levels), node.leads, node.best)
        for node in gather("a", in_session(happenings)).nodes
    ]
    assert found == [
        ("o1", 0, True, set(), True, False),
        ("o2", 1, False, set(), True, True),
        ("o4", 2, True, {1}, False, False),
        ("o3", 1, True, set(), False, False),
    ]


def test_decisions_say_who_why_and_what_the_policy_would_have_taken() -> None:
    at = {(event.kind, event.data.get("decision"), event.data.get("option")): event.at for event in ALL.events}
    assert node(ALL, "o1").decisions[-1] == Decision(
        "redirected", "person", at["redirected", None, "o1"], "guidance", "third title"
    )
    # The prune of o2 was taken back.
    assert node(ALL, "o2").decisions == (
        Decision("approve", "autopilot", at["decided", "approve", "o2"], "policy why", ""),
        Decision("pin", "person", at["decided", "pin", "o2"], "", "third title"),
    )
    assert [decision.kind for decision in node(ALL, "o3").decisions] == ["edited"]


def test_what_a_redirect_brought_goes_when_it_is_taken_back() -> None:
    happenings = [proposed("o1", "", "root", ""), *passed("o1", program("a"), {"tall": 0.004})]
    happenings += [proposed("o2", "o1", "unrolled", "")]
    origin = len(happenings) + 1
    happenings += [
        ("redirected", {"option": "o1", "guidance": "no unrolling", "by": "person", "policy_choice": ""}),
        proposed("o3", "o1", "brought", "", origin=origin),
        decided("o2", "prune", "engine", origin=origin),
    ]
    before = in_session(happenings)
    assert [decision.kind for decision in node(before, "o2").decisions] == ["prune"]
    after = in_session([*happenings, ("undone", {"target": origin, "by": "person"})])
    report = gather("a", after)
    assert [node.option.id for node in report.nodes] == ["o1", "o2"]
    assert node(after, "o2").decisions == ()
    assert [(remark.kind, remark.text, remark.about) for remark in report.remarks] == [("undone", "redirected", "root")]


def test_remarks_stand_at_their_option_or_at_the_run() -> None:
    assert [(remark.kind, remark.text, remark.level) for remark in node(ALL, "o2").remarks] == [
        ("note", "note", "warning"),
        ("followed", "followed", "info"),
    ]
    assert [remark.text for remark in node(ALL, "o3").remarks] == ["question (one / two)"]
    assert [(remark.kind, remark.by, remark.text) for remark in gather("a", ALL).remarks] == [
        ("autopilot", "person", "on"),
        ("undone", "person", "prune"),
        ("asked", "", "question of the run"),
        ("note", "", "note of the run"),
        ("paused", "engine", "pause reason"),
        ("resumed", "person", ""),
        ("stopped", "", "stop reason"),
    ]


def test_attempts_say_who_wrote_them_and_why_they_failed() -> None:
    report = gather("a", ALL)
    assert [(attempt.number, attempt.option, attempt.attempt, attempt.writer) for attempt in report.attempts] == [
        (1, "o1", 1, "catalogue"),
        (2, "o2", 1, "llm:m2"),
        (3, "o2", 2, "llm:m2"),
        (4, "o3", 1, "person"),
    ]
    assert [attempt.over_naive for attempt in report.attempts] == [1.0, 0.0, 2.0, 0.0]
    messages = [attempt.evaluation.failure.message for attempt in report.failures if attempt.evaluation.failure]
    assert messages == ["race message", "edited message"]
    assert [option.failed for option in report.given_up] == ["failed reason"]


def test_models_are_told_by_role_with_what_they_used() -> None:
    selector, generator = gather("a", ALL).models
    assert (selector.role, selector.model, selector.questions, selector.usd) == ("selector", "selector model", 1, 0.01)
    assert (selector.prompt_tokens, selector.completion_tokens, selector.seconds) == (100, 20, 2.0)
    assert selector.counted and not generator.counted
    assert (generator.questions, generator.malformed, generator.other_faults) == (2, 1, 1)
    assert generator.usd is None
    unused = gather("a", ALL).unused
    assert [(reply.outcome, reply.title, reply.note) for reply in unused] == [
        ("malformed", "second title", "malformed note"),
        ("rate_limited", "", "limit note"),
    ]


def test_the_time_is_that_of_the_run_without_its_pauses() -> None:
    report = gather("a", ALL)
    # The events are a second apart; between `paused` and `resumed` the run did not go on.
    assert report.seconds == len(ALL.events) - 1 - 1
    assert (report.begun, report.ended) == (ALL.events[0].at, ALL.events[-1].at)


def test_a_session_without_events_has_only_its_settings() -> None:
    report = gather("a", in_session([]))
    assert (report.nodes, report.path, report.best, report.root, report.kernel) == ((), (), None, None, None)
    assert (report.begun, report.ended, report.seconds) == ("2025-01-01T00:00:00+00:00",) * 2 + (0.0,)


def test_a_root_that_failed_leaves_no_best() -> None:
    report = gather("a", in_session(a_root_that_failed()))
    assert report.best is None and report.timings == ()
    assert [option.failed for option in report.given_up] == ["no other way"]


def test_a_kernel_that_does_not_read_is_left_out_with_the_reason() -> None:
    whole = program("a")
    kernels, layout = stored(whole)[:-1], stored(whole)[-1]
    happenings: list[Any] = [
        proposed("o1", "", "root", ""),
        decided("o1", "approve", "engine"),
        ("started", {"option": "o1", "attempt": 1}),
        *kernels,
        (layout[0], {**layout[1], "layout": "not JSON"}),
        ("wrote", {"option": "o1", "program": whole.sha256, "attempt": 1, "by": "catalogue", "note": ""}),
        evaluated("o1", whole, {"tall": 0.004}),
    ]
    report = gather("a", in_session(happenings))
    assert report.best is not None and report.kernel is None
    assert report.damage.startswith(f"program {whole.sha256[:12]} is damaged")


def test_events_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(SessionError, match=r"'a.toml' can't be reported: there is no option 'o7'"):
        gather("a.toml", in_session([("failed", {"option": "o7", "reason": "lost"})]))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_files_of_older_versions_are_reported(version: str) -> None:
    session = read_session(Path(__file__).with_name(f"{version}.ksearch.toml"))
    assert len(gather(version, session).nodes) == len(Tree.fold(session.events).options)
