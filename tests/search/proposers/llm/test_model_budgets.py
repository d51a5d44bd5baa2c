"""What models may use: looked at before each question, counted in every event, and kept when a run goes on."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from profiles.models import ModelFacts
from search.tree import Tree
from tests.model_server.scripted import reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import Played, first, proposer, run_through, written

DAY = datetime.date(2026, 11, 30)


def facts(name: str) -> ModelFacts:
    """A model for $2 per million tokens of prompts and $10 of replies."""
    return ModelFacts(name, 100_000, 4000, 2.0, 10.0, None, DAY, "high")


async def test_a_question_that_could_pass_the_tokens_is_not_asked(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    used = {"prompt_tokens": 900, "completion_tokens": 100}
    played.says("write", reply(written("the first kernel"), usage=used))
    # A reply may take 1000 tokens, and the prompts are estimated at more than 500.
    stage = scripts.Stage(tokens=2500, proposer=proposer(model_server, reply_tokens=1000))
    await run_through(stage)
    assert played.calls == ["write"]
    assert stage.tree.account.tokens == 1000
    assert stage.tree.stopped.startswith(
        "the budget of 2500 tokens is spent: 1500 are left, and the next question could take "
    )
    assert stage.tree.evaluations == 1


async def test_what_is_left_is_kept_when_the_run_goes_on(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    asking = {"reply_tokens": 1000}
    stage = await run_through(scripts.Stage(tokens=9000, proposer=proposer(model_server, **asking)))
    used = stage.tree.account
    assert stage.tree.stopped.startswith("the budget of 9000 tokens is spent") and used.tokens <= 9000
    again = scripts.Stage(tokens=9000, tree=Tree.fold(stage.events), proposer=proposer(model_server, **asking))
    await run_through(again)
    # Another question may still fit into the rest, but nothing is given back.
    assert used.tokens <= again.tree.account.tokens <= 9000
    assert again.tree.stopped.startswith("the budget of 9000 tokens is spent")
    more = scripts.Stage(tokens=60_000, tree=Tree.fold(stage.events), proposer=proposer(model_server, **asking))
    await run_through(more)
    assert more.tree.account.tokens > used.tokens


async def test_money_is_counted_by_the_profile_s_prices(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    played.says("write", reply(written("the first kernel"), usage={"prompt_tokens": 10_000, "completion_tokens": 1000}))
    endpoint = {"billed": True, "models": (facts("chooser"), facts("writer")), "reply_tokens": 4000}
    stage = scripts.Stage(usd=0.06, proposer=proposer(model_server, **endpoint))
    await run_through(stage)
    # 10000 tokens at $2 and 1000 at $10 a million; a reply of 4000 tokens more could cost $0.04 and its prompt.
    assert stage.tree.account.usd == pytest.approx(0.03)
    assert stage.tree.stopped.startswith("the budget of $0.06 is spent: $0.0300 is left, and the next question could ")
    assert played.calls == ["write"]


async def test_money_can_not_be_limited_where_no_price_is_known(model_server: ModelServer, scripts: Any) -> None:
    Played(model_server)
    stage = scripts.Stage(usd=1.0, proposer=proposer(model_server, billed=True))
    await run_through(stage)
    assert stage.tree.stopped.startswith("no price is known for writer at vllm")
    assert not model_server.asked


async def test_a_reply_without_a_known_price_is_marked(model_server: ModelServer, scripts: Any) -> None:
    Played(model_server)
    stage = scripts.Stage(budget=1, proposer=proposer(model_server, billed=True))
    await run_through(stage)
    assert stage.last("replied")["priced"] is False
    assert (stage.tree.account.usd, stage.tree.account.unpriced) == (0.0, 1)


async def test_the_minutes_end_a_run_and_pauses_do_not_count(model_server: ModelServer, scripts: Any) -> None:
    stage = scripts.Stage(minutes=1.0)
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    await stage.start()
    stage.engine.pause()
    stage.now += datetime.timedelta(minutes=10)
    stage.engine.resume()
    await stage.settle()
    assert not stage.tree.stopped
    stage.now += datetime.timedelta(seconds=59)
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert stage.tree.stopped == "the budget of 1 min is spent"
    seconds = stage.tree.seconds(stage.now + datetime.timedelta(hours=1))
    assert 59 < seconds < 75
    later = scripts.Stage(minutes=1.0, tree=replace_events(stage, scripts))
    later.now = stage.now + datetime.timedelta(days=1)
    await later.engine.run()
    assert later.tree.stopped == "the budget of 1 min is spent"
    assert later.tree.seconds(later.now) == pytest.approx(seconds, abs=2)


def replace_events(stage: Any, scripts: Any) -> Tree:
    """The tree of a run that was killed before it could say that it stopped."""
    return Tree.fold([replace(event) for event in stage.events if event.kind != "stopped"])
