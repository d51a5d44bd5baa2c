"""A model that a test plays: on the model server, with a list of answers for each kind of question."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from search.proposers.llm.asking import Role
from search.proposers.llm.client import EndpointClient, Surroundings
from search.proposers.llm.conversation import Conversation
from search.proposers.llm.proposer import LlmProposer
from search.proposers.llm.streamed import Patience
from tests.model_server.scripted import Answer, Request, Scripted, reply
from tests.model_server.server import ModelServer

MOST_REQUESTS = 60
KEY = "sk-test-0123456789abcdef"


def option(title: str, **changes: Any) -> dict[str, Any]:
    """An option as a model says it."""
    said = {
        "title": title,
        "why": f"because {title}",
        "rating": 6,
        "confidence": 0.5,
        "difficulty": 2,
        "predicted": 1.5,
    }
    return {**said, **changes}


def first(*titles: str, **changes: Any) -> dict[str, Any]:
    """A reply to ``initialize`` with a family for each title."""
    families = [{"name": f"family {title}", "options": [option(title)]} for title in titles]
    return {"kernel_class": "toy", "bottlenecks": ["memory: one read"], "families": families, "followed": "", **changes}


def written(source: str, **changes: Any) -> dict[str, Any]:
    """A reply to ``write``, ``repair`` or ``improve``: one pass with this source."""
    step = {
        "name": "main",
        "inputs": ["x"],
        "outputs": ["y"],
        "grid": [32],
        "threadgroup": [32],
        "template": [],
        "header": "",
        "source": source,
        "init_value": None,
        "atomic_outputs": False,
    }
    return {"passes": [step], "buffers": [], "comment": "", "followed": "", **changes}


NO_CHANGE: dict[str, Any] = {"ratings": [], "inserts": [], "splits": [], "closes": [], "followed": ""}
NO_OPTIONS: dict[str, Any] = {"options": [], "followed": ""}


class Played:
    """Answers each kind of question from its list in ``answers``; what is left out by a test answers plainly.

    By itself it proposes nothing, changes nothing, and writes a program whose source is the option's title. ``calls``
    are the questions that came, in order; ``looks`` is called with each before it is answered.
    """

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.answers: dict[str, deque[Answer | dict[str, Any]]] = defaultdict(deque)
        self.calls: list[str] = []
        self.prompts: list[tuple[str, str]] = []
        self.looks: Callable[[str, Request], None] = lambda call, request: None
        server.script([self._answer] * MOST_REQUESTS)

    def says(self, call: str, *answers: Answer | dict[str, Any]) -> None:
        """Add to what it answers to questions of this kind."""
        self.answers[call].extend(answers)

    def prompt(self, call: str) -> str:
        """The latest prompt of this kind."""
        return [prompt for kind, prompt in self.prompts if kind == call][-1]

    def _answer(self, request: Request) -> Scripted | str:
        call = request.body["response_format"]["json_schema"]["name"].removesuffix("_reply")
        self.calls.append(call)
        self.prompts.append((call, request.prompt))
        self.looks(call, request)
        if self.answers[call]:
            answer = self.answers[call].popleft()
            answer = answer(request) if callable(answer) else answer
            return reply(answer) if isinstance(answer, dict) else answer
        return reply(self._plain(call, request))

    def _plain(self, call: str, request: Request) -> dict[str, Any]:
        if call == "refine":
            return NO_CHANGE
        if call in ("write", "repair", "improve"):
            titles = re.findall(r"^title: (.*)$", request.prompt, re.MULTILINE)
            return written(titles[-1] + (" mended" if call == "repair" else ""))
        return NO_OPTIONS


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


def proposer(
    server: ModelServer, context: Any = "none", *, sleep: Any = _at_once, patience: float = 5, **changes: Any
) -> LlmProposer:
    """A proposer that asks ``server``, and doesn't wait between attempts unless ``sleep`` does."""
    endpoint = server.endpoint(selector="chooser", generator="writer", **changes)

    def connect(on_status: Any) -> EndpointClient:
        around = Surroundings(on_status, None, Patience(patience, patience, patience), sleep)
        return EndpointClient(endpoint, {}, {endpoint.key_env: KEY}, around)

    models = {Role.SELECTOR: "", Role.GENERATOR: ""}
    return LlmProposer(Conversation(endpoint, models, connect), context)


async def run_through(stage: Any, seconds: float = 20.0) -> Any:
    """Run ``stage`` under autopilot until it stops, or pauses because nothing can be asked; returns it."""

    def on_event(event: Any) -> None:
        if event.kind == "paused":
            stage.engine.stop(event.data.get("reason", "paused"))

    stage.engine.subscribe(on_event)
    stage.engine.set_autopilot(True)
    async with asyncio.timeout(seconds):
        await stage.engine.run()
    return stage


async def until(condition: Any, seconds: float = 5.0) -> None:
    """Wait until ``condition`` holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
