"""What a person says is on record at once, and so is the question about it: whatever ends the run, neither is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from search.calls import LOST, USED
from search.engine import EngineError
from search.tree import Tree
from tests.model_server.scripted import error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import Played, first, option, proposer, until, written

WORDS = "without atomics"
ANSWER = {
    "options": [option("guided one", rating=9), option("c", rating=8)],
    "avoid": ["o2", "o3"],
    "question": "",
    "choices": [],
    "followed": "none in it",
}


async def waiting(played: Played, scripts: Any) -> Any:
    """Start a run that waits for a person, with a, b and c (o2 to o4) proposed under its root."""
    played.says("initialize", first("a", "b", "c"))
    stage = scripts.Stage(proposer=proposer(played.server))
    await stage.start()
    await until(lambda: "o4" in stage.tree.options)
    return stage


async def resumed(
    events: list[Any], server: ModelServer, scripts: Any, enough: Callable[[Any], object], **settings: Any
) -> Any:
    """Go on with a run that was killed after ``events``, until ``enough`` is there."""
    stage = scripts.Stage(tree=Tree.fold(events), proposer=proposer(server), **settings)
    await stage.start()
    await until(lambda: enough(stage))
    # Nothing more comes by itself.
    await asyncio.sleep(0.02)
    return stage


def state(tree: Tree) -> list[tuple[Any, ...]]:
    return [(node.id, node.title, node.status, node.rating, node.guidance) for node in tree.options.values()]


def asked(events: list[Any]) -> list[tuple[str, str]]:
    return [(event["call"], event["outcome"]) for event in events if event.kind == "replied"]


async def test_a_run_that_is_killed_after_any_event_of_a_redirect_comes_to_the_same_tree(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    before = len(stage.events)
    played.says("redirect", ANSWER)
    await stage.engine.redirect("o1", WORDS)
    whole = list(stage.events)
    await stage.finish()
    kinds = [event.kind for event in whole[before:]]
    assert kinds == ["redirected", "sent", "text", "replied", "note", "option_added", "rated", "decided", "decided"]
    assert played.prompt("redirect").count(WORDS) == 1
    asking = before + 2
    for kept in range(asking, len(whole) + 1):
        played.answers["redirect"].clear()
        played.says("redirect", ANSWER)
        played.calls.clear()
        later = await resumed(whole[:kept], model_server, scripts, lambda it: state(it.tree) == state(stage.tree))
        at = f"killed after event {kept}: {whole[kept - 1].kind}"
        assert state(later.tree) == state(stage.tree), at
        assert sum(event.kind == "note" and event["text"] == "none in it" for event in later.events) == 1, at
        # What was answered before is not asked again.
        answered = whole[kept - 1].seq >= before + 4
        lost = [] if answered else [("redirect", LOST)]
        assert asked(later.events)[2:] == [*lost, ("redirect", USED)], at
        assert played.calls == ([] if answered else ["redirect"]), at
        await later.finish()
        assert Tree.fold(later.events) == later.tree, at


async def test_words_that_a_quit_found_unanswered_hold_and_are_asked_about_when_the_run_goes_on(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    played.says("redirect", reply(ANSWER, between=0.2, pieces=4))
    asking = asyncio.create_task(stage.engine.redirect("o1", WORDS))
    await until(lambda: "redirect" in played.calls)
    stage.engine.stop("quit")
    with pytest.raises(EngineError, match="the run has stopped"):
        await asking
    assert asked(stage.events)[-1] == ("redirect", "cancelled")
    assert stage.tree.guidance_for("o4") == (WORDS,)
    played.says("redirect", ANSWER)
    later = await resumed(stage.events, model_server, scripts, lambda it: it.tree["o2"].pruned and it.tree["o3"].pruned)
    assert later.tree.guidance_for(later.id("guided one")) == (WORDS,)
    assert later.tree.last_undoable().kind == "redirected"
    await later.finish()


async def test_a_redirect_that_was_taken_back_before_the_run_goes_on_is_not_asked_about(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    played.says("redirect", reply(ANSWER, between=0.2, pieces=4))
    asking = asyncio.create_task(stage.engine.redirect("o1", WORDS))
    await until(lambda: any(event.kind == "sent" and event["call"] == "redirect" for event in stage.events))
    killed = list(stage.events)
    asking.cancel()
    await stage.finish()
    played.calls.clear()
    later = scripts.Stage(tree=Tree.fold(killed), proposer=proposer(model_server))
    assert later.engine.undo() == "the redirection of 'the first kernel'"
    await later.start()
    await asyncio.sleep(0.05)
    assert played.calls == []
    assert later.tree.guidance_for("o4") == ()
    await later.finish()


async def test_where_the_endpoint_is_down_the_words_hold_and_the_next_question_is_told_them(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    played.says("redirect", *[error(503, "overloaded")] * 4)
    with pytest.raises(EngineError, match=r"overloaded.*What you said is kept as guidance for 'the first kernel'"):
        await stage.engine.redirect("o1", WORDS)
    played.says("write", *[written("a", followed="none in it")] * 2)
    stage.engine.approve("o2")
    await until(lambda: stage.tree["o2"].running and played.calls[-1] == "write")
    assert WORDS in played.prompt("write")
    # What came to nothing is not asked about again.
    killed = list(stage.events)
    await stage.finish()
    assert Tree.fold(killed).guidance_for("o2") == (WORDS,)
    played.calls.clear()
    later = await resumed(killed, model_server, scripts, lambda it: it.tree["o2"].passing)
    assert "redirect" not in played.calls
    await later.finish()


async def test_what_a_question_may_have_used_when_the_program_was_killed_counts_as_an_estimate(
    model_server: ModelServer, scripts: Any
) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    killed = next(event.seq for event in stage.events if event.kind == "sent" and event["call"] == "initialize")
    (question,) = Tree.fold(stage.events[:killed]).questions.values()
    assert not stage.tree.questions
    played.says("initialize", first("a", "b", "c"))
    later = await resumed(stage.events[:killed], model_server, scripts, lambda it: "o4" in it.tree.options)
    await later.finish()
    await stage.finish()
    lost, whole = later.tree.account, stage.tree.account
    assert question["prompt_tokens"] > 100
    assert lost.prompt_tokens == whole.prompt_tokens + question["prompt_tokens"]
    assert (lost.completion_tokens, lost.estimated, lost.replies) == (whole.completion_tokens, 1, whole.replies + 1)
    reply = next(event for event in later.events if event.kind == "replied" and event["outcome"] == LOST)
    assert (reply["question"], reply["option"], reply["call"]) == (killed, "o1", "initialize")
    assert "the program was killed" in reply["note"]
    # It is said once, however often the run goes on.
    last = await resumed(later.events, model_server, scripts, lambda it: not it.tree.stopped)
    assert asked(last.events).count(("initialize", LOST)) == 1


async def test_what_was_lost_counts_against_the_budget(model_server: ModelServer, scripts: Any) -> None:
    played = Played(model_server)
    stage = await waiting(played, scripts)
    await stage.finish()
    killed = next(event.seq for event in stage.events if event.kind == "sent" and event["call"] == "initialize")
    events = stage.events[:killed]
    used = Tree.fold(events).account.tokens + events[-1]["prompt_tokens"]
    played.calls.clear()
    later = await resumed(events, model_server, scripts, lambda it: it.tree.stopped, tokens=used)
    assert later.tree.stopped == f"the budget of {used} tokens is spent"
    assert played.calls == []
