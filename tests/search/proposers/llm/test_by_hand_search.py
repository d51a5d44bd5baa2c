"""A whole search in which every reply was written by hand: recorded, and run again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from search.config import RunConfig
from search.evaluation.client import Evaluator, EvaluatorProcess
from search.evaluation.record import Evaluation
from search.kernels.program import Program
from search.option import FAILED, PASSED, PRUNED
from search.tree import Tree
from sessions.examples import example_path
from sessions.store import Session, read_session
from tests.model_server.by_hand import MODEL, ByHand, engine_by_hand, run_alone
from tests.model_server.server import ModelServer

REPLIES = Path(__file__).parents[3] / "fixtures" / "selective_scan"
SHAPE = {
    "the given program": ("", PASSED),
    "Sixteen lanes a channel": ("the given program", PASSED),
    "Decay rates and D in registers": ("the given program", PASSED),
    "Cheaper arithmetic": ("the given program", PRUNED),
    "States and sums in half": ("the given program", FAILED),
    "exp2, with log2(e) folded into A": ("the given program", PASSED),
    "Four lanes a channel, four states each": ("Sixteen lanes a channel", PASSED),
    "One softplus a token, handed on by shuffles": ("Four lanes a channel, four states each", PASSED),
    "Tiles of 32 tokens through threadgroup memory": ("Four lanes a channel, four states each", PASSED),
    "Eight lanes where the model is narrow": ("One softplus a token, handed on by shuffles", PASSED),
    "B and C as vectors of eight": ("Decay rates and D in registers", PASSED),
    "B and C of 32 tokens in threadgroup memory": ("Decay rates and D in registers", PRUNED),
    "Chunks of 64 tokens in three passes": ("B and C as vectors of eight", PASSED),
    "Two channels a thread": ("B and C as vectors of eight", PASSED),
    "A scan of pairs by each simdgroup": ("B and C as vectors of eight", PASSED),
    "As many chunks as the cores need": ("Chunks of 64 tokens in three passes", PASSED),
    "Each chunk carries for itself: two passes": ("As many chunks as the cores need", PASSED),
    "Eight states at a time": ("Each chunk carries for itself: two passes", PASSED),
}
"""Every option with the one it stands under, and what became of it."""


class Recorded:
    """Judges by the verdicts of a session; a program that isn't in it is an error."""

    def __init__(self, session: Session) -> None:
        self._verdicts = {
            event["program"]: Evaluation.from_fields(event.data)
            for event in session.events
            if event.kind == "evaluated"
        }

    async def evaluate(self, program: Program, progress: Callable[[str], None]) -> Evaluation:
        return self._verdicts[program.sha256]

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def session() -> Session:
    return read_session(example_path("selective_scan"))


def shape(tree: Tree) -> dict[str, tuple[str, str]]:
    titles = {option.id: option.title for option in tree.options.values()}
    return {option.title: (titles.get(option.parent, ""), option.status) for option in tree.options.values()}


async def searched(config: RunConfig, server: ModelServer, evaluator: Evaluator, seconds: float) -> tuple[Tree, ByHand]:
    replies = ByHand(REPLIES)
    engine = engine_by_hand(config, server, replies, evaluator)
    async with asyncio.timeout(seconds):
        await run_alone(engine)
    return engine.tree, replies


def test_the_recorded_search_says_whose_the_replies_are(session: Session) -> None:
    tree = Tree.fold(session.events)
    replied = [event for event in session.events if event.kind == "replied"]
    assert {(event["model"], event["endpoint"]) for event in replied} == {(MODEL, MODEL)}
    assert {event["outcome"] for event in replied} == {"used"}
    notes = [event["text"] for event in session.events if event.kind == "note"]
    assert "(plan and kernels written by hand)" in notes[0]
    assert {option.writer for option in tree.options.values() if option.program} == {"catalogue", f"llm:{MODEL}"}
    assert shape(tree) == SHAPE


def test_the_recorded_search_shows_a_race_a_compile_error_and_a_wrong_result_and_what_came_of_them(
    session: Session,
) -> None:
    tree = Tree.fold(session.events)
    titles = {option.title: option for option in tree.options.values()}

    def outcomes(title: str) -> list[str]:
        return [each.failure.stage if each.failure else PASSED for each in titles[title].evaluations]

    assert outcomes("Tiles of 32 tokens through threadgroup memory") == ["race", PASSED]
    assert outcomes("B and C as vectors of eight") == ["compile", PASSED]
    assert outcomes("States and sums in half") == ["correctness", "correctness"]
    assert outcomes("Chunks of 64 tokens in three passes") == [PASSED, PASSED]  # the second is an improvement
    for slower in ("Two channels a thread", "A scan of pairs by each simdgroup"):
        assert tree.speedup_over_parent(titles[slower].id) < 0.7
    best = tree.best()
    assert best is not None and best.title == "Eight states at a time"
    assert tree.speedup(best.id) > 8


async def test_the_search_run_again_takes_the_same_way(session: Session, model_server: ModelServer) -> None:
    tree, replies = await searched(session.config, model_server, Recorded(session), 60)
    assert tree.stopped == "nothing is left to try"
    assert [option.title for option in tree.options.values()] == [
        option.title for option in Tree.fold(session.events).options.values()
    ]
    assert shape(tree) == SHAPE
    assert replies.left == set()


@pytest.mark.slow
async def test_the_search_judged_again_comes_to_the_same_tree(session: Session, model_server: ModelServer) -> None:
    config = session.config
    evaluator = EvaluatorProcess(config.problem, config.device, config.profile)
    tree, _ = await searched(config, model_server, evaluator, 1200)
    assert tree.stopped == "nothing is left to try"
    assert shape(tree) == SHAPE
    best = tree.best()
    assert best is not None and best.title == "Eight states at a time"
