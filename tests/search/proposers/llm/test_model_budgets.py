"""What models may use: looked at before each question, counted in every event, and kept when a run goes on."""

from __future__ import annotations

import asyncio
import datetime
import random
from dataclasses import replace
from typing import Any

import pytest

from profiles.models import ModelFacts
from search.tree import Tree
from tests.model_server.scripted import Request, Scripted, error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import NO_OPTIONS, Played, first, proposer, run_through, until, written

ROOT = "the first kernel"
DAY = datetime.date(2026, 11, 30)


def facts(name: str) -> ModelFacts:
    """A model for $2 per million tokens of prompts and $10 of replies."""
    return ModelFacts(name, 100_000, 4000, 2.0, 10.0, None, DAY, "high")


async def test_a_question_that_could_pass_the_tokens_is_not_asked(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("initialize", first("a", "b", "c"))
    used = {"prompt_tokens": 1900, "completion_tokens": 100}
    played.says("write", reply(written("the first kernel"), usage=used))
    # A reply may take 1000 tokens, and the prompts with their schemas are estimated at 1000 to 3000.
    stage = scripts.Stage(tokens=4000, proposer=proposer(model_server, reply_tokens=1000))
    await run_through(stage)
    assert played.calls == ["write"]
    assert stage.tree.account.tokens == 2000
    assert stage.tree.stopped.startswith(
        "the budget of 4000 tokens is spent: 2000 are left, and the next question could take "
    )
    assert stage.tree.evaluations == 1


async def test_a_reply_may_be_as_long_as_what_is_left(model_server: ModelServer, scripts: Any) -> None:
    Played(model_server)
    stage = scripts.Stage(tokens=8000, budget=1, proposer=proposer(model_server, reply_tokens=32_768))
    await run_through(stage)
    (request,) = model_server.asked
    # The prompt has four characters a token on this server, and is estimated with its schema at 3.5.
    assert 2048 <= request.body["max_tokens"] < 8000 - len(request.prompt) / 4
    assert stage.status("the first kernel") == "passed"


async def test_a_reply_that_reached_what_was_left_says_so(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    played.says("write", *[at_its_limit] * 2)
    stage = scripts.Stage(tokens=8000, proposer=proposer(model_server, reply_tokens=32_768))
    await run_through(stage)
    assert "The budget of the run leaves no more for it." in stage.last("replied")["note"]
    assert stage.tree.stopped.startswith("the budget of 8000 tokens is spent: ")
    assert stage.tree.stopped.endswith("; the reply was not sent back")
    assert stage.tree.account.tokens <= 8000


def at_its_limit(request: Request) -> Scripted:
    """A reply that is cut where the request says."""
    used = {"prompt_tokens": len(request.prompt) // 4, "completion_tokens": request.body["max_tokens"]}
    return reply("{", finish="length", usage=used)


LARGE = {"prompt_tokens": 2000, "completion_tokens": 3000}
AGAIN = [
    (reply(written("x", passes=[]), usage=LARGE), "malformed", "; the reply was not sent back", "passes"),
    (reply("", usage=LARGE), "empty", "; the reply was not sent back", "gave no answer"),
    (reply("x" * 10_500, drop_after=800), "dropped", "; it was not asked again", "It was not asked again: the budget "),
    (reply("I would rather talk.", usage=LARGE), "empty", "; it was not asked again", "It was not asked again: "),
    (reply("{", finish="error", usage=LARGE), "server", "; it was not asked again", "It was not asked again: "),
]


@pytest.mark.parametrize(("answer", "outcome", "end", "note"), AGAIN, ids=[f"{case[1]}" for case in AGAIN])
@pytest.mark.parametrize("limit", [{"tokens": 7500}, {"usd": 0.05}], ids=["tokens", "money"])
async def test_no_request_within_a_question_passes_the_budget(
    model_server: ModelServer,
    scripts: Any,
    limit: dict[str, Any],
    answer: Any,
    outcome: str,
    end: str,
    note: str,
) -> None:
    played = Played(model_server)
    played.says("write", *[answer] * 9)
    prices = {"billed": True, "models": (facts("writer"), facts("chooser"))}
    stage = scripts.Stage(**limit, proposer=proposer(model_server, reply_tokens=4000, **prices))
    await run_through(stage)
    assert len(model_server.asked) == 1
    assert [(event["outcome"], event["attempts"]) for event in stage.events if event.kind == "replied"] == [
        (outcome, 1)
    ]
    assert note in stage.last("replied")["note"]
    what = "7500 tokens" if "tokens" in limit else "$0.05"
    assert stage.tree.stopped.startswith(f"the budget of {what} is spent: ") and stage.tree.stopped.endswith(end)
    assert 0 < stage.tree.account.tokens <= 7500 and 0 < stage.tree.account.usd <= 0.05
    assert stage.status("the first kernel") == "approved"
    assert Tree.fold(stage.events) == stage.tree


async def test_a_prompt_that_was_too_long_is_not_sent_again_beyond_the_budget(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    # The prompt is longer than 6 characters a token of these 300, so it was cut in silence.
    cut = reply(written("a"), usage={"prompt_tokens": 300, "completion_tokens": 18_000})
    played.says("initialize", first("a", "b", "c"))
    played.says("write", written(ROOT), cut)
    stage = scripts.Stage(tokens=24_000, proposer=proposer(model_server, reply_tokens=2500, cuts_prompts=True))
    await run_through(stage)
    assert stage.last("replied")["outcome"] == "too_long"
    assert played.calls == ["write", "initialize", "write"]
    assert stage.tree.stopped.startswith("the budget of 24000 tokens is spent: ")
    assert stage.tree.stopped.endswith("; the shorter prompt was not sent")


async def test_a_question_waits_for_another_where_both_could_pass_the_budget(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    thousand = {"prompt_tokens": 1000, "completion_tokens": 1000}
    played.says("write", reply(written(ROOT), usage=thousand))
    played.says("initialize", reply(first("a", "b", "c"), usage=thousand))
    played.says("propose", reply(NO_OPTIONS, first=0.3), reply(NO_OPTIONS))
    stage = scripts.Stage(tokens=10_000, proposer=proposer(model_server, reply_tokens=3000))
    told: list[str] = []
    stage.engine.on_progress(lambda option, stage: told.append(stage))
    await stage.start()
    await until(lambda: "o4" in stage.tree.options)
    # 6000 tokens are left: room for a prompt of 1000 to 2000 and a reply of 3000, not for two of both.
    both = [asyncio.create_task(stage.engine.propose("o1")) for _ in range(2)]
    await until(lambda: len(stage.engine.asking) == 2 and "propose" in played.calls)
    assert played.calls.count("propose") == 1
    assert await asyncio.gather(*both) == [0, 0]
    assert "waiting until another question is answered: the budget has no room for both" in told
    assert stage.tree.account.tokens <= 10_000
    await stage.finish()


async def test_minutes_are_looked_at_before_each_request(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    stage = scripts.Stage(minutes=1.0, proposer=proposer(model_server))

    def late(request: Any) -> Any:
        stage.now += datetime.timedelta(minutes=2)
        return error(429, "slow down")

    played.says("write", late)
    await run_through(stage)
    assert len(model_server.asked) == 1
    assert stage.tree.stopped == "the budget of 1 min is spent; it was not asked again"


async def test_whatever_goes_wrong_nothing_is_sent_that_could_pass_the_budget(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    chance = random.Random(5)
    bad = [
        reply("{" * 2000, drop_after=80),
        error(500, "overloaded"),
        reply(written("x", passes=[])),
        reply("prose " * 300),
        at_its_limit,
        reply("", reasoning="hm " * 900),
    ]
    played.says("initialize", first("a", "b", "c", "d", "e", "f"))
    played.says("write", written(ROOT))
    for call in ("write", "improve", "refine", "propose"):
        played.says(call, *(chance.choice(bad) for _ in range(20)))
    tokens = 40_000
    stage = scripts.Stage(tokens=tokens, proposer=proposer(model_server, reply_tokens=2500))
    beyond: list[int] = []

    def look(call: str, request: Any) -> None:
        # By the server's own count of this prompt, and what is on record of the questions before.
        could = stage.tree.account.tokens + len(request.prompt) // 4 + request.body["max_tokens"]
        beyond.append(could - tokens)

    played.looks = look
    for _ in range(30):
        if stage.tree.stopped.startswith("the budget"):
            break
        stage = scripts.Stage(
            tokens=tokens, tree=Tree.fold(stage.events), proposer=proposer(model_server, reply_tokens=2500)
        )
        await run_through(stage)
    assert stage.tree.stopped.startswith(f"the budget of {tokens} tokens is spent")
    assert len(beyond) > 10 and max(beyond) <= 0
    assert 0.5 * tokens < stage.tree.account.tokens <= tokens


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
    stage = scripts.Stage(usd=0.05, proposer=proposer(model_server, **endpoint))
    await run_through(stage)
    # 10000 tokens at $2 and 1000 at $10 a million; a reply of 2048 tokens, the fewest, could cost $0.0205.
    assert stage.tree.account.usd == pytest.approx(0.03)
    assert stage.tree.stopped.startswith("the budget of $0.05 is spent: $0.0200 is left, and the next question could ")
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
