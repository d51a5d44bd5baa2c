"""What goes wrong is said, recorded, and stops no more than it must."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from search.engine import EngineError
from search.evaluation.client import EvaluatorError
from search.proposers.base import ProposerError
from search.recorder import Recorder, RecordError
from search.tree import Tree, TreeError


async def test_a_fault_in_the_evaluator_is_noted_and_stops_the_run(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    stage.evaluator.raises["a"] = ZeroDivisionError("division by zero")
    await stage.start()
    stage.engine.approve(stage.id("a"))
    await stage.task
    assert stage.kinds()[-4:] == ["wrote a", "note a", "cancelled a", "stopped"]
    note = stage.last("note")
    assert note["level"] == "error"
    assert note["text"].startswith("internal error, ZeroDivisionError: division by zero (conftest.py:")
    assert stage.tree.stopped == note["text"]
    assert isinstance(stage.engine.failure, ZeroDivisionError)
    assert stage.status("a") == "approved"
    assert Tree.fold(stage.events) == stage.tree


@pytest.mark.parametrize("call", ["root", "propose naive", "write naive", "repair naive"])
async def test_a_fault_in_the_proposer_is_noted_and_stops_the_run(scripts: Any, call: str) -> None:
    stage = scripts.Stage()
    stage.proposer.raises[call] = KeyError("tile")
    if call.startswith("repair"):
        stage.evaluator.failing["naive"] = "bad"
    await stage.engine.run()
    assert stage.kinds()[-1] == "stopped"
    assert "KeyError: 'tile'" in stage.tree.stopped
    assert isinstance(stage.engine.failure, KeyError)
    assert stage.evaluator.closed == 1


async def test_an_evaluation_of_another_program_is_a_fault(scripts: Any) -> None:
    stage = scripts.Stage()

    async def mistaken(*_: object) -> Any:
        return scripts.judged(scripts.program("another"))

    stage.evaluator.evaluate = mistaken
    await stage.engine.run()
    assert "the evaluation is of another program" in stage.tree.stopped
    assert stage.tree.evaluations == 0


async def test_a_device_that_is_not_there_is_said_plainly(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.evaluator.raises["naive"] = EvaluatorError("there is no C++ compiler: install g++")
    await stage.engine.run()
    assert stage.tree.stopped == "there is no C++ compiler: install g++"


async def test_without_a_kernel_to_start_from_the_run_ends(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.raises["root"] = ProposerError("the catalogue has nothing for 'toy'")
    await stage.engine.run()
    assert stage.tree.stopped == "there is no kernel to start from: the catalogue has nothing for 'toy'"
    assert stage.engine.failure is None


async def test_when_the_root_fails_autopilot_ends_and_says_so(scripts: Any) -> None:
    stage = scripts.Stage(repairs=0)
    stage.evaluator.failing["naive"] = "bad"
    stage.engine.set_autopilot(True)
    await stage.engine.run()
    assert stage.tree.stopped == "there is nothing to build on, 'naive' failed: 1 attempt failed; compile line 3: bad"


async def test_when_the_root_fails_a_person_can_still_write_one(scripts: Any) -> None:
    stage = scripts.Stage(repairs=0)
    stage.evaluator.failing["naive"] = "bad"
    await stage.start()
    assert "nothing to build on" in stage.last("note")["text"]
    stage.engine.edit(stage.tree.root, scripts.program("mine"))
    await stage.settle()
    assert stage.status("naive") == "passed"
    await stage.finish()


async def test_a_proposer_that_can_not_propose_is_a_warning_and_its_last_word_is_kept(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a")}
    stage.proposer.raises["propose a"] = ProposerError("no answer from the model")
    stage.evaluator.seconds["a"] = 0.5
    stage.engine.set_autopilot(True)
    await stage.engine.run()
    warnings = [event for event in stage.events if event.kind == "note"]
    assert [(event["level"], event["text"]) for event in warnings] == [
        ("warning", "no options proposed: no answer from the model")
    ]
    assert stage.tree.stopped == ("nothing is left to try; the proposer's last word was: no answer from the model")


class DiskFull:
    """A session that can take only so many events."""

    def __init__(self, room: int) -> None:
        self.room, self.kept = room, []

    def __call__(self, event: Any) -> None:
        if len(self.kept) == self.room:
            raise OSError(28, "No space left on device")
        self.kept.append(event)


@pytest.mark.parametrize("room", range(12))
async def test_what_can_not_be_recorded_ends_the_run_wherever_it_happens(scripts: Any, room: int) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    disk = DiskFull(room)
    stage.engine.subscribe(disk)
    with pytest.raises(EngineError, match=r"could not be recorded: .*No space left on device"):
        stage.engine.set_autopilot(True)
        await stage.engine.run()
    assert len(stage.events) == room + 1  # nothing happens after the event that was not kept
    assert len(stage.evaluator.called) <= 1
    assert Tree.fold(disk.kept).events == disk.kept
    with pytest.raises(EngineError, match="could not be recorded"):
        stage.engine.pause()


async def test_a_decision_that_can_not_be_recorded_ends_the_run_and_what_it_is_doing(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    stage.evaluator.hold("a")
    await stage.start()
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    stage.engine.subscribe(DiskFull(0))
    with pytest.raises(EngineError, match="No space left"):
        stage.engine.approve(stage.id("b"))
    with pytest.raises(EngineError, match="No space left"):
        await stage.task
    assert stage.evaluator.broken_off == ["a"]
    assert stage.events[-1].kind == "decided"


async def test_a_run_that_waits_ends_too_when_a_decision_can_not_be_recorded(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a")}
    await stage.start()
    stage.engine.subscribe(DiskFull(0))
    with pytest.raises(EngineError, match="No space left"):
        stage.engine.pin(stage.id("a"))
    with pytest.raises(EngineError, match="No space left"):
        await asyncio.wait_for(stage.task, 5)


def test_after_one_event_was_lost_nothing_is_recorded_even_if_there_is_room_again() -> None:
    kept: list[str] = []

    def fails_once(event: Any) -> None:
        if event.kind == "paused":
            raise OSError("the disk was away")
        kept.append(event.kind)

    recorder = Recorder(Tree(), lambda: datetime(2026, 1, 1, tzinfo=UTC))
    recorder.subscribe(fails_once)
    recorder.emit("autopilot", on=True, by="person")
    for kind in ("paused", "resumed"):
        with pytest.raises(RecordError, match=r"event 2 \(paused\) could not be recorded: the disk was away"):
            recorder.emit(kind, by="person")
    assert kept == ["autopilot"]
    assert len(recorder.tree.events) == 2


def test_an_event_that_the_tree_refuses_is_told_to_nobody() -> None:
    kept: list[Any] = []
    recorder = Recorder(Tree(), lambda: datetime(2026, 1, 1, tzinfo=UTC))
    end = recorder.subscribe(kept.append)
    with pytest.raises(TreeError):
        recorder.emit("started", option="nobody", attempt=1)
    assert kept == []
    end()
    recorder.emit("paused", by="person")
    assert kept == []


async def test_a_run_is_not_started_twice(scripts: Any) -> None:
    stage = scripts.Stage()
    await stage.start()
    with pytest.raises(EngineError, match="going on already"):
        await stage.engine.run()
    await stage.finish()


async def test_cancelling_the_run_leaves_a_whole_record(scripts: Any) -> None:
    stage = scripts.Stage()
    stage.evaluator.hold("naive")
    await stage.start()
    stage.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stage.task
    assert stage.evaluator.broken_off == ["naive"]
    assert stage.kinds()[-2:] == ["cancelled naive", "stopped"]
    assert stage.tree.stopped == "interrupted"
    assert stage.evaluator.closed == 1
    assert Tree.fold(stage.events) == stage.tree
