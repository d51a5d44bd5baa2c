"""A local HTTP server that speaks the chat-completions protocol, with answers that a test has written down.

It runs in a thread of its own, so that tests with and without an event loop, and other processes, can talk to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiles.models import Endpoint, load_endpoint
from tests.model_server.profile_file import write_profile
from tests.model_server.scripted import Answer, Request, Scripted, error, reply

_REASONS = {200: "OK", 307: "Temporary Redirect", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class ModelServer:
    """Answers ``/v1/chat/completions`` from a script, in order, and ``/v1/models`` with ``models`` (or ``listing``).

    What it is like, besides the script; set at any time:

    - ``key``: asks for this key, else answers 401; ``echo_key`` then repeats in the error what was sent.
    - ``refuses``: fields of a request, each with the message of a 400 that a request with it gets.
    - ``refuses_formats``: types of response_format that get a 400.
    - ``context``: tokens (4 characters each) that fit; a longer prompt gets a 400, or is cut when ``cuts`` is set.

    When the script has ended it answers 400 and adds to ``unscripted``.
    """

    def __init__(self) -> None:
        self.models: tuple[str, ...] = ("small",)
        self.listing: Scripted | None = None
        self.key, self.echo_key = "", False
        self.refuses: Mapping[str, str] = {}
        self.refuses_formats: tuple[str, ...] = ()
        self.context, self.cuts = 0, False
        self.requests: list[Request] = []
        self.unscripted = 0
        self.left_early = 0
        self._script: list[Answer] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def __enter__(self) -> ModelServer:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def base_url(self) -> str:
        """What comes before ``/chat/completions``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> list[Request]:
        """The requests for a reply."""
        return [request for request in self.requests if request.path == "/v1/chat/completions"]

    def script(self, answers: Iterable[Answer]) -> None:
        """Add ``answers`` to what the next requests get; a function is given the request and returns its answer."""
        self._script.extend(answers)

    def endpoint(self, like: str = "vllm", **changes: Any) -> Endpoint:
        """Return the profile called ``like`` with this server's address and ``changes``."""
        return replace(load_endpoint(like), **{"base_url": self.base_url, **changes})

    def write_profile(self, path: Path, like: str = "vllm", **changes: Any) -> Path:
        """Write that profile, without its list of models, as a file that a command can be given."""
        return write_profile(path, self.endpoint(like, **changes))

    def wait_for(self, condition: Callable[[ModelServer], bool], seconds: float = 5.0) -> bool:
        """Wait until ``condition`` holds; return whether it did in time. Blocks."""
        end = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    # -- serving ------------------------------------------------------------------------------------------------------

    async def _open(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24)

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            request = await _received(reader)
            self.requests.append(request)
            gone = asyncio.create_task(reader.read())
            answering = asyncio.create_task(self._answer(request, writer))
            await asyncio.wait((gone, answering), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self.left_early += 1
            for task in (gone, answering):
                task.cancel()
            await asyncio.gather(gone, answering, return_exceptions=True)
        writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        answer = self._refusal(request)
        if answer is None and request.path == "/v1/models":
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "me"} for name in self.models]
            answer = self.listing or Scripted(body={"object": "list", "data": listed})
        if answer is None and request.path != "/v1/chat/completions":
            answer = Scripted(status=404, body="Not Found")
        if answer is None:
            answer = self._next(request)
        await asyncio.sleep(answer.before)
        if answer.body is not None:
            await _send_body(writer, answer)
        elif answer.whole:
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": answer.finish}
            await _send_body(writer, replace(answer, body={"choices": [choice], "usage": self._usage(request, answer)}))
        else:
            await self._stream(request, answer, writer)

    def _next(self, request: Request) -> Scripted:
        if not self._script:
            self.unscripted += 1
            return error(400, "the script of the test has ended")
        answer = self._script.pop(0)
        if callable(answer):
            answer = answer(request)
        return reply(answer) if isinstance(answer, str) else answer

    def _refusal(self, request: Request) -> Scripted | None:
        sent = request.headers.get("authorization", "")
        if self.key and sent != f"Bearer {self.key}":
            told = f"Incorrect API key provided: {sent}" if self.echo_key else "Incorrect API key provided"
            return error(401, told, code="invalid_api_key")
        body = request.body if isinstance(request.body, dict) else {}
        for name, message in self.refuses.items():
            if name in body:
                return error(400, message)
        if (kind := body.get("response_format", {}).get("type")) in self.refuses_formats:
            return Scripted(status=400, body={"error": f"'response_format.type' must not be '{kind}'"})
        if body and self.context and not self.cuts and _tokens(request) > self.context:
            return error(
                400,
                f"This model's maximum context length is {self.context} tokens. However, your messages resulted in "
                f"{_tokens(request)} tokens.",
                code="context_length_exceeded",
            )
        return None

    def _usage(self, request: Request, answer: Scripted) -> Mapping[str, Any] | None:
        if answer.usage != "count":
            return answer.usage if isinstance(answer.usage, Mapping) else None
        prompt = min(_tokens(request), self.context) if self.cuts and self.context else _tokens(request)
        written = -(-len(answer.reasoning + answer.text) // 4)
        return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}

    async def _stream(self, request: Request, answer: Scripted, writer: asyncio.StreamWriter) -> None:
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **answer.headers}
        _send_head(writer, answer.status, head)
        await writer.drain()
        await asyncio.sleep(answer.first)
        base = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": answer.model or "small"}
        for count, delta in enumerate(_deltas(answer)):
            if count == answer.drop_after:
                if answer.drop == "end":
                    await _send_chunk(writer, b"")
                else:
                    writer.transport.abort()
                return
            if answer.error_after is not None and count == answer.error_after[0]:
                await _send_event(writer, {**base, "choices": [], "error": answer.error_after[1]})
                return
            if count == answer.stall_after:
                await asyncio.sleep(3600)
            await _send_event(writer, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            await asyncio.sleep(answer.between)
        for event in answer.raw:
            await _send_chunk(writer, event)
            await asyncio.sleep(answer.between)
        if answer.finish is not None:
            await _send_event(writer, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish}]})
        usage = self._usage(request, answer)
        if usage is not None and request.body.get("stream_options", {}).get("include_usage"):
            await _send_event(writer, {**base, "choices": [], "usage": usage})
        await _send_chunk(writer, b"data: [DONE]\n\n")
        await _send_chunk(writer, b"")


def _deltas(answer: Scripted) -> list[dict[str, str]]:
    thoughts = _cut(answer.reasoning, answer.pieces)
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [dict.fromkeys(answer.reasoning_keys, piece) for piece in thoughts]
    deltas += [{"refusal": piece} for piece in _cut(answer.refusal, answer.pieces)]
    return [*deltas, *({"content": piece} for piece in _cut(answer.text, answer.pieces))]


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _tokens(request: Request) -> int:
    return -(-len(request.prompt) // 4)


async def _received(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, json.loads(content) if content else None)


async def _send_body(writer: asyncio.StreamWriter, answer: Scripted) -> None:
    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    kind = "text/html" if isinstance(answer.body, str) else "application/json"
    content = text.encode()
    _send_head(writer, answer.status, {"content-type": kind, "content-length": str(len(content)), **answer.headers})
    writer.write(content)
    await writer.drain()


def _send_head(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", "connection: close"]
    writer.write("\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode())


async def _send_event(writer: asyncio.StreamWriter, event: Mapping[str, Any]) -> None:
    await _send_chunk(writer, f"data: {json.dumps(event)}\n\n".encode())


async def _send_chunk(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(content), content))
    await writer.drain()
