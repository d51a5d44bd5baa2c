"""Metal and CUDA source as coloured lines.

Pygments' C++ and CUDA lexers do the work; Metal's own words, which neither knows, are data here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygments import lex
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Literal, Name, Operator, Punctuation, _TokenType, is_token_subtype
from textual.content import Content, Span

from ksearch_tui.inert import inert

_ADDRESS_SPACES = frozenset({"device", "constant", "threadgroup", "thread", "kernel", "vertex", "fragment"})
_METAL_TYPE = re.compile(r"(bool|u?char|u?short|u?int|u?long|half|float|bfloat)([234](x[234])?|8|16)?(_t)?\Z")
_METAL_BUILT_IN = re.compile(
    r"(simd_\w+|simdgroup_\w+|threadgroup_barrier|mem_flags|quad_\w+|metal|fast|precise|as_type|"
    r"threads?_\w+|threadgroups?_\w+|dispatch_\w+|grid_\w+|atomic_\w+|\w+_(shape|strides|ndim))\Z"
)
_STYLES: dict[_TokenType, str] = {
    Comment: "italic $foreground 55%",
    Comment.Preproc: "$text-error",
    Keyword: "$text-accent",
    Keyword.Type: "$text-primary",
    Literal.Number: "$text-warning",
    Literal.String: "$text-success",
    Name.Builtin: "$text-secondary",
    Name.Function: "bold",
    Operator: "$foreground 80%",
    Punctuation: "$foreground 70%",
}
# Colouring more than this takes longer than a person waits; the text is then shown plain.
_MOST_CHARACTERS = 300_000

METAL, CUDA = "metal", "cuda"


_LEXERS = {
    language: get_lexer_by_name(known_as, stripnl=False, ensurenl=False)
    for language, known_as in ((METAL, "cpp"), (CUDA, "cuda"))
}


def _tokens(text: str, language: str) -> Iterator[tuple[_TokenType, str]]:
    for kind, word in lex(text, _LEXERS[language]):
        yield _metal_kind(kind, word) if language == METAL else kind, word


def _metal_kind(kind: _TokenType, word: str) -> _TokenType:
    """Return what Metal makes of a word that C++ takes for a name or keyword."""
    if is_token_subtype(kind, Name) or is_token_subtype(kind, Keyword):
        if word in _ADDRESS_SPACES:
            return Keyword
        if _METAL_TYPE.match(word):
            return Keyword.Type
        if _METAL_BUILT_IN.match(word):
            return Name.Builtin
    return kind


def coloured_lines(source: str, language: str) -> list[Content]:
    """Return ``source`` inert and coloured, one `Content` a line; ``language`` is ``metal`` or ``cuda``."""
    text = inert(source)
    if len(text) > _MOST_CHARACTERS:
        return [Content(line) for line in text.split("\n")]
    lines: list[Content] = []
    parts: list[str] = []
    spans: list[Span] = []
    column = 0
    for kind, token in _tokens(text, language):
        style = _style_of(kind)
        for number, part in enumerate(token.split("\n")):
            if number:
                lines.append(Content("".join(parts), spans))
                parts, spans, column = [], [], 0
            if part:
                parts.append(part)
                if style:
                    spans.append(Span(column, column + len(part), style))
                column += len(part)
    return [*lines, Content("".join(parts), spans)]


def _style_of(kind: _TokenType | None) -> str:
    while kind is not None:
        if kind in _STYLES:
            return _STYLES[kind]
        kind = kind.parent
    return ""
