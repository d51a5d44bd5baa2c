"""What a person has still to fill in, in a ``problem.toml`` that ``ksearch-tui new`` wrote.

A question is a comment ``# ASK: ...`` above a line ``key = ""``, and answered when something stands between the quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ASK = "# ASK: "
"""How the comment of a question begins."""

_OPEN = re.compile(r'[^#=]+=\s*(?:""|\'\')\s*(?:#.*)?$')


@dataclass(frozen=True)
class OpenQuestion:
    """A question without an answer: its line, from 1, and its text."""

    line: int
    text: str


def open_question(text: str) -> OpenQuestion | None:
    """Return the first question of a ``problem.toml`` that isn't answered, None when there is none."""
    asked: OpenQuestion | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith(ASK.strip()):
            asked = asked or OpenQuestion(number, stripped.removeprefix(ASK.strip()).strip())
        elif stripped and not stripped.startswith("#"):
            if asked is not None and _OPEN.match(stripped):
                return asked
            asked = None
    return None
