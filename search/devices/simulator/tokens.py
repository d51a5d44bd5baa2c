"""C++ text as tokens, just well enough to change words without touching comments, strings or line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\s\\]{0,16})\(.*?\)(?P=fence)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<character>'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<newline>\n)
  | (?P<space>(?:\\\n|[^\S\n])+)
  | (?P<sign><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|[-+*/%&|^=!<>]=|&&|\|\||<<|.)
    """,
    re.VERBOSE | re.DOTALL,
)

BLANK = ("comment", "space", "newline")


@dataclass
class Token:
    """A piece of the text; the pieces put together are the text. ``line`` counts from 1."""

    kind: str
    text: str
    line: int
    directive: bool = False

    @property
    def blank(self) -> bool:
        """Whether the compiler sees nothing here."""
        return self.kind in BLANK


def tokenize(text: str) -> list[Token]:
    """Return the tokens of ``text``; those of preprocessor lines are marked ``directive``."""
    tokens: list[Token] = []
    line, directive, fresh = 1, False, True
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "fence" else "string"
        piece = match.group()
        if fresh and piece == "#":
            directive = True
        if kind == "newline":
            directive, fresh = False, True
        elif kind not in BLANK:
            fresh = False
        tokens.append(Token(kind or "sign", piece, line, directive))
        line += piece.count("\n")
    return tokens


def join(tokens: list[Token]) -> str:
    """Return the text that ``tokens`` make up."""
    return "".join(token.text for token in tokens)


def following(tokens: list[Token], at: int) -> int:
    """Return the index of the first token after ``at`` that is not blank, or ``len(tokens)``."""
    at += 1
    while at < len(tokens) and tokens[at].blank:
        at += 1
    return at


def preceding(tokens: list[Token], at: int) -> int:
    """Return the index of the last token before ``at`` that is not blank, or -1."""
    at -= 1
    while at >= 0 and tokens[at].blank:
        at -= 1
    return at


_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def closing(tokens: list[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at ``at``, or ``len(tokens)`` when none does."""
    opened, closed = tokens[at].text, _CLOSING[tokens[at].text]
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if text == opened:
            depth += 1
        elif text == closed:
            depth -= 1
            if depth == 0:
                return index
    return len(tokens)


def pairs(tokens: list[Token]) -> dict[int, int]:
    """Return the other bracket of each round, square and curly one outside of preprocessor lines, by index."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "sign" or token.directive or token.text not in "()[]{}":
            continue
        if token.text in "([{":
            opened.append(index)
        elif opened and _CLOSING[tokens[opened[-1]].text] == token.text:
            found[index] = opened[-1]
            found[opened.pop()] = index
    return found
