"""An endpoint that never ends, or sends too much: memory and time stay bounded."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from search.proposers.llm import connection
from search.proposers.llm.masking import KeyMask
from search.proposers.llm.streamed import Patience
from tests.model_server.scripted import Scripted, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, Client


def event(finish: str | None = None, **delta: str) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


async def test_a_reply_that_is_whole_does_not_wait_for_an_end_that_never_comes(model_server: ModelServer):
    events = (event(content="{}"), event("stop"), *[event()] * 500)
    model_server.script([reply("", finish=None, raw=events, between=0.02)])
    client = Client(model_server.endpoint(structured=("fenced",)), patience=Patience(5, 5, 0.3))
    async with asyncio.timeout(3):
        assert (await client.ask()).text == "{}"


async def test_a_reply_that_drips_is_broken_off_in_the_end(model_server: ModelServer):
    model_server.script([reply("x" * 500, pieces=1, between=0.02)] * 2)
    client = Client(model_server.endpoint(), patience=Patience(5, 5, 5, whole=0.3))
    async with asyncio.timeout(3):
        fault = await client.fault()
    assert fault.kind == "timeout" and 1 < fault.spent.completion_tokens < 100


@pytest.mark.parametrize(
    "flood",
    [
        reply(ANSWER, raw=(b": and on\n" * 100_000,) * 4),
        reply(ANSWER, raw=(b"data: " + b"x" * 3_000_000,)),
        Scripted(status=400, body="x" * 3_000_000),
    ],
    ids=["comments", "one line", "an error"],
)
async def test_more_than_any_reply_needs_is_not_read(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, flood: Scripted
):
    monkeypatch.setattr(connection, "MOST_BYTES", 1_000_000)
    model_server.script([flood] * 3)
    fault = await Client(model_server.endpoint()).fault()
    assert fault.kind == "dropped"
    assert "it sent more than 1000000 bytes" in str(fault)


async def test_nothing_compressed_is_asked_for_or_unpacked(model_server: ModelServer):
    bomb = gzip.compress(event(content="x" * 3_000_000) + event("stop"))
    model_server.script([reply("", finish=None, raw=(bomb,), headers={"content-encoding": "gzip"})] * 3)
    fault = await Client(model_server.endpoint()).fault()
    assert fault.kind == "dropped" and "it compressed its answer" in str(fault)
    assert {request.headers["accept-encoding"] for request in model_server.asked} == {"identity"}


async def test_bytes_that_are_no_text_are_half_a_reply(model_server: ModelServer):
    model_server.script([reply(ANSWER, raw=(b"data: \xff\xfe\n\n",))] * 3)
    assert (await Client(model_server.endpoint()).fault()).kind == "dropped"


async def test_half_of_a_character_is_shown_and_kept_as_a_question_mark(model_server: ModelServer):
    half = event(content="a\ud83db", reasoning="\udfff")
    model_server.script([reply("", finish=None, raw=(half, event("stop")))])
    client = Client(model_server.endpoint(structured=("fenced",)))
    answer = await client.ask()
    assert (answer.text, answer.reasoning, client.shown[0]) == ("a?b", "?", "a?b")


async def test_a_huge_message_is_cut_before_it_is_looked_at():
    assert KeyMask("").shown("a" * 10_000_000) == "a" * 299 + "…"
    key = "sk-planted-0123456789abcdefXYZ"
    assert key[:8] not in KeyMask(key).shown(" " * 19_985 + key)  # which is cut in the middle there


async def test_an_address_without_its_last_part_is_said_to_be_one(model_server: ModelServer):
    bare = model_server.endpoint(base_url=model_server.base_url.removesuffix("/v1"))
    fault = await Client(bare).fault()
    assert fault.kind == "unreachable"
    assert str(fault).endswith("Most endpoints want an address that ends in /v1.")
    model_server.script([Scripted(status=404, body={"detail": "Not Found"})] * 2)  # as FastAPI says it
    fault = await Client(model_server.endpoint()).fault()
    assert fault.kind == "unreachable" and "/v1." not in str(fault)
