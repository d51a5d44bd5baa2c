"""What goes wrong with an endpoint during a search: the run waits or goes round it, nothing is lost, nothing spins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from search.proposers.base import ProposerUnavailable
from search.proposers.llm.client import RETRIES
from search.tree import Tree
from tests.model_server.scripted import Scripted, error
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import NO_CHANGE, Played, first, proposer, run_through, written

ROOT = "the first kernel"

POINTLESS = [
    (error(429, "slow down"), "rate_limit", "takes no more requests"),
    (error(429, "slow down", headers={"retry-after": "7200"}), "rate_limit", "takes no more requests"),
    (error(503, "overloaded"), "server", "overloaded"),
    (error(401, "Incorrect API key provided"), "wrong_key", "refuses the key"),
    (error(404, "The model does not exist", code="model_not_found"), "unknown_model", "has no model 'writer'"),
    (error(429, "You exceeded your current quota", code="insufficient_quota"), "no_credit", "no credit left"),
    (Scripted(text="{" * 100, drop_after=2), "dropped", "Nothing of it is used"),
]


@pytest.mark.parametrize(("answer", "kind", "words"), POINTLESS)
async def test_what_no_other_question_would_survive_pauses_the_run(
    model_server: ModelServer, scripts: Any, answer: Scripted, kind: str, words: str
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("write", written(ROOT), *[answer] * 20)
    stage = await run_through(scripts.Stage(proposer=proposer(model_server)))
    assert words in stage.tree.stopped
    assert "--proposer catalogue needs no model." in stage.tree.stopped
    # The option that was begun waits; the others were not tried, let alone failed.
    assert [o.status for o in stage.tree.options.values()] == ["passed", "approved", "proposed", "proposed"]
    assert stage.kinds("started", "cancelled", "paused", "failed")[-3:] == ["started a", "cancelled a", "paused"]
    assert stage.last("paused")["by"] == "engine"
    assert stage.last("replied")["outcome"] == kind
    assert played.calls.count("write") <= 2 + max(RETRIES.values())
    assert Tree.fold(stage.events) == stage.tree


async def test_a_run_that_paused_asks_nothing_until_a_person_lets_it_go_on(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("write", written(ROOT), error(401, "no such key"))
    stage = scripts.Stage(budget=2, proposer=proposer(model_server))
    stage.engine.set_autopilot(True)
    running = asyncio.create_task(stage.engine.run())
    async with asyncio.timeout(5):
        while not stage.tree.paused:
            await asyncio.sleep(0.005)
    asked = len(model_server.asked)
    await asyncio.sleep(0.1)
    assert len(model_server.asked) == asked
    stage.engine.resume()
    await asyncio.wait_for(running, 5)
    assert stage.status("a") == "passed"
    assert stage.tree.stopped == "the budget of 2 evaluations is spent"


async def test_waits_are_told(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("write", error(429, "slow down", headers={"retry-after": "7"}))
    stage = scripts.Stage(budget=1, proposer=proposer(model_server))
    told: list[tuple[str, str]] = []
    stage.engine.on_progress(lambda option, stage: told.append((option, stage)))
    await run_through(stage)
    assert any(option == "o1" and "Waiting 7 s, as it asks (1 of 4)" in text for option, text in told)
    assert stage.last("replied")["attempts"] == 2
    assert stage.status(ROOT) == "passed"


async def test_an_endpoint_that_is_down_is_said_before_anything_begins(model_server: ModelServer) -> None:
    asking = proposer(model_server, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProposerUnavailable, match=r"can't be reached at http://127.0.0.1:9/v1.*--proposer catalogue"):
        await asking.ready()
    await asking.close()


async def test_a_prompt_that_is_too_long_loses_the_tree_before_the_references(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    stage = scripts.Stage(budget=2, proposer=proposer(model_server, context="full"))

    def tighten(event: Any) -> None:
        if event.kind == "evaluated":
            model_server.context = -(-len(played.prompt("write")) // 4) + 100

    stage.engine.subscribe(tighten)
    await run_through(stage)
    cut = [event["text"] for event in stage.events if event.kind == "note" and "too long" in event["text"]]
    assert cut and all(text.startswith("the prompt was too long for the model, so it was cut: tree") for text in cut)
    outcomes = [event["outcome"] for event in stage.events if event.kind == "replied"]
    assert "too_long" in outcomes
    assert stage.status("a") == "passed"


async def test_a_prompt_that_stays_too_long_fails_the_question_and_soon_pauses(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c", "d"))
    stage = scripts.Stage(proposer=proposer(model_server))

    def tighten(event: Any) -> None:
        if event.kind == "option_added" and event["title"] == "d":
            model_server.context = 50

    stage.engine.subscribe(tighten)
    await run_through(stage)
    assert stage.tree.stopped.startswith("3 questions in a row to vLLM got no usable answer")
    assert stage.tree.evaluations == 1
    assert len(model_server.asked) < 40


@pytest.mark.parametrize(
    ("answer", "outcome", "asked"),
    [
        (Scripted(refusal="I can't help with that."), "refusal", 1),
        (Scripted(text=""), "empty", 2),
        (Scripted(text="{", finish="length", usage={"prompt_tokens": 9, "completion_tokens": 8192}), "length", 2),
        (error(400, "the kernel is not to my liking"), "bad_request", 1),
    ],
)
async def test_a_question_without_an_answer_costs_that_option_only(
    model_server: ModelServer, scripts: Any, answer: Scripted, outcome: str, asked: int
) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("write", written(ROOT), *[answer] * asked)
    stage = await run_through(scripts.Stage(budget=3, proposer=proposer(model_server)))
    assert [event["outcome"] for event in stage.events if event.kind == "replied"].count(outcome) == asked
    assert (stage.status("a"), stage.status("b")) == ("failed", "passed")
    assert not stage.tree[stage.id("a")].evaluations


async def test_a_model_that_never_answers_usably_pauses_the_run(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c", "d"))
    played.says("write", written(ROOT), *[written("x", passes=[])] * 50)
    played.says("refine", *[{**NO_CHANGE, "statuses": []}] * 50)
    stage = await run_through(scripts.Stage(proposer=proposer(model_server)))
    assert "3 questions in a row to vLLM got no usable answer; the last one: " in stage.tree.stopped
    assert stage.last("paused")["by"] == "engine"
    assert stage.tree.evaluations == 1
    assert len(model_server.asked) == 2 + 2 * 3
