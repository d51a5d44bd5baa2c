"""What the Activity tab and the start screen look like where models are asked, at both sizes that must work.

After a change that is meant: ``pytest tests/app/test_model_snapshots.py --snapshot-update``, and look at the pictures.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.widgets import Input

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtReplay, AtStart
from ksearch_tui.widgets.live_reply import LiveText
from search.config import RunConfig
from search.events import Event
from tests.app.test_snapshots import DRAWN_WITH
from tests.model_server.scripted import reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import Played, first, option, proposer, written

pytestmark = [
    pytest.mark.skipif(version("textual") != DRAWN_WITH, reason=f"the pictures were drawn with Textual {DRAWN_WITH}"),
    pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"]),
]
KERNEL = (
    "uint row = thread_position_in_grid.x;\nfloat sum = 0.0f;\nfor (uint i = 0; i < N; ++i) {\n    sum += x[row * N"
)


@pytest.fixture
def played(run, model_server: ModelServer) -> Played:
    run.config = replace(run.config, proposer="llm", endpoint="vllm", tokens=200_000)
    run.proposer = proposer(model_server, patience=600)
    return Played(model_server)


def test_activity_with_a_growing_reply(picture, run, played, until, size):
    played.says("write", reply(written(KERNEL), reasoning="Plain first. ", pieces=4, stall_after=72))

    async def show(pilot) -> None:
        await pilot.press("5")
        await until(pilot, lambda: "sum += x" in "".join(line.text.plain for line in text(pilot).lines), 20)
        await pilot.pause(0.5)

    def text(pilot) -> LiveText:
        return pilot.app.screen.query_one(LiveText)

    assert picture(run.app(), size, show)


def test_activity_with_finished_replies_and_records(picture, run, played, until, size):
    played.says("write", written("SUM"), written("// one simdgroup a row\n"), written("// loads\n"))
    families = [{"name": "lanes", "options": [option("one simdgroup a row", predicted=1.1)]}]
    families += [{"name": name, "options": [option(name, predicted=0.9)]} for name in ("loads", "exp2")]
    wrong = {**first("", families=families), "status": "passed"}
    played.says("initialize", wrong, first("", families=families))

    async def record() -> None:
        async with run.app().run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 20)
            for title, calls in (("one simdgroup a row", 6), ("loads", 9)):
                run.engine.approve(run.id_of(title))
                done = partial(lambda calls: len(played.calls) == calls and not run.engine.asking, calls)
                await until(pilot, done, 20)
            await pilot.press("q")

    asyncio.run(record())
    events = [_fixed(event) for event in run.tree.events]
    app = KsearchApp(AtReplay(events, run.config, "row sums", paused=True))
    assert picture(app, size, lambda pilot: pilot.press("end", "5"))


def _fixed(event: Event) -> Event:
    """The event with what a model used as it is in the picture, whatever the prompts say."""
    used = {"seconds": 6.24, "first_seconds": 0.8, "prompt_tokens": 1714, "completion_tokens": 65, "cost_usd": 0.0042}
    return replace(event, data={**event.data, **used}) if event.kind == "replied" else event


def test_start_with_a_model(picture, run, until, monkeypatch, size):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: [])
    monkeypatch.setattr(
        "ksearch_tui.screens.start.new_session_path", lambda problem: Path("/home/you/run.ksearch.toml")
    )
    limits = {"minutes": 30.0, "tokens": 200_000, "usd": 1.5}
    app = KsearchApp(AtStart(RunConfig("softmax", proposer="llm", endpoint="openai", **limits)))

    async def show(pilot) -> None:
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await pilot.pause()

    assert picture(app, size, show)
