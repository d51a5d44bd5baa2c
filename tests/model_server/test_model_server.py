from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from profiles.models import load_endpoint
from tests.model_server.scripted import reply
from tests.model_server.server import ModelServer


def post(server: ModelServer, **fields: object) -> str:
    body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "hello"}], **fields}).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", body, {"X-Test": "1"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return str(answer.read().decode())


def test_a_reply_is_streamed_as_events_with_its_usage_last(model_server: ModelServer):
    model_server.script([reply("abc", pieces=2)])
    events = [line for line in post(model_server, stream_options={"include_usage": True}).split("\n\n") if line]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]] == ["", "ab", "c", None]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["prompt_tokens"]) == ([], 2)
    assert events[-1] == "data: [DONE]"


def test_requests_are_kept_with_headers_and_body(model_server: ModelServer):
    model_server.script(["{}"])
    post(model_server)
    assert (model_server.requests[0].headers["x-test"], model_server.requests[0].prompt) == ("1", "hello")


def test_a_request_beyond_the_script_is_refused_and_counted(model_server: ModelServer):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(model_server)
    assert model_server.unscripted == 1


def test_a_profile_for_a_command_reads_as_the_one_for_a_client(model_server: ModelServer, tmp_path: Path):
    path = model_server.write_profile(tmp_path / "mine.toml", "openai", key_env="")
    read = load_endpoint(str(path))
    assert (read.base_url, read.structured, read.strict, read.key_env) == (
        model_server.base_url,
        ("schema", "object", "fenced"),
        True,
        "",
    )
