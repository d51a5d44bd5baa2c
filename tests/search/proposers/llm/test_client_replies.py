from __future__ import annotations

import asyncio
import json
from datetime import date

import pytest

from profiles.models import ModelFacts
from search.proposers.llm.asking import ModelFault, Role
from search.proposers.llm.client import EndpointClient, Surroundings
from search.proposers.llm.streamed import Patience
from tests.model_server.scripted import Scripted, error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, SCHEMA, Client, Reader, ask

ANSWERED = json.dumps(ANSWER)


async def test_a_reply_grows_piece_by_piece_and_comes_back_whole(model_server: ModelServer):
    model_server.script([reply(ANSWER, pieces=10, model="small-2026")])
    client = Client(model_server.endpoint())
    answer = await client.ask()
    assert client.shown == [ANSWERED[start : start + 10] for start in range(0, len(ANSWERED), 10)]
    assert (answer.text, answer.finish, answer.model) == (ANSWERED, "stop", "small-2026")
    assert (answer.attempts, answer.structured) == (1, "schema")
    assert 0 <= answer.first_seconds <= answer.seconds < 5


async def test_what_is_sent_is_the_question_the_schema_and_one_limit(model_server: ModelServer):
    model_server.script([reply(ANSWER)])
    await Client(model_server.endpoint(reply_tokens=999)).ask("Which?")
    request = model_server.asked[0]
    assert request.body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "You choose optimizations."},
            {"role": "user", "content": "Which?"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema", "json_schema": {"name": "options", "schema": SCHEMA}},
        "max_tokens": 999,
    }


async def test_openai_gets_a_strict_schema_and_its_own_limit(model_server: ModelServer):
    model_server.script([reply(ANSWER)])
    await Client(model_server.endpoint("openai"), {"OPENAI_API_KEY": "sk-1"}).ask()
    body = model_server.asked[0].body
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["max_completion_tokens"] == 32768
    assert "max_tokens" not in body


async def test_fields_of_the_profile_are_sent_and_refused_ones_are_not(model_server: ModelServer):
    model_server.script([reply(ANSWER)])
    endpoint = model_server.endpoint(request={"provider": {"require_parameters": True}}, refuses=("stream_options",))
    await Client(endpoint).ask()
    assert model_server.asked[0].body["provider"] == {"require_parameters": True}
    assert "stream_options" not in model_server.asked[0].body


async def test_nothing_of_this_machine_or_of_the_environment_for_openai_is_sent(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
):
    for name, value in (
        ("OPENAI_API_KEY", "sk-of-openai"),
        ("OPENAI_ORG_ID", "org-1"),
        ("OPENAI_PROJECT_ID", "proj-1"),
        ("OPENAI_CUSTOM_HEADERS", "X-Mine: secret\nAuthorization: Bearer other"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
        ("HTTP_PROXY", "http://127.0.0.1:9"),
    ):
        monkeypatch.setenv(name, value)
    model_server.script([reply(ANSWER)])
    await Client(model_server.endpoint()).ask()
    assert sorted(model_server.asked[0].headers) == [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    ]


@pytest.mark.parametrize("keys", [("reasoning",), ("reasoning_content",), ("reasoning", "reasoning_content")])
async def test_reasoning_comes_apart_from_the_reply_under_either_name(model_server: ModelServer, keys):
    model_server.script([reply(ANSWER, reasoning="A tile saves reads.", reasoning_keys=keys)])
    client = Client(model_server.endpoint())
    answer = await client.ask()
    assert (answer.reasoning, answer.text) == ("A tile saves reads.", ANSWERED)
    assert "".join(client.shown) == ANSWERED


async def test_tokens_are_the_endpoint_s_count(model_server: ModelServer):
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    model_server.script([reply(ANSWER, usage=usage)])
    answer = await Client(model_server.endpoint()).ask()
    assert (answer.prompt_tokens, answer.completion_tokens, answer.counted) == (100, 20, True)


async def test_without_a_count_tokens_are_estimated_and_said_to_be(model_server: ModelServer):
    model_server.script([reply("x" * 35, usage=None)])
    answer = await Client(model_server.endpoint(structured=("fenced",))).ask("y" * 350)
    assert answer.completion_tokens == 10  # 3.5 characters a token
    assert answer.prompt_tokens > 100
    assert not answer.counted


FACTS = ModelFacts("small", 100_000, 1000, 2.0, 10.0, 0.5, date(2026, 11, 30), "high")


async def test_a_reply_costs_what_the_prices_make_of_its_tokens(model_server: ModelServer):
    details = {"cached_tokens": 400_000}
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "prompt_tokens_details": details}
    model_server.script([reply(ANSWER, usage=usage)])
    answer = await Client(model_server.endpoint(billed=True, models=(FACTS,))).ask()
    assert answer.cost_usd == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 10.0)
    assert model_server.asked[0].body["max_tokens"] == 1000  # what the model can do is less than the profile's 8192


async def test_what_the_endpoint_says_it_charged_goes_before_the_prices(model_server: ModelServer):
    model_server.script([reply(ANSWER, usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0123})])
    assert (await Client(model_server.endpoint(billed=True, models=(FACTS,))).ask()).cost_usd == 0.0123


async def test_a_model_without_a_price_has_no_cost_and_a_local_one_costs_nothing(model_server: ModelServer):
    model_server.script([reply(ANSWER), reply(ANSWER)])
    assert (await Client(model_server.endpoint(billed=True)).ask()).cost_usd is None
    assert (await Client(model_server.endpoint(billed=False)).ask()).cost_usd == 0.0


async def test_attempts_that_broke_off_are_in_what_a_reply_cost(model_server: ModelServer):
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    model_server.script([reply("z" * 36, pieces=12, drop_after=3), reply(ANSWER, usage=usage)])
    answer = await Client(model_server.endpoint(structured=("fenced",))).ask("y" * 350)
    assert answer.attempts == 2
    assert answer.prompt_tokens > 200  # about 100 twice
    assert answer.completion_tokens == 20 + 7  # 24 characters had come
    assert not answer.counted


async def test_a_whole_answer_instead_of_a_stream_is_taken(model_server: ModelServer):
    model_server.script([reply(ANSWER, whole=True)])
    client = Client(model_server.endpoint())
    assert (await client.ask()).text == ANSWERED
    assert client.shown == [ANSWERED]


async def test_comments_strange_chunks_and_empty_choices_are_passed_over(model_server: ModelServer):
    raw = (
        b": OPENROUTER PROCESSING\n\n",
        b'data: {"choices": []}\n\n',
        b'data: {"choices": null, "usage": 3, "model": 5}\n\n',
        b'data: {"choices": [null]}\n\n',
        b'data: {"choices": [{"delta": null}]}\n\n',
        b'data: {"choices": [{"delta": {"content": ["no text"], "refusal": 0, "reasoning": {}}}]}\n\n',
        b'data: {"choices": "none"}\n\n',
        b'data: {"choices": [{"delta": "no table", "finish_reason": 7}]}\n\n',
    )
    model_server.script([reply(ANSWER, raw=raw)])
    answer = await Client(model_server.endpoint()).ask()
    assert (answer.text, answer.attempts, answer.counted) == (ANSWERED, 1, True)


async def test_a_reply_is_whole_although_its_count_of_tokens_never_comes(model_server: ModelServer):
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    model_server.script([reply(ANSWER, raw=(end, b"data: {torn\n\n"))])
    answer = await Client(model_server.endpoint()).ask()
    assert (answer.text, answer.attempts, answer.counted) == (ANSWERED, 1, False)


async def test_the_first_listed_model_answers_where_the_profile_names_none(model_server: ModelServer):
    model_server.models = ("big", "small")
    model_server.script([reply(ANSWER), reply(ANSWER)])
    client = EndpointClient(model_server.endpoint(), {Role.SELECTOR: "quick"}, {})
    await client.ask(ask(role=Role.GENERATOR), Reader())
    await client.ask(ask(role=Role.SELECTOR), Reader())
    assert [request.body["model"] for request in model_server.asked] == ["big", "quick"]
    await client.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[[1]]",
        "5",
        '"x"',
        "{torn",
        '{"data": null}',
        '{"data": "xyz"}',
        '{"data": [{"id": 5}, {"id": "a\\u001b[2Jb"}, {"id": ""}, null]}',
    ],
)
async def test_a_list_of_models_of_any_other_form_is_an_empty_one(model_server: ModelServer, text: str):
    model_server.listing = Scripted(body=text, headers={"content-type": "application/json"})
    assert await Client(model_server.endpoint()).client.names() == ()


async def test_an_endpoint_without_models_says_how_to_load_one(model_server: ModelServer):
    model_server.models = ()
    fault = await Client(model_server.endpoint("lm-studio")).fault()
    assert fault.kind == "unknown_model"
    assert str(fault) == (
        "LM Studio has no model to ask. Load one there "
        "(lms load qwen3-coder-30b --context-length 32768 && lms server start)."
    )


async def test_cancelling_closes_the_stream_at_once(model_server: ModelServer):
    model_server.script([reply(ANSWER, stall_after=2), reply(ANSWER)])
    client = Client(model_server.endpoint())
    heard = asyncio.Event()
    asking = asyncio.create_task(client.ask(on_text=lambda _: heard.set()))
    await asyncio.wait_for(heard.wait(), 5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(model_server.wait_for, lambda server: server.left_early == 1)
    assert (await client.ask()).text == ANSWERED  # and the client is as good as before


async def test_cancelling_before_anything_came_closes_the_connection_too(model_server: ModelServer):
    model_server.script([reply(ANSWER, before=3600)])
    asking = asyncio.create_task(Client(model_server.endpoint()).ask())
    assert await asyncio.to_thread(model_server.wait_for, lambda server: len(server.asked) == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(model_server.wait_for, lambda server: server.left_early == 1)


async def test_cancelling_ends_a_wait_between_two_attempts(model_server: ModelServer):
    model_server.script([error(429, "slow down", headers={"retry-after": "60"})])
    told = asyncio.Event()
    client = EndpointClient(model_server.endpoint(), {}, {}, Surroundings(on_status=lambda _: told.set()))
    asking = asyncio.create_task(client.ask(ask(), Reader()))
    await asyncio.wait_for(told.wait(), 5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, 5)
    assert len(model_server.asked) == 1


async def test_two_questions_at_a_time_do_not_mix(model_server: ModelServer):
    model_server.script([lambda request: reply({**ANSWER, "title": request.body["messages"][1]["content"]})] * 2)
    client = Client(model_server.endpoint())
    first, second = await asyncio.gather(client.ask("first"), client.ask("second"))
    assert [json.loads(answer.text)["title"] for answer in (first, second)] == ["first", "second"]


async def test_a_listener_that_raises_ends_the_question_and_closes_the_stream(model_server: ModelServer):
    model_server.script([reply(ANSWER, stall_after=2)])

    def refuse(text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError):
        await Client(model_server.endpoint()).ask(on_text=refuse)
    assert await asyncio.to_thread(model_server.wait_for, lambda server: server.left_early == 1)


async def test_the_first_piece_may_take_longer_than_the_pause_between_two(model_server: ModelServer):
    model_server.script([reply(ANSWER, first=0.3)])
    assert (await Client(model_server.endpoint(), patience=Patience(5, 5, 0.2)).ask()).attempts == 1


async def test_a_fault_can_be_told_from_one_that_concerns_this_question_only():
    assert ModelFault("wrong_key", "no").pointless
    assert not ModelFault("too_long", "no").pointless
