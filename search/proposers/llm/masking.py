"""Keys: read from the environment, checked, and kept out of everything that an endpoint sends back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from profiles.models import Endpoint
from search.proposers.llm.asking import ModelFault

MASK = "[key]"
SHARED = 8
"""Characters in a row that a word and the key share before the word is masked."""

SECRET = 12
"""Characters from which a key is masked in a reply too: shorter ones are placeholders, and may be words of a kernel."""

MOST_SHOWN = 300
MOST_READ = 20_000
"""Characters of a message that are looked at, whatever an endpoint sends."""

_WORD = re.compile(r"[^\s\"'`<>(),;:=]{8,}")


def key_of(endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    """Return the key of ``endpoint``, "" where it needs none; raise `ModelFault` when it isn't set or can't be one."""
    if not endpoint.key_env:
        return ""
    key = environ.get(endpoint.key_env, "").strip()
    if not key:
        raise ModelFault(
            "wrong_key",
            f"{endpoint.title} needs a key, and {endpoint.key_env} is not set. {endpoint.setup[0]} "
            f"Then: export {endpoint.key_env}=...",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelFault(
            "wrong_key",
            f"what {endpoint.key_env} holds can't be a key: it has spaces or other characters that no key has. "
            "Set it again, without quotes or other text around it.",
        )
    return key


class KeyMask:
    """Hides one key in texts; an empty key hides nothing."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._pieces = {key[start : start + SHARED] for start in range(len(key) - SHARED + 1)}

    def __repr__(self) -> str:
        return "KeyMask()"

    def shown(self, text: str) -> str:
        """Return ``text`` from an endpoint as one short line for a message: no part of the key, no control codes."""
        text = text[:MOST_READ]
        whole = text.replace(self._key, MASK) if self._key else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in whole).split())
        line = _WORD.sub(lambda word: MASK if any(piece in word[0] for piece in self._pieces) else word[0], line)
        return line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"

    def passing(self) -> Passing:
        """Return what a reply that comes in pieces goes through."""
        return Passing(self._key if len(self._key) >= SECRET else "")


class Passing:
    """Masks the key in a text that comes in pieces, wherever they are cut; everything else stays as it is."""

    def __init__(self, key: str) -> None:
        self._key, self._held = key, ""

    def __repr__(self) -> str:
        return "Passing()"

    def take(self, piece: str) -> str:
        """Return what can be passed on so far; an end that may be the start of the key waits for the next piece."""
        if not self._key:
            return piece
        text = (self._held + piece).replace(self._key, MASK)
        longest = min(len(self._key) - 1, len(text))
        held = next((n for n in range(longest, 0, -1) if self._key.startswith(text[-n:])), 0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> str:
        """Return what waited, when nothing more comes."""
        held, self._held = self._held, ""
        return held
