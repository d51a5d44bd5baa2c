"""Which line a piece of text came from, carried within the text itself while pieces are put together.

A private-use character before a token stands for its line; `split_marks` takes the marks out again.
"""

from __future__ import annotations

import re

from tree_sitter import Node

_FIRST = 0xF0000
_MOST = 0x10FFFD - _FIRST
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(0x10FFFD)}]")


def mark(text: str, line: int) -> str:
    """Return ``text`` with each of its lines marked as that line of the source and those after it."""
    return "\n".join(
        chr(_FIRST + min(line + i, _MOST)) + part if part else part for i, part in enumerate(text.split("\n"))
    )


def unmark(text: str) -> str:
    """Return the text without its marks."""
    return _MARK.sub("", text)


def split_marks(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without its marks, and for each line where its first token stood (0: nowhere)."""
    lines = []
    for line in text.split("\n"):
        found = _MARK.search(line)
        lines.append(ord(found.group()) - _FIRST if found else 0)
    return unmark(text), tuple(lines)


_PRIMARY = ("identifier", "number_literal", "call_expression", "subscript_expression", "field_expression",
            "parenthesized_expression")  # fmt: skip


def is_primary(node: Node, text: str) -> bool:
    """Whether an operator or member can follow an expression's text as it is: a call may have become an operation."""
    return node.type in _PRIMARY and (node.type != "call_expression" or _is_closed(unmark(text)))


def _is_closed(text: str) -> bool:
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and (character.isspace() or (character in "-*!~&" and at == 0)):
            return False
    return True
