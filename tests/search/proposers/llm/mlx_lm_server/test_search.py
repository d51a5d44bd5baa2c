"""Whole searches with a model that others serve: one that says nothing of use, and one that does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from search.proposers.llm.asking import Role
from search.proposers.llm.client import EndpointClient
from search.proposers.llm.conversation import Conversation
from search.proposers.llm.proposer import LlmProposer
from search.tree import Tree
from sessions.store import read_session
from tests.ksearch_tui.commands import ksearch
from tests.model_server.profile_file import write_profile
from tests.search.proposers.llm.mlx_lm_server.conftest import TITLE, recited
from tests.search.proposers.llm.mlx_lm_server.serving import MlxLmServer
from tests.search.proposers.llm.mlx_lm_server.tiny_model import END_TOKEN
from tests.search.proposers.llm.playing import run_through

BABBLES = {"temperature": 1.0, "seed": 3, "logit_bias": {str(END_TOKEN): 4.0}}
"""Any tokens, and an end after some 30 of them."""

KEY = "sk-planted-0123456789abcdef"


def proposer(server: MlxLmServer, **changes: Any) -> LlmProposer:
    endpoint = server.endpoint(**changes)
    models = {Role.SELECTOR: "", Role.GENERATOR: ""}
    return LlmProposer(Conversation(endpoint, models, lambda _: EndpointClient(endpoint, models, {})), "none")


async def test_babble_is_sent_back_once_with_the_exact_fault_then_counted(
    mlx_lm_server: MlxLmServer, scripts: Any
) -> None:
    before = len(mlx_lm_server.asked)
    heard: list[str] = []
    stage = scripts.Stage(proposer=proposer(mlx_lm_server, request=BABBLES, reply_tokens=400))
    stage.engine.on_text(lambda _question, piece, _thought: heard.append(piece))
    await run_through(stage, 60)
    first, second = [event for event in stage.events if event.kind == "replied"]
    assert [first["outcome"], second["outcome"]] == ["malformed", "malformed"]
    assert (first["counted"], first["structured"], first["model"]) == (True, "fenced", "default_model")
    texts = [stage.tree.texts[event["text_sha256"]] for event in (first, second)]
    assert "".join(heard) == "".join(texts) and len(heard) > 4
    requests = mlx_lm_server.asked[before:]
    assert len(requests) == 2
    again = requests[1]["messages"][-1]["content"]
    assert first["note"] in again
    assert re.sub("[\x00-\x08\x0b-\x1f\x7f]", "\ufffd", texts[0]) in again  # a prompt has no control characters
    assert stage.tree.account.malformed == 2
    assert stage.tree.stopped.startswith("there is nothing to build on, 'the first kernel' failed: default_model gave ")
    assert stage.tree.stopped.endswith(f"a reply that can't be used, twice: {second['note']}")


async def test_a_budget_of_tokens_is_kept_before_anything_is_asked(mlx_lm_server: MlxLmServer, scripts: Any) -> None:
    before = len(mlx_lm_server.asked)
    stage = scripts.Stage(tokens=1000, proposer=proposer(mlx_lm_server, reply_tokens=1000))
    await run_through(stage)
    assert "the budget of 1000 tokens is spent: 1000 are left, and the next question could take " in stage.tree.stopped
    assert len(mlx_lm_server.asked) == before


@pytest.mark.slow
def test_a_run_with_a_model_that_babbles_stops_asking_and_replays_without_the_server(
    mlx_lm_server: MlxLmServer, tmp_path: Path
) -> None:
    endpoint = mlx_lm_server.endpoint(request=BABBLES, reply_tokens=400, key_env="MINE_KEY")
    profile = write_profile(tmp_path / "mine.toml", endpoint)
    session = tmp_path / "a.ksearch.toml"
    before = len(mlx_lm_server.asked)
    done = ksearch(
        *("run", "softmax", "--device", "simulator", "--proposer", "llm", "--endpoint", str(profile)),
        *("--context", "none", "--budget", "5", "--tokens", "200000", "--session", str(session)),
        home=tmp_path,
        MINE_KEY=KEY,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "default_model gave a reply that can't be used, twice" in done.stderr
    assert f"go on with: ksearch-tui resume {session}" in done.stderr
    assert "(2 replies malformed)" in done.stdout
    tree = Tree.fold(read_session(session).events)
    asked = len(mlx_lm_server.asked) - before
    assert asked == tree.account.replies == 2  # one question, sent back once
    assert tree.evaluations == 1 and tree.account.tokens > 1000
    assert all(event["counted"] for event in tree.events if event.kind == "replied")
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert session.read_bytes() in kept and not any(KEY.encode() in content for content in kept)
    replayed = ksearch("replay", str(session), "--headless", home=tmp_path, HTTP_PROXY="http://127.0.0.1:9")
    assert replayed.returncode == 0, replayed.stderr
    assert len(mlx_lm_server.asked) - before == asked


@pytest.mark.slow
def test_a_run_with_a_model_that_has_a_kernel_to_say_ends_with_it(
    mlx_lm_server: MlxLmServer, reciting: str, tmp_path: Path
) -> None:
    profile = write_profile(tmp_path / "mine.toml", mlx_lm_server.endpoint())
    session = tmp_path / "a.ksearch.toml"
    done = ksearch(
        *("run", "softmax", "--device", "simulator", "--proposer", "llm", "--endpoint", str(profile)),
        *("--model", reciting, "--context", "none", "--budget", "2", "--tokens", "200000", "--session", str(session)),
        home=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    tree = Tree.fold(read_session(session).events)
    assert tree.stopped == "the budget of 2 evaluations is spent"
    best = next(option for option in tree.options.values() if option.title == TITLE)
    assert best.status == "passed" and tree.speedup(best.id) > 5
    assert set(tree.texts.values()) <= set(recited().values())
    replies = [event for event in tree.events if event.kind == "replied"]
    assert {event["outcome"] for event in replies} == {"used"} and len(replies) >= 2
    assert all(event["counted"] for event in replies)
