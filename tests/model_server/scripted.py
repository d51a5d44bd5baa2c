"""What the model server answers: one reply, or one fault, as a table that a test writes down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent. ``body`` is None where there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        """All messages of a chat request, one after the other."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Scripted:
    """One answer.

    - A reply: ``text`` in ``pieces`` of so many characters, after ``reasoning`` (under ``reasoning_keys``).
      ``finish``: None leaves the reason out. ``refusal``: as OpenAI's models do. ``usage``: "count" makes one from the
      characters (4 a token); None sends none; a mapping is sent as it is.
    - An error: a ``status`` other than 200 with ``body`` (JSON unless it is a text) and ``headers``.
    - Time, in seconds: ``before`` the head of the answer, ``first`` before the first piece, ``between`` pieces.
    - Breaking off: after ``drop_after`` pieces, by ``drop``: "reset" (the connection), or "end" (as if all was well).
      ``error_after`` (pieces, error): an error inside the stream. ``stall_after``: then nothing more comes.
    - ``whole``: a JSON answer although a stream was asked for. ``raw``: events to send after the pieces, as they are.
    """

    text: str = ""
    pieces: int = 12
    reasoning: str = ""
    reasoning_keys: tuple[str, ...] = ("reasoning_content",)
    refusal: str = ""
    finish: str | None = "stop"
    usage: Mapping[str, Any] | str | None = "count"
    model: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    before: float = 0.0
    first: float = 0.0
    between: float = 0.0
    drop_after: int | None = None
    drop: str = "reset"
    error_after: tuple[int, Any] | None = None
    stall_after: int | None = None
    whole: bool = False
    raw: tuple[bytes, ...] = ()


Answer = Scripted | str | Callable[[Request], "Scripted | str"]


def reply(text: object, **how: Any) -> Scripted:
    """Return a reply with ``text``, or with a table as JSON."""
    return Scripted(text=text if isinstance(text, str) else json.dumps(text), **how)


def error(status: int, message: str = "", /, *, headers: Mapping[str, str] | None = None, **fields: Any) -> Scripted:
    """Return an error in the form of OpenAI; ``fields`` are more keys beside its message, such as code."""
    return Scripted(status=status, body={"error": {"message": message, **fields}}, headers=headers or {})
