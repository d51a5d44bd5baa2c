"""Text from models and files, made harmless to show: no control character reaches the terminal."""

from __future__ import annotations

import re

# C0 without newline and tab, DEL and C1, marks that reorder text, lone surrogates (which nothing can encode), and the
# two that are no characters at all.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE, _REPLACEMENT = "\x7f", "␡", "\N{REPLACEMENT CHARACTER}"


def inert(text: str, tab_size: int = 4) -> str:
    """Return ``text`` with its lines kept, tabs expanded, and every active character replaced by a visible one."""
    return _ACTIVE.sub(_picture, text.expandtabs(tab_size))


def one_line(text: str) -> str:
    """Return ``text`` inert and on one line: any run of white space becomes one space."""
    return " ".join(inert(text).split())


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character < " ":
        return chr(_PICTURES + ord(character))
    return _DELETE_PICTURE if character == _DELETE else _REPLACEMENT
