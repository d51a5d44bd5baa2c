"""A scripted proposer and evaluator around a real engine, for tests that say exactly what happens when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from profiles.hardware import load_profile
from search.attempt import store
from search.config import RunConfig
from search.engine import Engine
from search.evaluation.record import FAILED, PASSED, Evaluation, Failure, WorkloadTime
from search.events import Event
from search.growth import fields
from search.kernels.program import Pass, Program
from search.problems.definition import Problem
from search.proposers.base import Proposal, Redirection, Situation
from search.tree import Tree

PROFILE = load_profile("apple-m3-max")
PROBLEM = Problem("toy", "Toy", "", Path(), {}, (), (), {}, "1", "1", (), (), "r.py:f", "r.py:g")


def program(name: str) -> Program:
    """A program whose source is its name, so that scripts can speak of it."""
    return Program((Pass("main", ("x",), ("y",), name, ("32", "1", "1"), ("32", "1", "1")),))


def source(of: Program) -> str:
    """The name that `program` gave."""
    return of.passes[0].source


def proposal(title: str, **changes: object) -> Proposal:
    """A proposal whose action is its title: rating 5, confidence 0.5, difficulty 2, predicted 2×."""
    said: dict[str, object] = {
        "why": f"because {title}",
        "action": title,
        "rating": 5.0,
        "confidence": 0.5,
        "difficulty": 2,
        "predicted": 2.0,
    }
    return Proposal(title, **{**said, **changes})  # type: ignore[arg-type]


class ScriptedProposer:
    """Proposes ``menu[title]`` under the option of that title, once; writes a program named after the option."""

    name = "script"

    def __init__(self) -> None:
        self.menu: dict[str, list[Proposal]] = {}
        self.answers: dict[str, Redirection] = {}
        self.mends: dict[str, list[Program | None]] = {}
        self.raises: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.written: list[str] = []

    def _raise(self, call: str) -> None:
        if call in self.raises:
            raise self.raises[call]

    async def root(self, situation: Situation) -> Proposal:
        self._raise("root")
        return proposal("naive", action="", predicted=0.0)

    async def propose(self, situation: Situation, option: str) -> tuple[Proposal, ...]:
        title = situation.tree[option].title
        self.asked.append(title)
        self._raise(f"propose {title}")
        return tuple(self.menu.get(title, ()))

    async def redirect(self, situation: Situation, option: str, guidance: str) -> Redirection:
        self._raise(f"redirect {guidance}")
        return self.answers.get(guidance, Redirection())

    async def write(self, situation: Situation, option: str) -> Program:
        title = situation.tree[option].title
        self._raise(f"write {title}")
        self.written.append(title)
        return program(title)

    async def repair(self, situation: Situation, option: str, failed: Program, failure: Failure) -> Program | None:
        title = situation.tree[option].title
        self._raise(f"repair {title}")
        if title in self.mends:
            return self.mends[title].pop(0)
        return program(f"{source(failed)} mended")


class ScriptedEvaluator:
    """Passes every program in ``seconds`` (by its name, else 1 s), but for those in ``failing`` or ``raises``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failing: dict[str, str] = {}
        self.raises: dict[str, Exception] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.called: list[str] = []
        self.broken_off: list[str] = []
        self.closed = 0

    async def evaluate(self, of: Program, progress: Callable[[str], None]) -> Evaluation:
        name = source(of)
        self.called.append(name)
        progress("compiling")
        if name in self.held:
            try:
                await self.held[name].wait()
            except asyncio.CancelledError:
                self.broken_off.append(name)
                raise
        if name in self.raises:
            raise self.raises[name]
        return judged(of, self.seconds.get(name, 1.0), self.failing.get(name, ""))

    def hold(self, name: str) -> asyncio.Event:
        """Let the evaluation of ``name`` wait until the event that is returned is set."""
        self.held[name] = asyncio.Event()
        return self.held[name]

    async def close(self) -> None:
        self.closed += 1


def judged(of: Program, seconds: float = 1.0, failing: str = "") -> Evaluation:
    """The evaluation of ``of``: one workload in ``seconds``, or a failure to compile with the message ``failing``."""
    if failing:
        return Evaluation(of.sha256, FAILED, "simulator", "modelled", "toy", Failure("compile", failing, line=3))
    time = WorkloadTime("w", seconds, seconds, seconds, 0.1)
    return Evaluation(of.sha256, PASSED, "simulator", "modelled", "toy", None, (time,), cases=2)


class Stage:
    """An engine with its scripts and everything that it emitted; start it with `start`."""

    def __init__(
        self, budget: int = 40, tree: Tree | None = None, repairs: int = 2, proposer: Any = None, **settings: Any
    ) -> None:
        self.proposer, self.evaluator = proposer or ScriptedProposer(), ScriptedEvaluator()
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.engine = Engine(
            RunConfig("toy", budget=budget, **settings),
            PROBLEM,
            PROFILE,
            self.proposer,
            self.evaluator,
            tree=tree,
            clock=self.tick,
            repairs=repairs,
        )
        self.events: list[Event] = list(tree.events) if tree else []
        self.engine.subscribe(self.events.append)
        self.task: asyncio.Task[None] | None = None

    def tick(self) -> datetime:
        self.now += timedelta(milliseconds=500)
        return self.now

    @property
    def tree(self) -> Tree:
        return self.engine.tree

    async def start(self) -> None:
        """Run until the engine waits for something that these scripts don't bring by themselves."""
        self.task = asyncio.create_task(self.engine.run())
        await self.settle()

    async def settle(self) -> None:
        """Give the loop enough turns to do all that it can do; the scripts never wait for a clock."""
        for _ in range(400):
            await asyncio.sleep(0)

    async def finish(self) -> str:
        """Stop if still needed, wait for the run's end and return why it stopped."""
        self.engine.stop("test over")
        if self.task is not None:
            await self.task
        return self.tree.stopped

    def id(self, title: str) -> str:
        """The id of the latest option with this title."""
        return [option.id for option in self.tree.options.values() if option.title == title][-1]

    def status(self, title: str) -> str:
        return self.tree[self.id(title)].status

    def kinds(self, *wanted: str) -> list[str]:
        """What happened, as ``kind title``, of the kinds that are wanted (all but stored texts if none)."""
        told = []
        for event in self.events:
            if event.kind in wanted or (not wanted and event.kind not in ("kernel", "program")):
                option = event.data.get("option", "")
                title = next(
                    (e["title"] for e in self.events if e.kind == "option_added" and e["option"] == option), ""
                )
                told.append(f"{event.kind} {title}".strip())
        return told

    def last(self, kind: str) -> Event:
        return [event for event in self.events if event.kind == kind][-1]


class Grower:
    """Builds a tree event by event, for tests of what only reads trees."""

    def __init__(self) -> None:
        self.tree = Tree()

    def happens(self, kind: str, **data: object) -> Event:
        event = Event(len(self.tree.events) + 1, "2026-01-02T03:04:05.000Z", kind, data)
        self.tree.apply(event)
        return event

    def option(self, name: str, parent: str = "", by: str = "script", origin: int = 0, **changes: object) -> str:
        """Add an option whose id is ``name``; the fields are those of `proposal`."""
        self.happens("option_added", **fields(name, parent, proposal(name, **changes), by, origin))
        return name

    def decide(self, option: str, decision: str, by: str = "person", **more: object) -> Event:
        return self.happens("decided", option=option, decision=decision, by=by, policy_choice="", **more)

    def store(self, of: Program) -> str:
        store(self.tree, self.happens, of)
        return of.sha256

    def start(self, option: str) -> int:
        """Approve ``option`` if needed, begin an attempt and write its program; returns the attempt."""
        if not self.tree[option].approved_by:
            self.decide(option, "approve", "autopilot")
        attempt = self.tree[option].attempts + 1
        self.happens("started", option=option, attempt=attempt)
        written = self.store(program(f"{option} {attempt}"))
        self.happens("wrote", option=option, program=written, attempt=attempt, by="script", note="")
        return attempt

    def passes(self, option: str, seconds: float) -> None:
        """Try ``option`` and let it pass in ``seconds``."""
        attempt = self.start(option)
        result = judged(program(f"{option} {attempt}"), seconds)
        self.happens("evaluated", option=option, attempt=attempt, **result.to_fields())

    def fails(self, option: str) -> None:
        """Try ``option`` once and give it up."""
        attempt = self.start(option)
        result = judged(program(f"{option} {attempt}"), failing="no")
        self.happens("evaluated", option=option, attempt=attempt, **result.to_fields())
        self.happens("failed", option=option, reason="1 attempt failed")


class Scripts:
    """What the tests of this folder take from this file, as a fixture."""

    Stage = Stage
    Grower = Grower
    program = staticmethod(program)
    proposal = staticmethod(proposal)
    judged = staticmethod(judged)
    source = staticmethod(source)

    @staticmethod
    def menu(*titles: str) -> list[Proposal]:
        return [proposal(title) for title in titles]


@pytest.fixture
def scripts() -> type[Scripts]:
    return Scripts


@pytest.fixture
def grower() -> Grower:
    return Grower()
