"""A model whose replies were written by hand, as a folder: what it plans, and its kernels one by one.

``script.toml`` has the replies of the model that chooses, with options by their titles, and which kernels stand for an
option in turn; ``kernels/NAME.metal`` a program in text form, with the model's comment above it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from profiles.hardware import load_profile
from search.assembly import cuda_hints
from search.config import RunConfig
from search.engine import Engine
from search.evaluation.client import Evaluator
from search.events import Event
from search.kernels.program import Program
from search.kernels.text import program_from_text
from search.problems.definition import load_problem
from search.proposers.llm.asking import Role
from search.proposers.llm.client import EndpointClient, Surroundings
from search.proposers.llm.conversation import Conversation
from search.proposers.llm.proposer import LlmProposer
from tests.model_server.scripted import Request, Scripted, reply
from tests.model_server.server import ModelServer

MODEL = "by-hand"
MOST_REQUESTS = 200
PIECES = 400
"""Characters that a reply streams at a time."""

_SHOWN = re.compile(r"^  (\S+) (?:under (\S+), )?(.+) \[by .*?\](?:: (rating )?|:)", re.MULTILINE)
_AT = {"propose": re.compile(r"options under (\S+): changes"), "refine": re.compile(r"^(\S+) has a result", re.M)}
_TITLE = re.compile(r"^title: (.*)$", re.MULTILINE)

NOTHING_BETTER = "I know of no better way to do the same; this is the program as it was."


class ByHand:
    """Answers the questions of a search from a folder; ``left`` are the replies that nobody has asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._script = tomllib.loads((folder / "script.toml").read_text(encoding="utf-8"))
        self._asked: Counter[str] = Counter()
        self.left = {("initialize", "")}
        self.left |= {("propose", entry["under"]) for entry in self._script["propose"]}
        self.left |= {("refine", entry["after"]) for entry in self._script["refine"]}
        self.left |= {(name, title) for title, names in self._script["kernels"].items() for name in names}

    def __call__(self, request: Request) -> Scripted:
        """Return the reply to ``request``, which names its kind by its JSON schema."""
        call = request.body["response_format"]["json_schema"]["name"].removesuffix("_reply")
        if call in ("write", "repair", "improve"):
            said = self._kernel(request.prompt)
        else:
            said = self._plan(call, request.prompt)
        return reply({**said, "followed": ""}, model=MODEL, pieces=PIECES)

    def _plan(self, call: str, prompt: str) -> dict[str, Any]:
        if call == "initialize":
            self.left.discard((call, ""))
            return dict(self._script["initialize"])
        shown = _SHOWN.findall(prompt)
        titles = {option: title for option, _, title, _ in shown}
        title = titles[_AT[call].findall(prompt)[-1]]
        key = "under" if call == "propose" else "after"
        entry = next((entry for entry in self._script[call] if entry[key] == title), {})
        self.left.discard((call, title))
        if call == "propose":
            return {"options": entry.get("options", [])}
        ids = {title: option for option, title in titles.items()}
        waiting = {title for _, _, title, rating in shown if rating}
        told = {
            kind: [{**each, "option": ids[each["option"]]} for each in entry.get(kind, []) if each["option"] in waiting]
            for kind in ("ratings", "splits", "closes")
        }
        inserts = [{**each, "under": ids[each["under"]]} for each in entry.get("inserts", [])]
        return {**told, "inserts": inserts}

    def _kernel(self, prompt: str) -> dict[str, Any]:
        title = _TITLE.findall(prompt)[-1]
        names = self._script["kernels"][title]
        turn = self._asked[title]
        self._asked[title] += 1
        name = names[min(turn, len(names) - 1)]
        self.left.discard((name, title))
        comment, program = read_kernel(self._folder, name)
        return {**as_reply(program), "comment": comment if turn < len(names) else NOTHING_BETTER}


def read_kernel(folder: Path, name: str) -> tuple[str, Program]:
    """Return the comment and the program of one kernel file."""
    text = (folder / "kernels" / f"{name}.metal").read_text(encoding="utf-8")
    comment = " ".join(line.removeprefix("//").strip() for line in text[: text.index("//@")].splitlines())
    return comment, program_from_text(text)


def as_reply(program: Program) -> dict[str, Any]:
    """Return ``program`` as a model says it in JSON, without a comment."""
    fields = json.loads(program.to_json())
    for step in fields["passes"]:
        step["template"] = [{"name": name, "value": value} for name, value in step["template"]]
        step.setdefault("init_value", None)
        step.setdefault("atomic_outputs", False)
    return dict(fields)


def engine_by_hand(config: RunConfig, server: ModelServer, replies: ByHand, evaluator: Evaluator) -> Engine:
    """Return the engine of a run whose models are ``replies``, asked over HTTP on ``server``."""
    server.models = (MODEL,)
    server.script([replies] * MOST_REQUESTS)
    endpoint = server.endpoint(name=MODEL, title="Replies written by hand", selector=MODEL, generator=MODEL)
    models = dict.fromkeys(Role, MODEL)
    conversation = Conversation(
        endpoint, models, lambda on_status: EndpointClient(endpoint, models, {}, Surroundings(on_status, None))
    )
    problem, profile = load_problem(config.problem), load_profile(config.profile)
    proposer = LlmProposer(conversation, "full")
    return Engine(config, problem, profile, proposer, evaluator, hints=cuda_hints(problem))


async def run_alone(engine: Engine) -> None:
    """Run ``engine`` under autopilot to its end; as nobody is there to end a pause, one by the engine ends the run."""

    def end_pause(event: Event) -> None:
        if event.kind == "paused":
            engine.stop(event.data.get("reason", "paused"))

    engine.subscribe(end_pause)
    engine.set_autopilot(True)
    await engine.run()
