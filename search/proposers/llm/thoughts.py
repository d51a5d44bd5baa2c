"""Parts what a model thinks from what it answers, where both come in one text: ``<think>...</think>`` at its head."""

from __future__ import annotations

import re

TAGS = ("think", "thinking", "thought", "reasoning")

_OPENING = re.compile(rf"\s*<({'|'.join(TAGS)})>", re.IGNORECASE)
_OPENINGS = tuple(f"<{tag}>" for tag in TAGS)


class Thoughts:
    """Takes a reply piece by piece, however it is cut. What looks like a tag further on is part of the answer."""

    def __init__(self) -> None:
        self._held = self._tag = ""
        self._answers = False

    def take(self, piece: str) -> tuple[str, str]:
        """Return what can be told so far: a thought, and a part of the answer."""
        self._held += piece
        thought = ""
        while not self._answers:
            if self._tag:
                told, ended = self._until_the_end()
                thought += told
                if not ended:
                    return thought, ""
            elif opening := _OPENING.match(self._held):
                self._tag, self._held = opening[1].lower(), self._held[opening.end() :]
            elif any(tag.startswith(self._held.lstrip().lower()) for tag in _OPENINGS):
                return thought, ""  # it may still become a tag
            else:
                self._answers = True
        return thought, self._let_go()

    def rest(self) -> tuple[str, str]:
        """Return what was held back, when nothing more comes."""
        held = self._let_go()
        return (held, "") if self._tag else ("", held)

    def _until_the_end(self) -> tuple[str, bool]:
        """Return the thought up to its closing tag, and whether that has come; what may be its start is held back."""
        closing = f"</{self._tag}>"
        if end := re.search(closing, self._held, re.IGNORECASE):
            thought, self._held, self._tag = self._held[: end.start()], self._held[end.end() :], ""
            return thought, True
        held = next((n for n in range(len(closing) - 1, 0, -1) if self._held[-n:].lower() == closing[:n]), 0)
        thought, self._held = self._held[: len(self._held) - held], self._held[len(self._held) - held :]
        return thought, False

    def _let_go(self) -> str:
        held, self._held = self._held, ""
        return held
