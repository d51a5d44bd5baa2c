"""Metal and CUDA source as coloured lines."""

from __future__ import annotations

from pygments.token import Comment, Keyword, Literal, Name, Operator, Punctuation, _TokenType
from textual.content import Content, Span

from ksearch_tui.inert import inert
from ksearch_tui.source_tokens import CUDA, METAL, source_tokens

__all__ = ["CUDA", "METAL", "coloured_lines"]

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


def coloured_lines(source: str, language: str) -> list[Content]:
    """Return ``source`` inert and coloured, one `Content` a line; ``language`` is ``metal`` or ``cuda``."""
    lines: list[Content] = []
    parts: list[str] = []
    spans: list[Span] = []
    column = 0
    for kind, token in source_tokens(inert(source), language):
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
