"""A run goes on from its events, wherever it was broken off."""

from __future__ import annotations

from typing import Any

import pytest

from search.engine import EngineError
from search.tree import Tree


def script(stage: Any, scripts: Any) -> Any:
    """Two levels of options, one that is mended, one that fails for good."""
    stage.proposer.menu = {"naive": scripts.menu("a", "b"), "a": scripts.menu("c")}
    stage.evaluator.seconds = {"a": 0.5, "c": 0.25}
    stage.evaluator.failing = {"b": "bad", "c": "bad", "c mended": "bad", "c mended mended": "bad"}
    return stage


async def whole_run(scripts: Any) -> Any:
    stage = script(scripts.Stage(), scripts)
    stage.engine.set_autopilot(True)
    await stage.engine.run()
    return stage


def outcome(tree: Tree) -> dict[str, tuple[str, int]]:
    """What became of each option and how many evaluations it took."""
    return {option.title: (option.status, len(option.evaluations)) for option in tree.options.values()}


def judged(tree: Tree) -> dict[str, tuple[float, float]]:
    """How each option is rated, and how surely."""
    return {option.title: (option.rating, option.confidence) for option in tree.options.values()}


async def test_a_killed_run_goes_on_from_any_event_to_the_same_end(scripts: Any) -> None:
    reference = await whole_run(scripts)
    assert outcome(reference.tree) == {
        "naive": ("passed", 1),
        "a": ("passed", 1),
        "b": ("passed", 2),
        "c": ("failed", 3),
    }
    for kept in range(1, len(reference.events)):
        tree = Tree.fold(reference.events[:kept])
        judged_before = tree.evaluations
        stage = script(scripts.Stage(tree=tree), scripts)
        stage.engine.set_autopilot(True)
        await stage.engine.run()
        assert outcome(stage.tree) == outcome(reference.tree), f"after event {kept}"
        assert judged(stage.tree) == judged(reference.tree), f"after event {kept}"
        assert len(stage.evaluator.called) == reference.tree.evaluations - judged_before, f"after event {kept}"
        assert Tree.fold(stage.events) == stage.tree


async def test_a_root_whose_approval_was_lost_runs_without_a_person(scripts: Any) -> None:
    stage = scripts.Stage()
    await stage.start()
    assert stage.kinds()[:2] == ["option_added naive", "decided naive"]
    again = scripts.Stage(tree=Tree.fold(stage.events[:1]))
    await again.start()
    assert again.status("naive") == "passed"
    assert [event["by"] for event in again.events if event.kind == "decided"] == ["engine"]
    await stage.finish()
    await again.finish()


async def test_what_was_learned_is_put_on_record_once_however_often_a_run_is_killed(scripts: Any) -> None:
    reference = await whole_run(scripts)
    rated = [event.seq for event in reference.events if event.kind == "rated"]
    for seq in rated:
        events = reference.events[: seq - 1]
        for _ in range(2):
            killed = scripts.Stage(tree=Tree.fold(events))
            killed.engine.set_autopilot(True)  # the run goes on, and is killed before it does anything
            events = killed.events
        assert [event.kind for event in events[seq - 1 :]] == ["resumed", "resumed"]
        stage = script(scripts.Stage(tree=Tree.fold(events)), scripts)
        await stage.engine.run()
        assert judged(stage.tree) == judged(reference.tree), f"before event {seq}"
        assert stage.kinds("rated") == reference.kinds("rated"), f"before event {seq}"


async def test_what_was_stopped_says_that_it_goes_on_and_keeps_counting(scripts: Any) -> None:
    first = script(scripts.Stage(budget=2), scripts)
    first.engine.set_autopilot(True)
    await first.engine.run()
    assert first.tree.stopped == "the budget of 2 evaluations is spent"
    second = script(scripts.Stage(budget=4, tree=Tree.fold(first.events)), scripts)
    await second.engine.run()
    resumed = second.events[len(first.events)]
    assert (resumed.kind, resumed["by"]) == ("resumed", "engine")
    assert second.tree.stopped == "the budget of 4 evaluations is spent"
    assert len(second.evaluator.called) == 2
    assert second.tree.improved >= first.tree.improved
    ids = [event["option"] for event in second.events if event.kind == "option_added"]
    assert ids == [f"o{number}" for number in range(1, len(ids) + 1)]


async def test_a_run_whose_budget_was_spent_spends_nothing_more(scripts: Any) -> None:
    first = script(scripts.Stage(budget=2), scripts)
    first.engine.set_autopilot(True)
    await first.engine.run()
    second = script(scripts.Stage(budget=2, tree=Tree.fold(first.events)), scripts)
    await second.engine.run()
    assert second.evaluator.called == []
    assert second.tree.stopped == "the budget of 2 evaluations is spent"


async def test_a_program_that_was_written_before_the_end_is_not_written_again(scripts: Any) -> None:
    reference = await whole_run(scripts)
    cut = next(event.seq for event in reference.events if event.kind == "wrote" and event["attempt"] == 2)
    stage = script(scripts.Stage(tree=Tree.fold(reference.events[:cut])), scripts)
    await stage.start()
    await stage.settle()
    assert stage.evaluator.called[0].endswith("mended")
    await stage.finish()


async def test_a_mend_goes_on_with_the_attempts_that_are_left(scripts: Any) -> None:
    reference = await whole_run(scripts)
    of_c = [event for event in reference.events if event.data.get("option") == reference.id("c")]
    cut = [event.seq for event in of_c if event.kind == "evaluated"][1]
    stage = script(scripts.Stage(tree=Tree.fold(reference.events[:cut])), scripts)
    await stage.start()
    assert stage.evaluator.called[0] == "c mended mended"
    assert "c" not in stage.evaluator.called
    assert stage.status("c") == "failed"
    await stage.finish()


async def test_a_person_can_decide_before_the_run_goes_on(scripts: Any) -> None:
    reference = await whole_run(scripts)
    stage = script(scripts.Stage(tree=Tree.fold(reference.events)), scripts)
    stage.engine.approve(stage.id("c"))
    assert [event.kind for event in stage.events[-2:]] == ["resumed", "decided"]
    await stage.engine.run()
    assert stage.kinds("resumed") == ["resumed"]


async def test_decisions_of_the_earlier_run_can_be_taken_back(scripts: Any) -> None:
    first = script(scripts.Stage(), scripts)
    await first.start()
    first.engine.prune(first.id("b"))
    await first.finish()
    second = script(scripts.Stage(tree=Tree.fold(first.events)), scripts)
    await second.start()
    assert second.engine.undo() == "the pruning of 'b'"
    await second.finish()


async def test_the_same_engine_can_run_again_after_it_stopped(scripts: Any) -> None:
    stage = script(scripts.Stage(), scripts)
    await stage.start()
    await stage.finish()
    with pytest.raises(EngineError):
        stage.engine.approve(stage.id("a"))
    await stage.start()
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert stage.status("a") == "passed"
    await stage.finish()
