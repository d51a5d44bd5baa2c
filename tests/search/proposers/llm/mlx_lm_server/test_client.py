"""The client against a server that others wrote."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from profiles.models import load_endpoint
from search.proposers.llm.asking import Role
from search.proposers.llm.reply_text import answer_in, object_in
from tests.search.proposers.llm.asked import ANSWER, Client
from tests.search.proposers.llm.mlx_lm_server.conftest import fenced
from tests.search.proposers.llm.mlx_lm_server.serving import MlxLmServer
from tests.search.proposers.llm.mlx_lm_server.tiny_model import END_TOKEN

NEVER_ENDS = {"logit_bias": {str(END_TOKEN): -1000.0}}


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until ``condition`` holds; fail when it doesn't in time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def times_left(server: MlxLmServer) -> int:
    """How often the server found the connection closed by the one who asked."""
    return len(re.findall("^(BrokenPipeError|ConnectionResetError)", server.log, re.MULTILINE))


def of(server: MlxLmServer, model: str = "default_model", **changes: object) -> Client:
    return Client(server.endpoint(selector=model, generator=model, **changes))


async def test_a_reply_streams_in_and_its_tokens_are_counted(mlx_lm_server: MlxLmServer, reciting: str):
    client = of(mlx_lm_server, reciting)
    answer = await client.ask("What now? \u2028 Ünïcode")
    assert answer.text == fenced(ANSWER) == "".join(client.shown)
    assert (answer.finish, answer.structured, answer.attempts, answer.counted) == ("stop", "fenced", 1, True)
    assert object_in(answer_in(answer.text)) == ANSWER
    # This model makes one piece of each token, and one token more to end with.
    assert answer.completion_tokens == len(client.shown) + 1 > 5
    tokenizer = Tokenizer.from_file(f"{reciting}/tokenizer.json")
    messages = [f"<|{each['role']}|>{each['content']}<|end|>" for each in mlx_lm_server.asked[-1]["messages"]]
    prompt = tokenizer.encode("".join(messages) + "<|recite 3|>", add_special_tokens=False)
    assert answer.prompt_tokens == len(prompt.ids)
    assert 0 < answer.first_seconds <= answer.seconds


async def test_the_profile_is_what_is_sent(mlx_lm_server: MlxLmServer):
    profile = load_endpoint("mlx-lm")
    await of(mlx_lm_server, reply_tokens=4).fault()
    sent = mlx_lm_server.asked[-1]
    assert (sent["model"], sent["stream_options"]) == (profile.selector, {"include_usage": True})
    assert {key: sent[key] for key in profile.request} == profile.request
    assert "response_format" not in sent and "max_completion_tokens" not in sent


async def test_a_reply_that_reaches_its_limit_is_said_to(mlx_lm_server: MlxLmServer):
    client = of(mlx_lm_server, reply_tokens=30, request=NEVER_ENDS)
    fault = await client.fault()
    assert fault.kind == "length"
    assert "mlx_lm.server (default_model) reached the limit of a reply before it was done: 30 tokens." in str(fault)
    assert len(client.shown) > 5
    assert (fault.spent.completion_tokens, fault.spent.counted) == (30, True)


async def test_a_schema_that_is_ignored_is_not_sent_again(mlx_lm_server: MlxLmServer, reciting: str, tmp_path: Path):
    """The server takes a response_format and does nothing about it; the model says what it would have said."""
    endpoint = mlx_lm_server.endpoint(selector=reciting, generator=reciting, structured=("schema", "object", "fenced"))
    client = Client(endpoint, memory=tmp_path / "endpoints.toml")
    assert (await client.ask()).structured == "fenced"
    assert mlx_lm_server.asked[-1]["response_format"]["type"] == "json_schema"
    await client.ask()
    assert "response_format" not in mlx_lm_server.asked[-1]
    await Client(endpoint, memory=client.memory).ask()
    assert "response_format" not in mlx_lm_server.asked[-1]


async def test_a_question_that_is_cancelled_leaves_the_server_free_for_the_next(
    mlx_lm_server: MlxLmServer, reciting: str
):
    endless = of(mlx_lm_server, reply_tokens=100_000, request=NEVER_ENDS)
    asking = asyncio.create_task(endless.ask())
    await until(lambda: len(endless.shown) > 3)
    seen = times_left(mlx_lm_server)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    shown = len(endless.shown)
    await until(lambda: times_left(mlx_lm_server) > seen)  # the server has noticed, so it makes nothing more
    async with asyncio.timeout(20):
        assert json.loads((await of(mlx_lm_server, reciting).ask()).text[8:-4]) == ANSWER
    assert len(endless.shown) == shown


async def test_a_model_that_is_not_there_is_said_to_be_unknown(mlx_lm_server: MlxLmServer):
    fault = await of(mlx_lm_server, "nobody/no-such-model").fault()
    assert fault.kind == "unknown_model"
    assert "mlx_lm.server has no model 'nobody/no-such-model'" in str(fault)


@pytest.fixture
def own_server(model_folders: tuple[Path, Path], tmp_path: Path) -> Iterator[MlxLmServer]:
    """Return a server for one test, on which nothing was ever asked."""
    with MlxLmServer(model_folders[0], tmp_path) as server:
        yield server


async def test_without_a_download_folder_no_model_is_listed_and_the_default_answers(own_server: MlxLmServer):
    """This server then fails in the middle of its list of models."""
    client = of(own_server, reply_tokens=4)
    assert await client.client.names() == ()
    assert await client.client.model_of(Role.GENERATOR) == "default_model"
    assert (await client.fault()).kind == "length"


async def test_a_server_that_is_killed_in_the_middle_of_a_reply(own_server: MlxLmServer):
    client = of(own_server, reply_tokens=100_000, request=NEVER_ENDS)
    asking = asyncio.create_task(client.fault())
    await until(lambda: len(client.shown) > 3)
    own_server.kill()
    fault = await asking
    assert fault.kind == "unreachable"
    assert f"can't be reached at http://localhost:{own_server.port}/v1" in str(
        fault
    ) and "Start it (mlx_lm.server" in str(fault)
    assert "broke off before its reply was whole" in client.told[0]
    assert len(client.told) == 2  # one retry of the reply, one of the connection
    assert fault.spent.completion_tokens > 0 and not fault.spent.counted
