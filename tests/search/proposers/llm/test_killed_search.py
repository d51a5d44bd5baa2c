"""A search with a model that is killed after any event goes on there: nothing is asked twice, nothing left out."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from search.calls import USED
from search.events import Event
from search.tree import Tree
from tests.model_server.scripted import Request, Scripted, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import NO_CHANGE, first, option, proposer, run_through, written

ROOT = "the first kernel"


def rating(name: str, figure: float) -> dict[str, Any]:
    return {"option": name, "rating": figure, "confidence": 0.9, "why": "so"}


class Planned:
    """Answers each question by what it is about, however often and whenever it is asked; ``stage`` is who asks."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.stage: Any = None

    def __call__(self, request: Request) -> Scripted:
        call = request.body["response_format"]["json_schema"]["name"].removesuffix("_reply")
        title = self.stage.tree[self.stage.engine.asking[-1].option].title
        said = getattr(self, call)(title, request.prompt)
        return said if isinstance(said, Scripted) else reply(said, pieces=10_000)

    def initialize(self, title: str, prompt: str) -> Any:
        return first("a", "b", "odd", "vain", "hopeless")

    def propose(self, title: str, prompt: str) -> Any:
        if title == "split two":
            return Scripted(refusal="I would rather not.")
        return {"options": [option(each) for each in {"a": ["a 1", "a 2"]}.get(title, [])], "followed": ""}

    def refine(self, title: str, prompt: str) -> Any:
        ids = {node.title: node.id for node in self.stage.tree.options.values()}
        change = dict(NO_CHANGE)
        if title == "a":
            rated = [("b", 8.5), ("vain", 1.5), ("hopeless", 2.0)]
            change["ratings"] = [rating(ids[name], figure) for name, figure in rated]
            change["inserts"] = [{"under": ids["a"], "option": option("after a", rating=3)}]
        if title == "b":
            change["splits"] = [{"option": ids["odd"], "into": [option("split one"), option("split two")]}]
            change["closes"] = [{"option": ids["vain"], "why": "b has it"}]
        return {**NO_CHANGE, "statuses": []} if title == "a 1" else change

    def write(self, title: str, prompt: str) -> Any:
        return written(title, comment=f"This is {title}.")

    def repair(self, title: str, prompt: str) -> Any:
        return written(f"{title} mended")

    def improve(self, title: str, prompt: str) -> Any:
        if title == "a":
            return written("a slower" if "a faster" in prompt else "a faster")
        return written(title) if title == "b" else Scripted(refusal="It is as fast as can be.")


def staged(planned: Planned, scripts: Any, tree: Tree | None = None) -> Any:
    planned.server.script([planned] * 60)
    stage = planned.stage = scripts.Stage(tree=tree, repairs=1, proposer=proposer(planned.server))
    stage.evaluator.seconds = {"a": 0.9, "a faster": 0.8, "a slower": 0.85, "a 1": 0.7, "split one": 0.3}
    stage.evaluator.failing = {"hopeless": "bad", "hopeless mended": "bad", "b": "no such function"}
    return stage


def asked(tree: Tree) -> Counter[tuple[str, str]]:
    """How often each question was answered, in whatever way."""
    replied = [event for event in tree.events if event.kind == "replied"]
    return Counter((event["call"], tree[event["option"]].title) for event in replied)


def outcome(tree: Tree) -> dict[str, tuple[Any, ...]]:
    """What became of each option: its status, evaluations, rating, confidence and the option above it."""
    titles = {node.id: node.title for node in tree.options.values()}
    return {
        node.title: (
            node.status,
            [each.outcome for each in node.evaluations],
            node.rating,
            node.confidence,
            titles.get(node.parent),
        )
        for node in tree.options.values()
    }


async def test_a_reply_on_record_that_does_not_read_any_more_is_asked_for_again(
    model_server: ModelServer, scripts: Any
) -> None:
    planned = Planned(model_server)
    whole = await run_through(staged(planned, scripts))
    at = next(e.seq for e in whole.events if e.kind == "replied" and e["call"] == "initialize")
    events = list(whole.events[:at])
    digest = hashlib.sha256(b"{}").hexdigest()
    events[-2] = replace(events[-2], data={"sha256": digest, "text": "{}"})
    events[-1] = replace(events[-1], data={**events[-1].data, "text_sha256": digest})
    later = await run_through(staged(planned, scripts, Tree.fold(events)))
    assert asked(later.tree) == asked(whole.tree) + Counter({("initialize", ROOT): 1})
    assert outcome(later.tree) == outcome(whole.tree)

    def refuses(title: str, prompt: str) -> Scripted:
        return Scripted(refusal="I would rather not.")

    planned.initialize = refuses  # type: ignore[method-assign]
    last = await run_through(staged(planned, scripts, Tree.fold(events)))
    assert "I would rather not." in last.tree.stopped and last.last("paused")["by"] == "engine"


def notes(tree: Tree) -> Counter[str]:
    return Counter(event["text"] for event in tree.events if event.kind == "note")


def fruitless(event: Event, tree: Tree) -> set[tuple[str, str]]:
    """What may be asked afresh: a question whose answer was of no use, if nothing says yet what follows from that."""
    without = event.kind == "replied" and event["outcome"] != USED
    return {(event["call"], tree[event["option"]].title)} if without else set()


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
async def test_a_search_that_is_killed_after_any_event_asks_each_question_as_often_as_one_that_is_not(
    model_server: ModelServer, scripts: Any, step: int
) -> None:
    planned = Planned(model_server)
    whole = await run_through(staged(planned, scripts))
    assert whole.tree.stopped.startswith("nothing is left to try")
    expected = asked(whole.tree)
    assert {call for call, _ in expected} == {"initialize", "propose", "write", "repair", "improve", "refine"}
    for kept in range(1, len(whole.events), step):
        last = whole.events[kept - 1]
        at = f"killed after event {kept}: {last.kind} {dict(last.data)}"
        later = await run_through(staged(planned, scripts, Tree.fold(whole.events[:kept])))
        more = asked(later.tree) - expected
        waited = Tree.fold(whole.events[:kept]).questions.values()
        afresh = fruitless(last, whole.tree) | {(each["call"], whole.tree[each["option"]].title) for each in waited}
        assert asked(later.tree) - more == expected and set(more) <= afresh, at
        assert outcome(later.tree) == outcome(whole.tree), at
        assert notes(later.tree) == notes(whole.tree), at
        assert Tree.fold(later.events) == later.tree, at
