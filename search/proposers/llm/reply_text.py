"""The JSON object or the Metal file that a reply holds, whatever a model puts around it.

Nothing is mended: what does not read is told so exactly that the model can mend it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

MOST_CHARACTERS = 400_000
MOST_DIGITS = 40

_TAG = r"<(think|thinking|thought|reasoning)>"
_THOUGHT = re.compile(rf"\s*{_TAG}.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINKS_ON = re.compile(rf"\s*{_TAG}", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]{0,3}(?P<fence>`{3,}|~{3,})(?P<about>[^`]*)\Z")
_BEGINNING = re.compile(r"\{\s*[\"'}]|^[ \t]*\{", re.MULTILINE)
_PYTHON = re.compile(r"(True|False|None)\b")
_PROGRAM = re.compile(r"^//@\s*pass\b", re.MULTILINE)
_NAN = "NaN and Infinity are no numbers of JSON"


class MalformedReply(ValueError):
    """A reply that can't be used; the message is a paragraph that can be sent back to the model as it stands."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a reply; ``closed`` says whether its fence ends."""

    language: str
    text: str
    closed: bool

    @property
    def is_json(self) -> bool:
        """Whether it means to be JSON."""
        return self.language in ("json", "jsonc", "json5") or (
            not self.language and self.text.lstrip()[:1] in ("{", "[")
        )

    @property
    def is_program(self) -> bool:
        """Whether it means to be a program in the form of `search.kernels.text`."""
        return self.language == "metal" or _PROGRAM.search(self.text) is not None


def answer_in(text: str) -> str:
    """Return the reply without its reasoning; raise `MalformedReply` when nothing is left."""
    if len(text) > MOST_CHARACTERS:
        raise MalformedReply(f"The reply has {len(text)} characters; at most {MOST_CHARACTERS} are read.")
    text = without_thoughts(text.lstrip("\ufeff"))
    if _THINKS_ON.match(text):
        raise MalformedReply("The reply ends within its reasoning: there is no answer after it.")
    if not text.strip():
        raise MalformedReply("The reply is empty: there is no answer in it.")
    return text.strip()


def without_thoughts(text: str) -> str:
    """Return a reply without the reasoning before it that has come to its end."""
    while thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    opens = _THINKS_ON.match(text) or text.lstrip().startswith(("{", "```"))
    if not opens and (end := _THOUGHT_ENDS.search(text)):
        # Where the chat template opens the reasoning, the reply has only its end.
        text = text[end.end() :]
    return text


def blocks_in(text: str) -> tuple[list[Block], str]:
    """Return the fenced blocks of ``text``, and what stands outside of them."""
    blocks: list[Block] = []
    outside: list[str] = []
    inside: list[str] = []
    fence = language = ""
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if fence:
            bare = line.strip()
            if len(bare) >= len(fence) and set(bare) == {fence[0]}:
                blocks.append(Block(language, "\n".join(inside), True))
                fence, inside = "", []
            else:
                inside.append(line)
        elif opening := _FENCE.match(line):
            fence = opening["fence"]
            language = next(iter(opening["about"].lower().split()), "")
        else:
            outside.append(line)
    if fence:
        blocks.append(Block(language, "\n".join(inside), False))
    return blocks, "\n".join(outside)


def object_in(answer: str) -> dict[str, Any]:
    """Return the one JSON object of an answer: alone, in a fenced block, or with prose around it."""
    if answer[:1] not in ("{", "["):
        blocks = [block for block in blocks_in(answer)[0] if block.is_json]
        texts = list(dict.fromkeys(block.text.strip() for block in blocks))
        if len(texts) > 1:
            raise MalformedReply(f"The reply has {len(texts)} JSON blocks; give one, with everything in it.")
        if texts:
            answer = texts[0]
        elif beginning := _BEGINNING.search(answer):
            answer = answer[beginning.start() :].lstrip()
    if answer[:1] == "[":
        raise MalformedReply("The reply is a JSON list; it must be one JSON object, { ... }.")
    if answer[:1] != "{":
        raise MalformedReply("There is no JSON object in the reply; it must be one JSON object, { ... }.")
    return _parsed(answer)


def _parsed(text: str) -> dict[str, Any]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite, parse_int=_whole
    )
    try:
        data, end = decoder.raw_decode(text)
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise MalformedReply(_diagnosis(error)) from None
    except UnicodeEncodeError:
        raise MalformedReply("A string of the reply has a \\u escape that is half of a character.") from None
    except RecursionError:
        raise MalformedReply("The JSON of the reply is nested too deep.") from None
    rest = text[end:].strip()
    if rest[:1] in tuple('{}[],"'):
        raise MalformedReply(
            f"After the end of the JSON object stands {_quoted(rest[:20])}: nothing may follow its last brace."
        )
    return dict(data)


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise MalformedReply(f"The key {_quoted(key)} stands twice in one JSON object; give it once.")
        found[key] = value
    return found


def _no_number(text: str) -> NoReturn:
    raise MalformedReply(f"The reply has the value {text}: {_NAN}.")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise MalformedReply(f"The number {_quoted(text)} of the reply is too large.")
    return value


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise MalformedReply(f"A number of the reply has {len(text)} digits.")
    return int(text)


def _diagnosis(error: json.JSONDecodeError) -> str:
    """Say what is wrong at one place of the JSON, in the words of what models get wrong."""
    text, at = error.doc, error.pos
    before, after = text[:at].rstrip(), text[at:].lstrip()
    if error.msg.startswith("Illegal trailing comma"):  # Python 3.13 points at the comma
        before, after = text[: at + 1], text[at + 1 :].lstrip()
    where = f"The JSON does not read at line {error.lineno}, column {error.colno}"
    if error.msg.startswith("Invalid control character"):
        return f"{where}: a string has a line break or another control character in it; write \\n for a line break."
    if error.msg.startswith(("Invalid \\", "Invalid unicode")):
        return f"{where}: a backslash begins no escape of JSON there; write \\\\ for a backslash."
    if not after or error.msg.startswith("Unterminated"):
        return f"{where}: the reply ends in the middle of the object, after {_quoted(text.rstrip()[-30:])}."
    if before.endswith(",") and after[0] in "}]":
        return f"{where}: a comma stands before '{after[0]}'; leave it out."
    if after[0] in "'‘’“”":
        return f"{where}: text must stand in straight double quotes, not in {_quoted(after[0])}."
    if after.startswith(("//", "/*", "#")):
        return f"{where}: JSON has no comments; leave it out."
    if word := _PYTHON.match(after):
        return f"{where}: write {json.dumps({'True': True, 'False': False, 'None': None}[word[0]])} for {word[0]}."
    wanted = {"Expecting ',' delimiter": "a comma or a closing bracket", "Expecting ':' delimiter": "a colon"}.get(
        error.msg, "a key in double quotes" if "property name" in error.msg else "a value"
    )
    return f"{where}: {wanted} should stand where there is {_quoted(after[:20])}."


def _quoted(text: str) -> str:
    """Return text of a model as one line of plain ASCII within quotes."""
    return json.dumps(text if len(text) <= 60 else f"{text[:59]}…").replace("\\u2026", "...")
