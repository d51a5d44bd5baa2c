"""A key that is planted must be nowhere afterwards but in the requests."""

from __future__ import annotations

import gc
import logging
import pickle
import traceback
from pathlib import Path

import pytest

from profiles.models import load_endpoint
from search.proposers.llm.asking import ModelFault
from search.proposers.llm.client import EndpointClient
from search.proposers.llm.masking import KeyMask
from tests.model_server.scripted import Scripted, error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, Client

KEY = "sk-planted-0123456789abcdefXYZ"
ENVIRON = {"MY_KEY": f"{KEY}\n"}  # as `$(cat file)` would leave it


def keyed(server: ModelServer, **changes: object):
    return server.endpoint(key_env="MY_KEY", **changes)


async def test_the_key_is_sent_to_the_endpoint(model_server: ModelServer):
    model_server.key = KEY
    model_server.script([reply(ANSWER)])
    await Client(keyed(model_server), ENVIRON).ask()
    assert {request.headers["authorization"] for request in model_server.requests} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    "answer",
    [
        error(401, f"Incorrect API key provided: {KEY}."),
        error(401, f"Incorrect API key provided: {KEY[:14]}************. Find it at your account."),
        error(400, f"no such header: authorization=Bearer {KEY}"),
        error(500, "x", code=KEY),
        Scripted(status=400, body={"detail": [{"loc": [KEY], "msg": KEY, "input": KEY}]}),
        Scripted(status=404, body=f"<p>{KEY}</p>"),
        Scripted(status=307, body="", headers={"location": f"http://127.0.0.1:9/?key={KEY}"}),
        error(429, KEY, headers={"retry-after": "900"}),
        reply("", refusal=f"I know your key: {KEY}"),
        reply(ANSWER, error_after=(1, {"message": f"bad key {KEY}", "code": 400})),
        reply(ANSWER, raw=(f"data: {KEY}\n\n".encode(),)),
    ],
)
async def test_a_key_that_is_echoed_is_in_no_message_status_traceback_or_log(
    model_server: ModelServer, caplog: pytest.LogCaptureFixture, answer: Scripted
):
    caplog.set_level(
        logging.INFO
    )  # of the transport: its DEBUG has the headers of an answer, which nothing here turns on
    caplog.set_level(logging.DEBUG, "openai")
    model_server.script([answer] * 5)
    client = Client(keyed(model_server), ENVIRON)
    fault = await client.fault()
    everything = [
        str(fault),
        repr(fault),
        repr(vars(fault)),
        *client.told,
        repr(client),
        repr(client.client),
        caplog.text,
    ]
    everything += traceback.TracebackException.from_exception(fault, capture_locals=True).format()
    everything += [repr(record.__dict__) for record in caplog.records]
    for piece in (KEY, KEY[:14], KEY[-14:]):
        assert not [text for text in everything if piece in text]


async def test_a_key_that_is_echoed_in_a_reply_is_masked_in_it_wherever_it_is_cut(model_server: ModelServer):
    for size in (1, 7, 1000):
        model_server.script([reply(f"a {KEY} b sk-plan", reasoning=f"{KEY}!", pieces=size, model=KEY)])
        client = Client(keyed(model_server, structured=("fenced",)), ENVIRON)
        answer = await client.ask()
        assert answer.text == "a [key] b sk-plan" == "".join(client.shown)
        assert answer.reasoning == "[key]!"
        assert KEY not in repr(answer)


async def test_no_object_of_the_client_library_holds_the_key(model_server: ModelServer):
    model_server.script([error(401)])
    client = Client(keyed(model_server), ENVIRON)
    await client.fault()
    library = client.client._openai
    assert KEY not in repr(library.auth_headers)
    assert KEY not in repr(vars(library))
    gc.collect()
    held = [
        thing
        for thing in gc.get_objects()
        if str(type(thing).__module__).startswith("openai") and hasattr(thing, "api_key")
    ]
    assert KEY not in repr([thing.api_key for thing in held])


async def test_a_client_can_not_be_written_down(model_server: ModelServer):
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(Client(keyed(model_server), ENVIRON).client)


async def test_no_log_is_turned_on(model_server: ModelServer):
    levels = {name: logging.getLogger(name).level for name in ("", "openai", "httpx", "httpx2", "httpcore2")}
    model_server.script([reply(ANSWER)])
    await Client(keyed(model_server), ENVIRON).ask()
    assert {name: logging.getLogger(name).level for name in levels} == levels


async def test_what_is_remembered_of_an_endpoint_has_no_key(model_server: ModelServer, tmp_path: Path):
    memory = tmp_path / "endpoints.toml"
    model_server.script([error(400, f"response_format {KEY}"), reply(ANSWER)])
    await Client(keyed(model_server), ENVIRON, memory=memory).ask()
    assert "small" in memory.read_text()
    assert KEY not in memory.read_text()


def test_a_missing_key_says_where_to_get_one_and_how_to_set_it():
    with pytest.raises(ModelFault) as caught:
        EndpointClient(load_endpoint("openai"), {}, {"OPENAI_API_KEY": " "})
    assert caught.value.kind == "wrong_key"
    assert str(caught.value) == (
        "OpenAI needs a key, and OPENAI_API_KEY is not set. "
        "Make a key at https://platform.openai.com/api-keys and put credit on the account. "
        "Then: export OPENAI_API_KEY=..."
    )


@pytest.mark.parametrize("key", ["sk-1\nEvil: header", "sk 1 2", "sk-ключ", "sk-\x1b[2J"])
def test_a_key_that_can_be_none_is_refused_without_being_shown(key: str):
    with pytest.raises(ModelFault, match="what OPENAI_API_KEY holds can't be a key") as caught:
        EndpointClient(load_endpoint("openai"), {}, {"OPENAI_API_KEY": key})
    assert key not in str(caught.value) and "sk" not in str(caught.value)


def test_a_key_of_another_endpoint_is_not_read(model_server: ModelServer):
    with pytest.raises(ModelFault, match="MY_KEY is not set"):
        EndpointClient(keyed(model_server), {}, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words stay", "plain words stay"),
        ("red \x1b[31mtext\x1b[0m\r\nand\ta line", "red [31mtext [0m and a line"),
        ("\u202eturned around", "turned around"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_text_of_an_endpoint_is_one_short_line_without_control_codes(text: str, shown: str):
    assert KeyMask("").shown(text) == shown


@pytest.mark.parametrize("key", ["k3y", "sk-a:b=c", "(key),(key)", KEY])
def test_a_key_of_any_form_is_masked_in_a_message(key: str):
    assert KeyMask(key).shown(f"no such key: {key}, sorry") == "no such key: [key], sorry"


async def test_a_placeholder_for_a_key_is_not_cut_out_of_replies(model_server: ModelServer):
    model_server.script([reply("EMPTY is not a key")])
    client = Client(keyed(model_server, structured=("fenced",)), {"MY_KEY": "EMPTY"})
    assert (await client.ask()).text == "EMPTY is not a key"
