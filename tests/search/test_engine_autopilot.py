"""The policy decides: budget, repairs, and a person who decides in between."""

from __future__ import annotations

from typing import Any

from search.proposers.base import ProposerError
from search.tree import Tree


async def fly(stage: Any) -> str:
    """Run under autopilot to the end and return why it stopped."""
    stage.engine.set_autopilot(True)
    await stage.engine.run()
    assert Tree.fold(stage.events) == stage.tree
    assert not any(option.running for option in stage.tree.options.values())
    reason: str = stage.tree.stopped
    return reason


async def test_autopilot_goes_on_until_nothing_is_left(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b"), "a": scripts.menu("b")}
    stage.evaluator.seconds = {"a": 0.5, "b": 0.4}
    assert await fly(stage) == "nothing is left to try"
    assert stage.evaluator.called == ["naive", "a", "b", "b"]
    assert stage.evaluator.closed == 1


async def test_every_approval_of_the_autopilot_is_recorded_with_its_reason(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a")}
    await fly(stage)
    decided = stage.last("decided")
    assert (decided["by"], decided["option"], decided["policy_choice"]) == ("autopilot", stage.id("a"), stage.id("a"))
    assert decided["why"].startswith("score ")


async def test_the_budget_counts_every_evaluation_and_is_never_exceeded(scripts: Any) -> None:
    stage = scripts.Stage(budget=4)
    stage.proposer.menu = {"naive": scripts.menu("a", "b", "c", "d")}
    stage.evaluator.failing = {"a": "bad"}
    assert await fly(stage) == "the budget of 4 evaluations is spent"
    assert stage.evaluator.called == ["naive", "a", "a mended", "b"]
    assert stage.tree.evaluations == 4


async def test_a_failure_is_mended_and_every_attempt_is_on_record(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a")}
    stage.evaluator.failing = {"a": "expected ';'"}
    await fly(stage)
    assert stage.kinds("started", "wrote", "evaluated", "failed")[3:] == [
        "started a",
        "wrote a",
        "evaluated a",
        "started a",
        "wrote a",
        "evaluated a",
    ]
    wrote = stage.last("wrote")
    assert (wrote["attempt"], wrote["by"], wrote["note"]) == (2, "script", "mends: compile line 3: expected ';'")
    first, second = stage.tree[stage.id("a")].evaluations
    assert first.failure is not None and first.failure.line == 3
    assert second.passed


async def test_an_option_fails_when_its_repairs_are_spent(scripts: Any) -> None:
    stage = scripts.Stage(repairs=1)
    stage.proposer.menu = {"naive": scripts.menu("a")}
    stage.evaluator.failing = {"a": "bad", "a mended": "worse"}
    await fly(stage)
    assert stage.status("a") == "failed"
    assert stage.last("failed")["reason"] == "all 2 attempts failed; compile line 3: worse"
    assert stage.last("rated")["why"] == "failed after 2 attempts"


async def test_an_option_fails_at_once_when_there_is_no_other_way_to_write_it(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("none", "same")}
    stage.proposer.mends = {"none": [None], "same": [scripts.program("same")]}
    stage.evaluator.failing = {"none": "bad", "same": "bad"}
    await fly(stage)
    assert stage.evaluator.called == ["naive", "none", "same"]
    reasons = [event["reason"] for event in stage.events if event.kind == "failed"]
    assert reasons == ["no other way to write it; compile line 3: bad"] * 2


async def test_a_failed_option_is_not_tried_or_proposed_again(scripts: Any) -> None:
    stage = scripts.Stage(repairs=0)
    stage.proposer.menu = {"naive": scripts.menu("a")}
    stage.evaluator.failing = {"a": "bad"}
    assert await fly(stage) == "nothing is left to try"
    assert stage.evaluator.called == ["naive", "a"]
    assert stage.proposer.asked == ["naive", "naive"]  # asked for more, and the same option was not taken again


async def test_a_failure_that_no_attempt_led_to_is_an_option_that_can_not_be_written(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    stage.proposer.raises["write a"] = ProposerError("this needs threadgroup memory first")
    await fly(stage)
    assert stage.last("failed")["reason"] == "this needs threadgroup memory first"
    assert stage.status("b") == "passed"


async def test_a_proposer_that_overpromises_is_expected_less_of_and_its_options_fall_behind(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": [scripts.proposal(name, predicted=8.0) for name in ("a", "b", "c")]}
    await fly(stage)
    # 8x promised and 1x found: expected 8, then 8 ** (3/4) = 4.76 and 8 ** (3/5) = 3.48.
    reasons = [event["why"] for event in stage.events if event.data.get("by") == "autopilot"]
    expected = [why.split("expected ")[1].split("×")[0] for why in reasons]
    assert expected == ["8.00", "4.76", "3.48"]


async def test_a_persons_decision_counts_while_the_autopilot_flies(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b", "c")}
    held = stage.evaluator.hold("a")
    stage.engine.set_autopilot(True)
    await stage.start()
    stage.engine.approve(stage.id("c"))
    stage.engine.prune(stage.id("b"))
    held.set()
    await stage.task
    assert stage.evaluator.called == ["naive", "a", "c"]
    by_a_person = [event for event in stage.events if event.kind == "decided" and event["by"] == "person"]
    assert [event["policy_choice"] for event in by_a_person] == [stage.id("b"), stage.id("b")]


async def test_the_wheel_can_be_handed_over_both_ways(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    await stage.start()
    assert stage.evaluator.called == ["naive"]
    held = stage.evaluator.hold("a")
    stage.engine.set_autopilot(True)
    await stage.settle()
    stage.engine.set_autopilot(False)
    held.set()
    await stage.settle()
    assert (stage.status("a"), stage.status("b")) == ("passed", "proposed")
    assert await stage.finish() == "test over"


async def test_a_run_that_is_paused_under_autopilot_does_not_end(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a")}
    stage.engine.set_autopilot(True)
    stage.engine.pause()
    await stage.start()
    assert stage.kinds()[-1] == "decided naive"
    stage.engine.resume()
    await stage.task
    assert stage.tree.stopped == "nothing is left to try"


async def test_a_stop_breaks_off_what_runs(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.evaluator.hold("naive")
    await stage.start()
    assert await stage.finish() == "test over"
    assert stage.evaluator.broken_off == ["naive"]
    assert stage.kinds()[-2:] == ["cancelled naive", "stopped"]
