from __future__ import annotations

import json
import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest

from search.proposers.llm.structure import Kept, kept
from tests.model_server.scripted import error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, NOW, SCHEMA, Client

FENCED = f"Here it is.\n```json\n{json.dumps(ANSWER)}\n```"


def formats(server: ModelServer) -> list[str]:
    """Return how each request asked for JSON."""
    sent = [request.body.get("response_format") for request in server.asked]
    return [each["type"] if each else "words" for each in sent]


async def test_a_refused_schema_is_asked_for_as_an_object_with_the_schema_in_words(model_server: ModelServer):
    model_server.refuses_formats = ("json_schema",)
    model_server.script([reply(ANSWER), reply(ANSWER)])
    client = Client(model_server.endpoint())
    answer = await client.ask()
    assert (answer.structured, answer.attempts, formats(model_server)) == ("object", 2, ["json_schema", "json_object"])
    assert json.dumps(SCHEMA) in model_server.asked[1].prompt
    assert client.waits == []
    assert client.told == [
        "vLLM (small) refuses the request: 'response_format.type' must not be 'json_schema'. Asking in another way."
    ]
    assert (await client.ask()).attempts == 1  # remembered


async def test_when_every_format_is_refused_words_ask_for_a_fenced_block(model_server: ModelServer):
    model_server.refuses = {"response_format": "Unrecognized request argument supplied: response_format"}
    model_server.script([FENCED])
    answer = await Client(model_server.endpoint()).ask()
    assert (answer.structured, answer.text) == ("fenced", FENCED)
    assert formats(model_server) == ["json_schema", "json_object", "words"]


async def test_where_json_object_is_refused_an_object_is_a_schema_of_any_object(model_server: ModelServer):
    model_server.script([error(400, "schema is too complex"), reply(ANSWER)])
    await Client(model_server.endpoint("lm-studio")).ask()
    assert model_server.asked[1].body["response_format"]["json_schema"]["schema"] == {"type": "object"}


async def test_an_endpoint_that_reads_no_format_is_asked_in_words_from_the_start(model_server: ModelServer):
    model_server.script([FENCED])
    answer = await Client(model_server.endpoint("mlx-lm")).ask()
    assert (answer.structured, formats(model_server)) == ("fenced", ["words"])


@pytest.mark.parametrize(
    "ignored",
    ["I would tile the keys.", json.dumps({"answer": "tile"})],  # prose; an object that the schema doesn't have
)
async def test_a_reply_that_ignores_the_schema_is_asked_for_again_in_the_next_way(model_server: ModelServer, ignored):
    model_server.script([ignored, reply(ANSWER)])
    answer = await Client(model_server.endpoint()).ask()
    assert (answer.structured, answer.attempts) == ("object", 2)


async def test_json_within_other_text_is_taken_and_words_ask_from_then_on(model_server: ModelServer):
    model_server.script([FENCED, FENCED])
    client = Client(model_server.endpoint())
    answer = await client.ask()
    assert (answer.structured, answer.attempts, answer.text) == ("fenced", 1, FENCED)
    await client.ask()
    assert formats(model_server) == ["json_schema", "words"]


async def test_a_schema_that_held_for_the_reasoning_and_left_the_reply_empty_is_given_up(model_server: ModelServer):
    model_server.script([reply("", reasoning=json.dumps(ANSWER)), reply("", reasoning="hm"), FENCED])
    answer = await Client(model_server.endpoint("lm-studio")).ask()
    assert (answer.structured, answer.attempts) == ("fenced", 3)


async def test_broken_json_under_a_schema_is_the_model_s_mistake_and_no_reason_to_ask_otherwise(model_server):
    model_server.script(['{"title": "a", "rating": 7', reply(ANSWER)])
    client = Client(model_server.endpoint())
    assert (await client.ask()).attempts == 1
    assert (await client.ask()).structured == "schema"


@pytest.mark.parametrize(
    ("structured", "text", "verdict"),
    [
        ("schema", json.dumps(ANSWER), Kept.AS_ASKED),
        ("schema", '\n {"title": "a", "rating": 1, "more": 2}', Kept.AS_ASKED),
        ("schema", '<think>{no}</think>{"title": "a", "rating": 1}', Kept.AS_ASKED),
        ("schema", '{"title": "a"}', Kept.NOT),
        ("object", '{"title": "a"}', Kept.AS_ASKED),
        ("object", "[1, 2]", Kept.NOT),
        ("object", '[{"title": 1}]', Kept.OTHERWISE),
        ("schema", "//@ pass p\nkernel body {}", Kept.OTHERWISE),
        ("fenced", "no JSON", Kept.AS_ASKED),
    ],
)
def test_what_shows_that_an_endpoint_keeps_to_the_structure(structured: str, text: str, verdict: Kept):
    assert kept(text, SCHEMA, structured) is verdict


async def test_counts_of_tokens_are_not_asked_for_again_once_refused(model_server: ModelServer):
    model_server.refuses = {"stream_options": 'Unknown name "stream_options": Cannot find field.'}
    model_server.script([reply(ANSWER), reply(ANSWER)])
    client = Client(model_server.endpoint("gemini", key_env=""))
    assert not (await client.ask()).counted
    await client.ask()
    assert ["stream_options" in request.body for request in model_server.asked] == [True, False, False]


async def test_the_other_field_limits_the_reply_once_one_is_refused(model_server: ModelServer):
    model_server.refuses = {
        "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    }
    model_server.script([reply(ANSWER)])
    await Client(model_server.endpoint()).ask()
    assert model_server.asked[1].body["max_completion_tokens"] == 8192
    assert "max_tokens" not in model_server.asked[1].body


async def test_when_both_limits_are_refused_the_question_fails_and_nothing_spins(model_server: ModelServer):
    model_server.refuses = {name: f"unknown field {name}" for name in ("max_tokens", "max_completion_tokens")}
    assert (await Client(model_server.endpoint()).fault()).kind == "bad_request"
    assert len(model_server.asked) == 2


async def test_a_limit_above_what_the_model_can_do_is_lowered_to_what_it_says(model_server: ModelServer):
    told = "max_tokens is too large: 8192. This model supports at most 4096 completion tokens"
    model_server.script([error(400, told), reply(ANSWER)])
    await Client(model_server.endpoint()).ask()
    assert [request.body["max_tokens"] for request in model_server.asked] == [8192, 4096]


async def test_an_endpoint_that_lowers_its_limit_forever_is_followed_once(model_server: ModelServer):
    model_server.script([error(400, f"range of max_tokens is [1, {n}]") for n in range(8000, 7000, -100)])
    assert (await Client(model_server.endpoint()).fault()).kind == "bad_request"
    assert len(model_server.asked) == 2


async def test_a_template_without_system_messages_gets_all_as_the_user_s(model_server: ModelServer):
    model_server.script([error(400, "System role not supported"), reply(ANSWER)])
    await Client(model_server.endpoint()).ask("Which?")
    assert model_server.asked[1].body["messages"] == [
        {"role": "user", "content": "You choose optimizations.\n\nWhich?"}
    ]


async def test_a_prompt_and_limit_that_are_too_long_together_get_a_shorter_reply(model_server: ModelServer):
    told = (
        "This model's maximum context length is 8192 tokens. However, you requested 11192 tokens "
        "(3000 in the messages, 8192 in the completion). Please reduce the length of the messages or completion."
    )
    model_server.script([error(400, told), reply(ANSWER), reply(ANSWER)])
    client = Client(model_server.endpoint())
    await client.ask()
    await client.ask()
    assert [request.body["max_tokens"] for request in model_server.asked] == [8192, 8192 - 3000 - 16, 8192]


async def test_an_endpoint_that_finds_the_shorter_reply_too_long_as_well_is_not_asked_again(model_server: ModelServer):
    told = "maximum context length is 8192 tokens. However, you requested 11192 tokens (3000 in the messages"
    model_server.script([error(400, told)] * 5)
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, fault.limit, len(model_server.asked)) == ("too_long", 8192, 2)


# -- from one run to the next ----------------------------------------------------------------------------------------


async def test_what_an_endpoint_takes_is_remembered_from_run_to_run(model_server: ModelServer, tmp_path: Path):
    memory = tmp_path / "state" / "endpoints.toml"
    model_server.refuses_formats = ("json_schema",)
    model_server.script([reply(ANSWER), reply(ANSWER)])
    await Client(model_server.endpoint(), memory=memory).ask()
    assert tomllib.loads(memory.read_text())["models"] == [
        {
            "base_url": model_server.base_url,
            "model": "small",
            "seen": date(2026, 11, 30),
            "structured": "object",
            "usage": True,
            "token_limit": "max_tokens",
            "reply_tokens": 8192,
            "system_role": True,
        }
    ]
    assert (await Client(model_server.endpoint(), memory=memory).ask()).attempts == 1
    assert list(memory.parent.iterdir()) == [memory]


async def test_after_two_weeks_an_endpoint_is_tried_afresh(model_server: ModelServer, tmp_path: Path):
    memory = tmp_path / "endpoints.toml"
    model_server.refuses_formats = ("json_schema",)
    model_server.script([reply(ANSWER)] * 2)
    await Client(model_server.endpoint(), memory=memory).ask()
    model_server.refuses_formats = ()
    later = await Client(model_server.endpoint(), memory=memory, now=NOW + timedelta(days=15)).ask()
    assert later.structured == "schema"


async def test_models_are_remembered_apart(model_server: ModelServer, tmp_path: Path):
    memory = tmp_path / "endpoints.toml"
    model_server.refuses_formats = ("json_schema",)
    model_server.script([reply(ANSWER)] * 3)
    await Client(model_server.endpoint(generator="one"), memory=memory).ask()
    assert (await Client(model_server.endpoint(generator="two"), memory=memory).ask()).attempts == 2
    assert (await Client(model_server.endpoint(generator="one"), memory=memory).ask()).attempts == 1


@pytest.mark.parametrize(
    "text",
    ["not TOML", "models = 3", "[[models]]\nmodel = 1", '[[models]]\nseen = "yesterday"', "\0"],
)
async def test_a_memory_that_does_not_read_is_as_none(model_server: ModelServer, tmp_path: Path, text: str):
    memory = tmp_path / "endpoints.toml"
    memory.write_text(text)
    model_server.script([reply(ANSWER)])
    assert (await Client(model_server.endpoint(), memory=memory).ask()).attempts == 1


@pytest.mark.parametrize(
    "wrong", [{"structured": "guessed"}, {"reply_tokens": -5}, {"token_limit": "n"}, {"usage": 1}, {"seen": 5}]
)
async def test_an_entry_that_the_program_would_not_write_is_left_aside(model_server, tmp_path: Path, wrong: dict):
    memory = tmp_path / "endpoints.toml"
    fields = {
        "structured": "object",
        "usage": True,
        "token_limit": "max_tokens",
        "reply_tokens": 9,
        "system_role": True,
    }
    entry = {"base_url": model_server.base_url, "model": "small", **fields, **wrong}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    lines += [] if "seen" in wrong else ["seen = 2026-11-30"]
    memory.write_text("\n".join(["[[models]]", *lines]))
    model_server.script([reply(ANSWER)])
    assert (await Client(model_server.endpoint(), memory=memory).ask()).structured == "schema"


async def test_a_memory_that_can_not_be_written_stops_nothing(model_server: ModelServer, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    model_server.refuses_formats = ("json_schema",)
    model_server.script([reply(ANSWER)])
    client = Client(model_server.endpoint(), memory=tmp_path / "file" / "endpoints.toml")
    assert (await client.ask()).structured == "object"
