"""Who reads along while a run goes on: what is being done with an option, and how a model's reply grows. Unrecorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """What is asked of whom.

    ``prompt_tokens`` is estimated. ``usd`` gives the price of so many tokens of prompt and reply, None where not known.
    """

    option: str
    call: str
    role: str
    model: str
    endpoint: str
    prompt: str
    prompt_tokens: int
    usd: Callable[[int, int], float | None]


OnProgress = Callable[[str, str], None]
OnText = Callable[[Question, str, bool], None]
"""Given a question, a piece of its reply, and whether that is only a thought on the way to the answer."""


class Audience:
    """Listeners to what no event tells."""

    def __init__(self) -> None:
        self._watchers: list[OnProgress] = []
        self._readers: list[OnText] = []

    def on_progress(self, listener: OnProgress) -> Callable[[], None]:
        """Tell ``listener`` of each option what is being done with it; returns how to end that."""
        self._watchers.append(listener)
        return lambda: self._watchers.remove(listener)

    def on_text(self, listener: OnText) -> Callable[[], None]:
        """Give ``listener`` each piece of a model's reply as it comes; returns how to end that."""
        self._readers.append(listener)
        return lambda: self._readers.remove(listener)

    def tell(self, option: str, stage: str) -> None:
        """Say what is being done with ``option``."""
        for watcher in tuple(self._watchers):
            watcher(option, stage)

    def read_out(self, question: Question, piece: str, thought: bool) -> None:
        """Pass on a piece of the reply to ``question``, or of what the model thinks before it."""
        for reader in tuple(self._readers):
            reader(question, piece, thought)
