"""Reads one reply as it streams in: its text, the model's reasoning, why it ended, and what it used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from search.proposers.llm.masking import KeyMask
from search.proposers.llm.thoughts import Thoughts

MOST_CHARACTERS = 4_000_000
"""Of text and reasoning; a stream that goes on beyond it is broken off."""


class NotTheProtocol(Exception):
    """The endpoint answered with HTTP 200, and not a chat completion; ``kind`` is that of the `ModelFault`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Patience:
    """Seconds to wait: to ``connect`` or list models, for the ``first`` piece of text, and ``between`` two pieces.

    ``whole``: for an attempt from its begin to its end, however it keeps coming.
    """

    connect: float
    first: float
    between: float
    whole: float = 4 * 3600.0


class Heard:
    """What has come of a reply so far, the key masked in it. ``finish`` is "" until the endpoint says it is whole.

    Each piece of its text is given to ``on_text`` as it comes, of the reasoning to ``on_thought``, whether that has a
    field of its own or stands in tags at the head of the text. ``on_usage`` is called with each count of tokens that
    comes, ``uncounted`` are the characters since the last one.
    """

    def __init__(
        self,
        mask: KeyMask,
        on_text: Callable[[str], None],
        on_thought: Callable[[str], None],
        on_usage: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._on_text, self._on_thought, self._on_usage = on_text, on_thought, on_usage
        self.refusal = self.finish = self.model = ""
        self.usage: Mapping[str, Any] | None = None
        self.error: object = None
        self.first_at: float | None = None
        self.characters = self.uncounted = 0
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._inside = Thoughts()
        self._passing, self._thinking, self._refusing = mask.passing(), mask.passing(), mask.passing()

    @property
    def text(self) -> str:
        """What the model answered."""
        return "".join(self._pieces)

    @property
    def reasoning(self) -> str:
        """What the model thought aloud, where the endpoint tells."""
        return "".join(self._thoughts)

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take in one chunk. What has another type than the protocol says is passed over."""
        self.model = _text(chunk, "model") or self.model
        self.error = chunk.get("error") or self.error
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = choice.get("delta") or choice.get("message")
        delta = delta if isinstance(delta, dict) else {}
        text, refusal = _text(delta, "content"), _text(delta, "refusal")
        # An endpoint may send its reasoning under both names: one of them is enough.
        thought = _text(delta, "reasoning") or _text(delta, "reasoning_content")
        self.refusal += self._refusing.take(refusal)
        new = len(text) + len(thought) + len(refusal)
        self.characters += new
        self.uncounted += new
        self.finish = _text(choice, "finish_reason") or self.finish
        if self.first_at is None and self.characters:
            self.first_at = asyncio.get_running_loop().time()
        self._tell(self._thinking.take(thought), *self._inside.take(self._passing.take(text)))
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage, self.uncounted = usage, 0
            self._on_usage(usage)

    def end(self) -> None:
        """Take in what was held back."""
        self.refusal += self._refusing.rest()
        self._tell(self._thinking.rest(), *self._inside.take(self._passing.rest()))
        self._tell("", *self._inside.rest())

    def _tell(self, thought: str, inner: str, text: str) -> None:
        self._pieces.append(text)
        for each in (thought, inner):
            if each:
                self._thoughts.append(each)
                self._on_thought(each)
        if text:
            self._on_text(text)


def _text(table: Mapping[str, Any], key: str) -> str:
    """Return a text that can be written anywhere: JSON may hold halves of characters, which can't."""
    value = table.get(key)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


async def listen(
    client: AsyncOpenAI,
    request: Mapping[str, Any],
    patience: Patience,
    heard: Heard,
) -> None:
    """Send ``request`` and take the reply into ``heard`` until its end.

    Raises TimeoutError when no text comes for too long, `NotTheProtocol`, and what the client raises; ``heard`` then
    holds what came before. However it ends, the stream is closed.
    """

    def take(chunk: object) -> None:
        if not isinstance(chunk, dict):
            raise NotTheProtocol("dropped", "it sent something that is not a JSON object")
        heard.take(chunk)

    clock = asyncio.get_running_loop().time
    begun = clock()
    async with asyncio.timeout(patience.first) as deadline:
        stream: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(**request)
        try:
            kind = stream.response.headers.get("content-type", "")
            if "html" in kind:
                raise NotTheProtocol("unreachable", "it answered with a web page")
            if "json" in kind and "event-stream" not in kind:  # it didn't stream, although asked to
                take(json.loads(await stream.response.aread()))
            async for piece in stream:
                known = heard.characters, heard.finish
                take(piece.to_dict(warnings=False) if isinstance(piece, ChatCompletionChunk) else piece)
                if heard.characters > MOST_CHARACTERS:
                    raise NotTheProtocol("length", f"it went on for more than {MOST_CHARACTERS} characters")
                if heard.characters > known[0] or heard.finish != known[1]:
                    deadline.reschedule(min(clock() + patience.between, begun + patience.whole))
            heard.end()
        finally:
            await stream.close()
