from __future__ import annotations

import pytest

from search.proposers.llm.wordings import Complaint, complaint, read_error


@pytest.mark.parametrize(
    ("text", "context", "prompt"),
    [
        # OpenAI
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            8192,
            9001,
        ),
        ("context_length_exceeded Your input exceeds the context window of this model.", 0, 0),
        # vLLM
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
            "(4000 in the messages, 1000 in the completion).",
            4096,
            4000,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 "
            "tokens and your request has 1234 input tokens (8192 > 4096 - 1234).",
            4096,
            1234,
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 0),
        # Ollama and llama.cpp
        ("the input length exceeds the context length", 0, 0),
        ("prompt too long; exceeded max context length by 12 tokens", 0, 0),
        ("the request exceeds the available context size. try increasing the context size", 0, 0),
        ("Context size has been exceeded.", 0, 0),
        # LM Studio
        (
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough.",
            4096,
            0,
        ),
        ("The number of tokens to keep from the initial prompt is greater than the context length", 0, 0),
        # OpenRouter
        (
            "This endpoint's maximum context length is 16384 tokens. However, you requested about 26265 tokens "
            "(26255 of text input, 10 in the output). Please reduce the length of either one.",
            16384,
            26255,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
        # Gemini
        ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575, 0),
        ("The input token count exceeds the maximum number of tokens allowed 1048576.", 1048576, 0),
    ],
)
def test_every_endpoint_s_words_for_too_long_are_known(text: str, context: int, prompt: int):
    assert complaint(text) == Complaint("too_long", context, prompt)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("'response_format.type' must be 'json_schema' or 'text'", "structured"),
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model", "structured"),
        ("Failed to parse grammar", "structured"),
        ("No endpoints found that can handle the requested parameters.", "structured"),
        ('Unknown name "stream_options": Cannot find field.', "usage"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'",
            "token_limit",
        ),
        ("Extra inputs are not permitted: max_completion_tokens", "token_limit"),
        ("System role not supported", "system_role"),
        ("No endpoints found for small/model.", "unknown_model"),
        ("No models loaded. Please load a model in the developer page.", "unknown_model"),
        ("Cannot find an appropriate cached snapshot folder for the specified revision", "unknown_model"),
        ("temperature must be at most 2", ""),
        ("", ""),
    ],
)
def test_what_a_complaint_is_about(text: str, about: str):
    assert complaint(text).about == about


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("max_tokens is too large: 32768. This model supports at most 16384 completion tokens", 16384),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("`max_tokens` must be less than or equal to `4096`, the maximum for this model", 4096),
    ],
)
def test_the_most_tokens_of_a_reply_are_read(text: str, reply: int):
    assert complaint(text) == Complaint("reply_limit", reply=reply)


def test_what_a_long_message_quotes_is_not_taken_for_the_complaint():
    assert complaint("bad request: " + "kernel source " * 200 + "maximum context length is 5 tokens").about == ""


@pytest.mark.parametrize(
    "text", ["max_tokens " * 180, "invalid " * 240, "model " * 330, "maximum context length is 1" * 70]
)
def test_hostile_messages_do_not_take_long(text: str):
    complaint(text)  # a pattern that backtracks without end would hang here


@pytest.mark.parametrize(
    ("body", "message", "status"),
    [
        ({"error": {"message": "no", "code": "c"}}, "no", None),
        ([{"error": {"message": "no", "code": 400, "status": "INVALID"}}], "no", 400),
        ({"error": "no"}, "no", None),
        ({"detail": "no"}, "no", None),
        ({"message": "no", "code": 599}, "no", 599),
        ({"error": {"message": "no", "metadata": {"raw": "because"}}}, "no: because", None),
        ({"detail": [{"loc": ["body", "n"], "msg": "bad", "input": "the prompt"}]}, "['body', 'n'] bad", None),
        ("no", "no", None),
        (None, "", None),
        ([], "", None),
        ({}, "", None),
        ({"error": {"message": 5, "code": True, "details": 3, "metadata": []}}, "", None),
        ({"error": {"details": [{"retryDelay": "soon"}, None]}}, "", None),
    ],
)
def test_errors_are_read_in_every_form(body: object, message: str, status: int | None):
    said = read_error(body)
    assert (said.message, said.status, said.delay) == (message, status, None)
