"""A question to a model that is broken off: it costs its tokens, and nothing else is lost by it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from search.engine import EngineError
from search.tree import Tree
from tests.model_server.scripted import error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import NO_OPTIONS, Played, first, proposer, until, written

ROOT = "the first kernel"


def replied(stage: Any, *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(event[field] for field in fields) for event in stage.events if event.kind == "replied"]


async def test_breaking_off_a_question_pauses_and_costs_only_its_tokens(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("write", reply(written(ROOT), between=0.2, pieces=4))
    stage = scripts.Stage(proposer=proposer(model_server))
    heard: list[str] = []
    stage.engine.on_text(lambda question, piece, thought: heard.append(f"{question.call}: {piece}"))
    stage.task = asyncio.create_task(stage.engine.run())
    await until(lambda: len(heard) >= 2)
    assert heard[0] == 'write: {"pa'
    assert stage.engine.cancel_call()
    await until(lambda: stage.tree.paused)
    assert stage.status(ROOT) == "approved"
    assert replied(stage, "call", "outcome", "counted") == [("write", "cancelled", False)]
    assert stage.tree.account.prompt_tokens > 0
    assert [stage.last("paused")["by"], stage.last("cancelled")["option"]] == ["person", stage.tree.root]
    await until(lambda: model_server.left_early == 1)
    assert len(model_server.asked) == 1
    stage.engine.resume()
    await until(lambda: stage.status(ROOT) == "passed")
    await stage.finish()
    assert Tree.fold(stage.events) == stage.tree


@pytest.mark.parametrize("how", ["stop", "prune"])
async def test_what_is_stopped_or_pruned_breaks_the_question_off(
    model_server: ModelServer, scripts: Any, how: str
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("write", written(ROOT), reply(written("a"), between=0.2, pieces=4))
    stage = scripts.Stage(proposer=proposer(model_server))
    await stage.start()
    await until(lambda: "o4" in stage.tree.options)
    stage.engine.approve("o2")
    await until(lambda: played.calls.count("write") == 2 and stage.tree["o2"].running)
    stage.engine.stop("enough") if how == "stop" else stage.engine.prune("o2")
    await until(lambda: model_server.left_early == 1)
    assert replied(stage, "call", "outcome")[-1] == ("write", "cancelled")
    assert stage.tree["o2"].status == ("approved" if how == "stop" else "pruned")
    await stage.finish()


async def test_a_person_s_own_question_that_is_broken_off_does_not_pause(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("propose", reply(NO_OPTIONS, before=5))
    stage = scripts.Stage(proposer=proposer(model_server))
    await stage.start()
    await until(lambda: "o4" in stage.tree.options)
    asking = asyncio.create_task(stage.engine.propose("o1"))
    await until(lambda: "propose" in played.calls)
    assert stage.engine.cancel_call()
    with pytest.raises(Exception, match="broken off"):
        await asking
    assert not stage.tree.paused
    await stage.finish()


async def test_options_that_a_person_did_not_wait_for_are_asked_for_again_where_nothing_else_is_to_be_done(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", reply(first("a", "b", "c"), before=5), first("a", "b", "c"))
    stage = scripts.Stage(proposer=proposer(model_server))
    await stage.start()
    await until(lambda: "initialize" in played.calls)
    stage.engine.cancel_call()
    await until(lambda: stage.tree.paused)
    await asyncio.sleep(0.05)
    assert played.calls.count("initialize") == 1
    stage.engine.resume()
    await until(lambda: "o4" in stage.tree.options)
    assert played.calls.count("initialize") == 2
    assert not any("nothing is left" in str(event.data) for event in stage.events)
    await stage.finish()


@pytest.mark.parametrize("killed", [False, True], ids=["resumed at once", "after a kill"])
async def test_where_a_person_broke_off_is_asked_last_and_then_again(
    model_server: ModelServer, scripts: Any, killed: bool
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("propose", reply(NO_OPTIONS, before=5))
    stage = scripts.Stage(proposer=proposer(model_server))
    stage.evaluator.seconds = {"a": 0.5}
    stage.engine.set_autopilot(True)
    stage.task = asyncio.create_task(stage.engine.run())
    await until(lambda: "propose" in played.calls)
    assert stage.engine.cancel_call()
    await until(lambda: stage.tree.paused)
    at = stage.last("replied")["option"]
    assert at == stage.id("a")
    if killed:
        events = list(stage.events)
        await stage.finish()
        stage = scripts.Stage(tree=Tree.fold(events), proposer=proposer(model_server))
        stage.engine.set_autopilot(True)
        stage.task = asyncio.create_task(stage.engine.run())
    else:
        stage.engine.resume()
    await asyncio.wait_for(stage.task, 10)
    assert stage.tree.stopped == "nothing is left to try"
    asked = [(call, option) for call, option in replied(stage, "call", "option") if call in ("write", "propose")]
    # Both other options were tried and the places under them asked before; then the one that was broken off.
    assert asked.count(("propose", at)) == 2 and asked[-1] == ("propose", at)
    assert {stage.status(title) for title in "abc"} == {"passed"}


async def test_a_wait_between_two_requests_can_be_broken_off_too(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("write", error(429, "slow down", headers={"retry-after": "100"}))
    waiting = asyncio.Event()

    async def wait(seconds: float) -> None:
        waiting.set()
        await asyncio.sleep(seconds)

    stage = scripts.Stage(proposer=proposer(model_server, sleep=wait))
    stage.task = asyncio.create_task(stage.engine.run())
    await asyncio.wait_for(waiting.wait(), 5)
    assert stage.engine.cancel_call()
    await until(lambda: stage.tree.paused)
    (event,) = [event for event in stage.events if event.kind == "replied"]
    # The endpoint read nothing, so nothing was used.
    used = (event["prompt_tokens"], event["completion_tokens"], event["counted"])
    assert (event["outcome"], event["attempts"], used) == ("cancelled", 1, (0, 0, True))
    stage.engine.resume()
    await until(lambda: stage.status(ROOT) == "passed")
    await stage.finish()


async def test_a_program_that_a_stop_found_being_judged_is_judged_when_the_run_goes_on(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("improve", written("a faster"))
    stage = scripts.Stage(budget=3, proposer=proposer(model_server))
    stage.evaluator.seconds = {"a faster": 0.5}
    stage.evaluator.hold("a faster")
    stage.engine.set_autopilot(True)
    stage.task = asyncio.create_task(stage.engine.run())
    await until(lambda: "a faster" in stage.evaluator.called)
    stage.engine.stop("enough")
    await stage.task
    stage.evaluator.held["a faster"].set()
    await asyncio.wait_for(stage.engine.run(), 10)
    assert stage.evaluator.called.count("a faster") == 2 and played.calls.count("improve") == 1
    assert stage.tree.speedup("o2") == pytest.approx(2.0)


async def test_a_run_that_has_stopped_asks_for_no_program_to_edit(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    stage = scripts.Stage(proposer=proposer(model_server))
    await stage.start()
    await until(lambda: "o4" in stage.tree.options)
    await stage.finish()
    asked = len(played.calls)
    with pytest.raises(EngineError, match="the run has stopped"):
        await stage.engine.draft("o2")
    assert len(played.calls) == asked


def piece(text: str, usage: dict[str, int] | None = None) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], "usage": usage}
    return f"data: {json.dumps(chunk)}\n\n".encode()


async def test_what_the_endpoint_had_counted_is_used_and_only_the_rest_is_estimated(
    model_server: ModelServer, scripts: Any
) -> None:
    counted = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    begun = reply("", finish=None, usage=None, raw=(piece("x" * 50, counted), piece("y" * 350)), between=0.05)
    model_server.script([begun, begun, reply("", stall_after=0)])
    stage = scripts.Stage(proposer=proposer(model_server))
    heard: list[str] = []
    stage.engine.on_text(lambda question, piece, thought: heard.append(piece))
    stage.task = asyncio.create_task(stage.engine.run())
    # Two requests that broke off after their two pieces, and one that has said nothing yet.
    await until(lambda: len(model_server.asked) == 3 and len(heard) == 4)
    assert stage.engine.cancel_call()
    await until(lambda: stage.tree.paused)
    (event,) = [event for event in stage.events if event.kind == "replied"]
    estimate = event["prompt_tokens"] - 2 * 900
    assert 1000 < estimate < 4000, "the prompt of the third is estimated"
    assert event["completion_tokens"] == 2 * (100 + 100)
    assert (event["outcome"], event["counted"], event["attempts"], event["by"]) == ("cancelled", False, 3, "person")
    assert stage.tree.account.estimated == 1
    await stage.finish()


@pytest.mark.parametrize("call", ["improve", "refine"])
async def test_a_follow_up_that_a_person_broke_off_is_let_be_and_one_that_a_stop_broke_off_is_not(
    model_server: ModelServer, scripts: Any, call: str
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says(call, *[reply(written("x"), first=5)] * 2)
    stage = scripts.Stage(budget=3, proposer=proposer(model_server))
    stage.engine.set_autopilot(True)
    stage.task = asyncio.create_task(stage.engine.run())
    await until(lambda: call in played.calls)
    stage.engine.stop("enough")
    await stage.task
    assert replied(stage, "call", "outcome")[-1] == (call, "cancelled")

    again = scripts.Stage(budget=3, tree=Tree.fold(stage.events), proposer=proposer(model_server))
    again.task = asyncio.create_task(again.engine.run())
    await until(lambda: played.calls.count(call) == 2)
    assert again.engine.cancel_call()
    await until(lambda: again.tree.paused)
    again.engine.resume()
    await asyncio.wait_for(again.task, 10)
    asked = [(kind, option) for kind, option in replied(again, "call", "option") if kind == call]
    assert asked[:2] == [(call, "o2")] * 2 and (call, "o2") not in asked[2:]
    assert again.tree.stopped == "the budget of 3 evaluations is spent"
