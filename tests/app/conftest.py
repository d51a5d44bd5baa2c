"""A whole run without a GPU, a compiler or a clock: the real engine on a scripted proposer and a scripted evaluator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from textual.widgets import Static

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.run_screen import RunScreen
from ksearch_tui.start_at import AtExplorer
from profiles.hardware import load_profile
from search.config import RunConfig
from search.engine import Engine
from search.evaluation.record import Evaluation, Failure, WorkloadTime
from search.kernels.program import Pass, Program
from search.problems.definition import load_problem
from search.proposers.base import Proposal, ProposerError, Redirection, Situation
from search.tree import Tree

PROBLEM = str(Path(__file__).parent / "row_sums")

NAIVE = """\
uint row = thread_position_in_grid.x;
float sum = 0.0f;
for (uint i = 0; i < N; ++i) {
    sum += x[row * N + i];
}
y[row] = sum;
"""

# Under each title, what is proposed: title, why, rating, confidence, difficulty, predicted speedup.
PROPOSALS = {
    "one thread a row": [
        ("one simdgroup a row", "32 lanes read neighbouring elements.", 7.0, 0.7, 2, 2.0),
        ("unroll ×8", "Fewer loop tests.", 3.0, 0.3, 1, 1.1),
    ],
    "one simdgroup a row": [
        ("simd_sum", "One instruction in place of five shuffles.", 6.5, 0.75, 1, 1.2),
        ("four elements a load", "float4 loads use the whole cache line.", 6.0, 0.6, 2, 1.3),
        ("threadgroup tile", "Does not compile: to see a failure.", 4.0, 0.5, 3, 1.5),
    ],
}
# How many times faster than its parent each option really is.
FACTORS = {"one simdgroup a row": 1.6, "simd_sum": 1.25, "four elements a load": 1.5, "unroll ×8": 1.0}


class ScriptedProposer:
    """Proposes from a table, and writes a program that is its parent's with one more line."""

    name = "script"

    def __init__(self, proposals: dict[str, list[tuple[str, str, float, float, int, float]]] | None = None) -> None:
        self.proposals = dict(PROPOSALS if proposals is None else proposals)

    async def root(self, situation: Situation) -> Proposal:
        return Proposal("one thread a row", "The loop as one would write it first.", "naive", 5.0, 1.0, 1, 1.0)

    async def propose(self, situation: Situation, option: str) -> tuple[Proposal, ...]:
        return self._from_table(situation.tree[option].title)

    def _from_table(self, title: str) -> tuple[Proposal, ...]:
        return tuple(
            Proposal(name, why, name, rating, confidence, difficulty, predicted)
            for name, why, rating, confidence, difficulty, predicted in self.proposals.get(title, [])
        )

    async def redirect(self, situation: Situation, option: str, guidance: str) -> Redirection:
        if guidance == "go faster":
            return Redirection(question="Which way?", choices=("fewer loads", "more rows [/b]"))
        if guidance == "break":
            raise ProposerError("the model is not there; try again later")
        return Redirection((Proposal(f"follow: {guidance}", "You asked for it.", "follow", 8.0, 0.8, 2, 1.5),))

    async def write(self, situation: Situation, option: str) -> Program:
        node = situation.tree[option]
        if not node.parent:
            return program(NAIVE)
        above = situation.tree.program(situation.tree[node.parent].program)
        step = above.passes[0]
        return Program((replace(step, source=f"{step.source}// {node.title}\n"),))

    async def repair(self, situation: Situation, option: str, program: Program, failure: Failure) -> None:
        return None


def program(source: str) -> Program:
    """Return a program of one pass with ``source``."""
    step = Pass("row_sums", ("x",), ("y",), source, ("rows", "1", "1"), ("256", "1", "1"), template=(("N", "n"),))
    return Program((step,))


class ScriptedEvaluator:
    """Passes every program but those about tiles; ``gate`` holds evaluations back while it is clear."""

    def __init__(self, on: str) -> None:
        self.on = on
        self.gate = asyncio.Event()
        self.gate.set()
        self.breaks: Exception | None = None

    async def evaluate(self, program: Program, progress: Callable[[str], None]) -> Evaluation:
        progress("checking 3/9")
        await self.gate.wait()
        if self.breaks is not None:
            raise self.breaks
        source = program.passes[0].source
        if "tile" in source:
            failure = Failure("compile", "use of undeclared identifier 'tile'", "row_sums", 3)
            return Evaluation(program.sha256, "failed", "simulator", "modelled", self.on, failure)
        faster = 1.0
        for line in source.splitlines():
            faster *= FACTORS.get(line.removeprefix("// "), 1.0)
        times = tuple(
            WorkloadTime(name, base / faster, base / faster, base / faster, base / 4, 0.0, "memory", terms)
            for name, base, terms in (
                ("long rows", 2.0e-4, {"memory": 1.2e-4, "arithmetic": 0.8e-4}),
                ("many rows", 6.0e-4, {"memory": 5.0e-4, "dispatch": 1.0e-4}),
            )
        )
        return Evaluation(program.sha256, "passed", "simulator", "modelled", self.on, None, times, 9, 0.12)

    async def close(self) -> None:
        """Nothing to release."""


@dataclass
class ScriptedRun:
    """What a test needs to start an app on a scripted run and to look into it."""

    config: RunConfig
    session: Path
    proposer: ScriptedProposer = field(default_factory=ScriptedProposer)
    evaluator: ScriptedEvaluator = field(default_factory=lambda: ScriptedEvaluator("apple-m3-max"))
    engine: Engine | None = None

    async def open_engine(self, config: RunConfig, *, tree: Tree | None = None) -> Engine:
        self.engine = Engine(
            config,
            load_problem(config.problem),
            load_profile(config.profile),
            self.proposer,
            self.evaluator,
            tree=tree,
            clock=self.clock,
        )
        return self.engine

    def clock(self) -> datetime:
        """Seven seconds an event, however often anyone looks at the clock between two."""
        events = len(self.tree.events) if self.engine is not None else 0
        return datetime(2025, 11, 3, 14, 2, tzinfo=UTC) + timedelta(seconds=7 * events)

    def app(self, *, autopilot: bool = False) -> KsearchApp:
        """Return the app at the explorer, on a clock that shows 3:12."""
        ticks = iter([0.0])
        return KsearchApp(
            AtExplorer(self.config, self.session, autopilot),
            open_engine=self.open_engine,
            clock=lambda: next(ticks, 192.0),
        )

    @property
    def tree(self) -> Tree:
        """The engine's tree."""
        assert self.engine is not None
        return self.engine.tree

    def id_of(self, title: str) -> str:
        """Return the id of the option with ``title``."""
        return next(option.id for option in self.tree.options.values() if option.title == title)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedRun:
    """A scripted run of the row sums, with a budget of 40 evaluations."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = RunConfig(PROBLEM, "simulator", "apple-m3-max", "catalogue", 40)
    return ScriptedRun(config, tmp_path / "run.ksearch.toml")


Condition = Callable[[], object]


@pytest.fixture
def until():
    """Return a wait for a condition: messages are let through until it holds."""

    async def wait(pilot, condition: Condition, seconds: float = 0.0) -> None:
        """Wait until ``condition`` holds: for some messages, and for ``seconds`` where a thread has work to do."""
        end = time.monotonic() + seconds
        for number in count():
            if number >= 500 and time.monotonic() > end:
                break
            await pilot.pause(0.02 if seconds else None)
            if condition():
                return
        said = [note.message for note in pilot.app._notifications]
        said += [str(label.content) for label in pilot.app.screen.query("#said").results(Static)]
        raise AssertionError(f"the condition never held on {pilot.app.screen}, which says {said}")

    return wait


@pytest.fixture
def settle(run: ScriptedRun, until):
    """Return a wait until the scripted run has nothing to do and the screen shows all of it."""

    async def wait(pilot) -> None:
        seen = [-1] * 2

        def still() -> bool:
            count = len(run.tree.events) if run.engine is not None else -1
            seen[:] = [*seen[1:], count]
            return count >= 0 and len(set(seen)) == 1

        await until(pilot, still)
        screen = next(screen for screen in pilot.app.screen_stack if isinstance(screen, RunScreen))
        screen.refresh_run()
        await pilot.pause()

    return wait


@pytest.fixture
def picture(snap_compare):
    """Return a comparison of an app with its picture on record, made once nothing on the screen moves any more.

    A pause of the pilot ends when the process looks idle, which it does too while a busy machine gives it no time.
    """

    async def at_rest(pilot) -> None:
        seen = [""] * 5
        while len(set(seen)) > 1 or not seen[0]:
            # Longer than the 1/60 s at which a screen draws what has changed.
            await pilot.pause(0.02)
            seen = [*seen[1:], pilot.app.export_screenshot(simplify=True)]

    def compare(app: KsearchApp, size: tuple[int, int], before: Callable[..., Awaitable[None]]) -> bool:
        async def prepare(pilot) -> None:
            await before(pilot)
            await asyncio.wait_for(at_rest(pilot), 60)

        return bool(snap_compare(app, terminal_size=size, run_before=prepare))

    return compare
