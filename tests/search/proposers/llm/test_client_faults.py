from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from email.utils import format_datetime

import pytest

from search.proposers.llm.asking import POINTLESS
from search.proposers.llm.client import RETRIES
from search.proposers.llm.faults import asked_wait
from search.proposers.llm.streamed import MOST_CHARACTERS, Patience
from tests.model_server.scripted import Scripted, error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, NOW, Client

# -- trouble that passes: asked again, a few times, and told ----------------------------------------------------------


async def test_too_many_requests_are_waited_for_as_long_as_asked(model_server: ModelServer):
    date = format_datetime(NOW + timedelta(seconds=42), usegmt=True)
    waits = ({"retry-after": "7"}, {"retry-after": date}, {"retry-after-ms": "1500"})
    model_server.script([*(error(429, "slow down", headers=wait) for wait in waits), reply(ANSWER)])
    client = Client(model_server.endpoint())
    assert (await client.ask()).attempts == 4
    assert client.waits == [7.0, 42.0, 1.5]
    assert client.told[0] == (
        "vLLM (small) takes no more requests for now: slow down. Waiting 7 s, as it asks (1 of 4)."
    )


async def test_without_a_time_each_wait_is_twice_the_last(model_server: ModelServer):
    model_server.script([error(429)] * 5)
    client = Client(model_server.endpoint())
    fault = await client.fault()
    assert client.waits == [1.0, 2.0, 4.0, 8.0]
    assert (fault.kind, len(model_server.asked)) == ("rate_limit", 5)


async def test_a_wait_of_minutes_is_not_waited_but_told(model_server: ModelServer):
    model_server.script([error(429, "tomorrow", headers={"retry-after": "3600"})])
    client = Client(model_server.endpoint())
    fault = await client.fault()
    assert (fault.retry_after, client.waits, len(model_server.asked)) == (3600.0, [], 1)
    assert str(fault) == (
        "vLLM (small) takes no more requests for now: tomorrow. It asks to wait 3600 s. "
        "Go on later, or with another model."
    )


async def test_gemini_s_list_of_errors_and_its_wait_are_read(model_server: ModelServer):
    body = [
        {
            "error": {
                "code": 429,
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
            }
        }
    ]
    model_server.script([Scripted(status=429, body=body), reply(ANSWER)])
    client = Client(model_server.endpoint("gemini", key_env=""))
    await client.ask()
    assert client.waits == [34.5]
    assert "You exceeded your current quota" in client.told[0]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
async def test_trouble_of_the_server_is_tried_again_three_times(model_server: ModelServer, status: int):
    model_server.script([error(status, "overloaded")] * 4)
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, len(model_server.asked)) == ("server", 4)
    assert str(fault) == "vLLM (small) failed: overloaded. Go on later, or with another model."


async def test_an_error_page_of_a_gateway_is_not_quoted(model_server: ModelServer):
    model_server.script([Scripted(status=502, body="<html><script>steal()</script></html>")] * 4)
    assert str(await Client(model_server.endpoint()).fault()).startswith("vLLM (small) failed: HTTP 502.")


@pytest.mark.parametrize("drop", ["reset", "end"])
async def test_half_a_reply_is_never_used(model_server: ModelServer, drop: str):
    model_server.script([reply(ANSWER, drop_after=3, drop=drop), reply(ANSWER)])
    client = Client(model_server.endpoint())
    answer = await client.ask()
    assert (answer.attempts, client.waits) == (2, [1.0])
    assert len("".join(client.shown)) > len(answer.text)  # a part of it was seen twice, and used once


async def test_a_stream_that_keeps_breaking_off_is_given_up(model_server: ModelServer):
    model_server.script([reply(ANSWER, drop_after=2)] * 3)
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, len(model_server.asked)) == ("dropped", 3)
    assert fault.spent.completion_tokens == 3 * 4  # 12 characters each time
    assert not fault.spent.counted


async def test_a_stream_without_a_reason_to_end_is_half_a_reply(model_server: ModelServer):
    model_server.script([reply(ANSWER, finish=None)] * 3)
    assert (await Client(model_server.endpoint()).fault()).kind == "dropped"


@pytest.mark.parametrize(
    "junk", [b"data: {torn\n\n", b"data: [1, 2]\n\n", b"data: " + b"[" * 20000 + b"\n\n", b"data: \xff\n\n"]
)
async def test_a_stream_of_something_else_than_the_protocol_is_half_a_reply(model_server: ModelServer, junk: bytes):
    model_server.script([reply(ANSWER, raw=(junk,))] * 3)
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, len(model_server.asked)) == ("dropped", 3)


async def test_an_error_inside_the_stream_counts_as_its_own_status(model_server: ModelServer):
    inside = {"code": 429, "message": "Rate limit exceeded", "metadata": {"raw": "try in a minute"}}
    model_server.script([reply(ANSWER, error_after=(2, inside)), reply(ANSWER)])
    client = Client(model_server.endpoint("openrouter", key_env=""))
    assert (await client.ask()).attempts == 2
    assert "takes no more requests for now: Rate limit exceeded: try in a minute." in client.told[0]


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ({"code": 502, "message": "Provider returned error"}, "server"),
        ({"message": "something"}, "server"),
        ("plain words", "server"),
        ({"code": 400, "message": "context length exceeded"}, "too_long"),
        ({"code": 403, "message": "input flagged by moderation"}, "refusal"),
        ({"code": "invalid_api_key", "message": "no"}, "wrong_key"),
    ],
)
async def test_an_error_inside_the_stream_is_of_the_kind_that_it_would_be_outside(model_server, inside, kind):
    model_server.script([reply(ANSWER, error_after=(1, inside))] * 4)
    assert (await Client(model_server.endpoint()).fault()).kind == kind


async def test_an_error_in_place_of_a_stream_counts_as_its_own_status_too(model_server: ModelServer):
    model_server.script([Scripted(body={"error": {"code": 402, "message": "Insufficient credits"}})])
    assert (await Client(model_server.endpoint()).fault()).kind == "no_credit"


async def test_a_reply_whose_provider_failed_is_asked_for_again(model_server: ModelServer):
    model_server.script([reply("{", finish="error"), reply(ANSWER)])
    assert (await Client(model_server.endpoint()).ask()).attempts == 2


# -- silence ----------------------------------------------------------------------------------------------------------

SHORT = Patience(connect=5, first=0.15, between=0.15)


@pytest.mark.parametrize("how", [{"before": 3}, {"first": 3}, {"stall_after": 1}, {"stall_after": 3}])
async def test_silence_before_the_first_piece_or_between_two_is_not_waited_out(model_server: ModelServer, how: dict):
    model_server.script([reply(ANSWER, **how)] * 2)
    fault = await Client(model_server.endpoint(), patience=SHORT).fault()
    assert (fault.kind, len(model_server.asked)) == ("timeout", 2)
    assert await asyncio.to_thread(model_server.wait_for, lambda server: server.left_early == 2)


async def test_pieces_without_text_do_not_keep_a_silent_stream_alive(model_server: ModelServer):
    empty = (b'data: {"choices": []}\n\n',) * 100
    model_server.script([reply(ANSWER, between=0.05, raw=empty)] * 2)
    fault = await Client(model_server.endpoint(), patience=Patience(5, 5, 0.3)).fault()
    assert (fault.kind, len(model_server.asked)) == ("timeout", 2)


async def test_a_slow_reply_that_keeps_coming_is_waited_for(model_server: ModelServer):
    model_server.script([reply(ANSWER, between=0.06)])
    answer = await Client(model_server.endpoint(), patience=SHORT).ask()
    assert answer.seconds > 0.15


# -- nobody there -----------------------------------------------------------------------------------------------------


async def test_an_endpoint_that_is_down_says_how_to_start_it_and_what_works_without():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ModelServer() as server:
        endpoint = server.endpoint("ollama", base_url=f"http://127.0.0.1:{port}/v1", generator="qwen")
    fault = await Client(endpoint).fault()
    assert fault.kind == "unreachable"
    assert str(fault) == (
        f"Ollama can't be reached at http://127.0.0.1:{port}/v1: All connection attempts failed. "
        "Start it (OLLAMA_CONTEXT_LENGTH=32768 ollama serve), or search with --proposer catalogue, "
        "which needs no model."
    )


async def test_a_host_that_does_not_exist_is_told_as_such(model_server: ModelServer):
    client = Client(model_server.endpoint(base_url="https://nowhere.invalid/v1", generator="m"))
    fault = await client.fault()
    assert fault.kind == "unreachable"
    assert str(fault).startswith("vLLM can't be reached at https://nowhere.invalid/v1: ")
    assert "Check the address and the network" in str(fault)
    assert client.waits == [1.0]


async def test_a_listener_that_never_answers_is_no_endpoint():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(0)
        with ModelServer() as server:
            endpoint = server.endpoint(base_url=f"http://127.0.0.1:{mute.getsockname()[1]}/v1", generator="m")
        assert (await Client(endpoint, patience=Patience(0.1, 0.1, 0.1)).fault()).kind in ("timeout", "unreachable")


async def test_an_address_without_the_protocol_is_told_as_unreachable(model_server: ModelServer):
    base_url = model_server.base_url.removesuffix("/v1")
    fault = await Client(model_server.endpoint(base_url=base_url, generator="m")).fault()
    assert fault.kind == "unreachable"
    assert f"at {base_url}: HTTP 404." in str(fault)


async def test_a_web_page_is_no_reply(model_server: ModelServer):
    model_server.script([Scripted(body="<html>Log in</html>")] * 2)
    fault = await Client(model_server.endpoint()).fault()
    assert fault.kind == "unreachable"
    assert "it answered with a web page" in str(fault)


async def test_the_question_is_not_sent_on_to_another_address(model_server: ModelServer):
    with ModelServer() as other:
        model_server.script([Scripted(status=307, body="", headers={"location": f"{other.base_url}/x"})] * 2)
        fault = await Client(model_server.endpoint()).fault()
        assert fault.kind == "unreachable"
        assert f"it sends on to {other.base_url}/x" in str(fault)
        assert other.requests == []


async def test_a_proxy_that_can_not_be_used_is_told(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://user:secret@127.0.0.1:1")
    with pytest.raises(Exception, match="the proxy that the environment names can't be used") as caught:
        Client(model_server.endpoint(base_url="https://example.invalid/v1"))
    assert "secret" not in str(caught.value)


# -- faults that asking again would not mend: one request each --------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (error(401, "Incorrect API key provided"), "wrong_key", "vLLM refuses the key: Incorrect API key provided."),
        (error(403, "Country, region, or territory not supported"), "wrong_key", "territory not supported"),
        (
            error(400, "API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"),
            "wrong_key",
            "valid",
        ),
        (error(429, "You exceeded your current quota", code="insufficient_quota"), "no_credit", "no credit left"),
        (error(402, "This request requires more credits"), "no_credit", "Add some, or take another endpoint."),
        (
            error(404, "The model `m` does not exist or you do not have access to it."),
            "unknown_model",
            "no model 'small'",
        ),
        (error(404, 'model "m" not found, try pulling it first'), "unknown_model", "try pulling it first"),
        (error(400, "m is not a valid model ID"), "unknown_model", "not a valid model ID"),
        (error(404, "models/m is not found for API version v1main"), "unknown_model", "is not found"),
        (Scripted(status=404, body={"error": "Repository Not Found for url"}), "unknown_model", "Repository Not Found"),
        (error(400, "Your request was flagged as potentially violating our usage policy."), "refusal", "flagged"),
        (error(403, "Input was flagged", metadata={"reasons": ["violence"]}), "refusal", "Word the guidance"),
        (reply("", refusal="I can't help with that."), "refusal", "refused to answer: I can't help with that."),
        (reply("{", finish="content_filter"), "refusal", "its content filter stopped the reply"),
        (reply("{", finish="content_filter: SAFETY"), "refusal", "content filter"),
        (reply(""), "empty", "vLLM (small) gave no answer. Ask again, or take another model."),
        (reply(" \n "), "empty", "gave no answer"),
        (
            reply("{" * 40000, finish="length"),
            "length",
            "reached the limit of a reply before it was done: 8192 tokens.",
        ),
        (error(413, "Payload too large"), "too_long", "too long"),
        (error(422, "", detail=[{"loc": ["body", "n"], "msg": "must be 1", "input": "x"}]), "bad_request", "must be 1"),
        (error(400, "temperature is out of range"), "bad_request", "refuses the request: temperature is out of range."),
        (Scripted(status=404, body={"error": "list index out of range"}), "bad_request", "list index out of range"),
    ],
)
async def test_a_fault_of_the_request_is_told_after_one_attempt(model_server: ModelServer, answer, kind, said):
    model_server.script([answer])
    client = Client(model_server.endpoint())
    fault = await client.fault()
    assert fault.kind == kind
    assert said in str(fault)
    assert (len(model_server.asked), client.waits) == (1, [])


async def test_a_reply_without_end_is_broken_off(model_server: ModelServer):
    model_server.script([reply("x" * 2 * MOST_CHARACTERS, pieces=500_000, stall_after=11)])
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, len(model_server.asked)) == ("length", 1)
    assert await asyncio.to_thread(model_server.wait_for, lambda server: server.left_early == 1)


async def test_tokens_of_a_refused_or_cut_reply_are_spent_all_the_same(model_server: ModelServer):
    usage = {"prompt_tokens": 50, "completion_tokens": 8192}
    model_server.script([reply("{", finish="length", usage=usage)])
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, fault.spent.prompt_tokens, fault.spent.completion_tokens) == ("length", 50, 8192)
    assert not fault.pointless


async def test_a_refused_request_costs_nothing(model_server: ModelServer):
    model_server.script([error(401)])
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.spent.prompt_tokens, fault.spent.cost_usd, fault.pointless) == (0, 0.0, True)


# -- a prompt that is too long ----------------------------------------------------------------------------------------


async def test_a_prompt_that_does_not_fit_names_the_limit(model_server: ModelServer):
    model_server.context = 4096
    fault = await Client(model_server.endpoint()).fault("x" * 40_000)
    assert (fault.kind, fault.limit, fault.pointless) == ("too_long", 4096, False)
    assert len(model_server.asked) == 1


async def test_a_prompt_that_can_not_fit_a_known_model_is_not_sent(model_server: ModelServer):
    endpoint = model_server.endpoint("openai", key_env="")
    fault = await Client(endpoint).fault("x" * 7_000_000)  # 1050000 tokens at 6 characters each
    assert (fault.kind, fault.limit, model_server.asked) == ("too_long", 1_050_000, [])


async def test_a_prompt_that_ollama_cut_in_silence_is_noticed(model_server: ModelServer):
    model_server.context, model_server.cuts = 4096, True
    model_server.script([reply(ANSWER)])
    fault = await Client(model_server.endpoint("ollama")).fault("x" * 40_000)
    assert (fault.kind, fault.limit) == ("too_long", 4096)
    assert "it read 4096 tokens of about 11436, and said nothing." in str(fault)
    assert "Set a longer context (OLLAMA_CONTEXT_LENGTH=32768 ollama serve)." in str(fault)
    assert fault.spent.prompt_tokens == 4096


async def test_a_count_that_stays_the_same_for_a_longer_prompt_is_noticed_anywhere(model_server: ModelServer):
    model_server.context, model_server.cuts = 4096, True
    model_server.script([reply(ANSWER)] * 3)
    client = Client(model_server.endpoint())
    await client.ask("x" * 18_000)  # nothing to compare with yet
    fault = await client.fault("x" * 22_000)
    assert (fault.kind, fault.limit) == ("too_long", 4096)
    assert (await client.ask("x" * 3000)).prompt_tokens < 1000


async def test_a_context_that_was_full_before_the_reply_ended_is_no_limit_of_the_reply(model_server: ModelServer):
    usage = {"prompt_tokens": 3900, "completion_tokens": 196}
    model_server.script([reply("{", finish="length", usage=usage)])
    fault = await Client(model_server.endpoint()).fault()
    assert (fault.kind, fault.limit) == ("too_long", 4096)
    assert "its context of 4096 tokens was full before the reply ended" in str(fault)


# -- together ---------------------------------------------------------------------------------------------------------


async def test_troubles_that_take_turns_end_too(model_server: ModelServer):
    model_server.script([error(429), error(500), reply(ANSWER, drop_after=1)] * 10)
    await Client(model_server.endpoint()).fault()
    assert len(model_server.asked) <= 1 + sum(RETRIES.values())


def test_every_kind_that_is_asked_again_pauses_the_run_once_that_is_spent():
    assert set(RETRIES) <= POINTLESS


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 99 Nov 2026 11:00:00 GMT"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 -0000"}, 60.0),
    ],
)
def test_waits_that_headers_ask_for(headers: dict[str, str], seconds: float | None):
    assert asked_wait(headers, NOW) == seconds
