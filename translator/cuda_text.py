"""The text that the parser reads in place of a CUDA source: line for line, without what the grammar can't read.

`parsable` blanks what is never part of the grammar: attributes, macros that stand for qualifiers. `mended` is for a
text that has been parsed with errors: it goes through the usual causes, all of them macros and conditional
compilation, and blanks those. An offset in the result is an offset in the source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from translator.span import Span

_DEVICE_WORDS = ("__device__", "__global__")
_BALANCED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_ATTRIBUTE_CALL = re.compile(
    rf"\b(?:__align__|__builtin_align__|__cluster_dims__|__maxnreg__|__block_size__|__attribute__)\s*{_BALANCED}"
    r"|\bCUDART_CB\b"
)
_LEADING_MACRO = re.compile(
    rf"(?m)^[ \t]*(?:template\s*<[^\n]*>\s*)?(?P<macro>[A-Z][A-Z0-9_]+(?:{_BALANCED})?)"
    r"(?=\s+__(?:global|device|host)__\b)"
)
_ATTRIBUTE_MACRO = re.compile(
    r"(?m)^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]+"
    r"(?P<words>(?:(?:__device__|__host__|__global__|__forceinline__|__noinline__|__inline__|inline|static)[ \t]*)+)$"
)
_DIRECTIVE_OR_WORD = re.compile(r"(?m)^[ \t]*#(?:[^\n\\]|\\[\s\S])*|\b[A-Za-z_]\w*")

_MACRO = r"[A-Z][A-Z0-9]*_[A-Z0-9_]*|[A-Z][A-Z0-9]{2,}"
_CALL = rf"(?:{_MACRO})[ \t]*{_BALANCED}"
# What each hides from the parser, the group ``blank``.
_HINDRANCES = tuple(
    re.compile(pattern)
    for pattern in (
        # typename Traits::Load(memory).Load(…) as a statement
        r"(?P<blank>\btypename\b)(?=\s+[\w:]+(?:<[^;{}<>]*>)?(?:::\w+)*\s*\()",
        rf"\)\s*(?P<blank>__launch_bounds__\s*{_BALANCED})",
        r"(?P<blank>\b_Pragma\s*\(\s*\"[^\"\n]*\"\s*\))",
        # [=] __device__ (int i) { … }
        r"\]\s*(?P<blank>(?:__(?:host|device)__\s*)+)(?=[({])",
        # * RESTRICT x
        rf"\*\s*(?P<blank>{_MACRO})(?=\s+[A-Za-z_]\w*\s*[,)])",
        # a macro alone on its line: NAMESPACE_BEGIN
        rf"(?m)^[ \t]*(?P<blank>{_MACRO})[ \t]*$",
    )
)
# A macro with arguments and no semicolon, alone on its line or before a statement: FOR_EACH(i) x[i] = 0;
_STATEMENTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?m)^[ \t]*(?P<blank>{_CALL})[ \t]*(?=\n\s*(?:[A-Za-z_#}}/]|$))(?!\n\s*(?:const\b)?[^\n;]*\)\s*\{{)",
        rf"(?<=[;{{}}])\s*(?P<blank>{_CALL})(?=\s+[A-Za-z_*])",
    )
)
# MACRO type name(…) { … }: what stands before a function
_BEFORE_FUNCTION = re.compile(
    rf"(?m)(?:^|[;{{}}>])[ \t]*(?P<macro>{_MACRO})"
    r"(?=(?:\s+(?:static|inline|constexpr|const|auto|[A-Za-z_][\w:]*(?:<[^;{}()]*>)?))"
    r"+[ \t*&]+(?:operator\b[^\n(]*|[A-Za-z_]\w*)\s*\()"
)
_DEVICE_MACRO = re.compile(r"DEVICE|_HD\b|^HD_|_DEV\b")
_BRACED_LAUNCH = re.compile(r"<<<[^;{}]{0,200}?(?P<braces>\{[^;{}]{0,80}\})[^;]{0,200}?>>>")
_CONDITIONAL = re.compile(
    r"(?m)^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|elif|else|endif)\b(?P<rest>(?:[^\n\\]|\\[\s\S])*)"
)

_NUMBERED_TYPE = re.compile(
    r"(?:\w+::)*\bthread_block_tile\s*<\s*\w+\s*(?:,\s*[\w:]+\s*)?>(?=\s*(?:const\b|&|\s)\s*\w)"
)
"""A type that the grammar may take for comparisons: ``tile<32> warp = …``; one word stands for it there."""


def parsable(text: str) -> str:
    """Return the text with one ASCII character for each of its own and without what the grammar never reads."""
    if not text.isascii() or "\0" in text:
        text = "".join(c if "\0" < c < "\x80" else " " if c in "\0\ufeff" or c.isspace() else "_" for c in text)
    if stand_ins := {
        macro["name"]: _stand_in(macro["name"], macro["words"].split()) for macro in _ATTRIBUTE_MACRO.finditer(text)
    }:
        text = _DIRECTIVE_OR_WORD.sub(lambda match: stand_ins.get(match[0], match[0]), text)
    text = _ATTRIBUTE_CALL.sub(lambda match: _blank(match[0]), text)
    if "thread_block_tile" in text:
        text = _NUMBERED_TYPE.sub(lambda match: re.sub(r"\W", "_", match[0]), text)
    return _LEADING_MACRO.sub(lambda match: match[0].replace(match["macro"], _blank(match["macro"])), text)


def mended(text: str, errors: Sequence[Span]) -> tuple[str, list[Span], list[Span]]:
    """Return the text without what hindered the parser at ``errors``, and what says something that is left out by that.

    The first list has branches of ``#if``, the second one macros with arguments.
    """
    for hindrance in _HINDRANCES:
        text = hindrance.sub(_without_blank, text)
    macros = [
        Span(*match.span("blank"), *_line_and_column(text, match.start("blank")))
        for statement in _STATEMENTS
        for match in statement.finditer(text)
    ]
    for statement in _STATEMENTS:
        text = statement.sub(_without_blank, text)
    text = _BEFORE_FUNCTION.sub(_without_macro, text)
    text = _BRACED_LAUNCH.sub(_without_braces, text)
    text, branches = _one_branch(text, errors)
    return text, branches, list(dict.fromkeys(macros))


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _stand_in(name: str, words: Sequence[str]) -> str:
    """Return as many characters as ``name`` has: the qualifier that the macro brings, if it fits, and blanks."""
    fitting = (word for word in _DEVICE_WORDS if word in words and len(word) <= len(name))
    return next(fitting, "").ljust(len(name))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_blank(match: re.Match[str]) -> str:
    start, end = (match[0][: match.start("blank") - match.start()], match[0][match.end("blank") - match.start() :])
    return f"{start}{_blank(match['blank'])}{end}"


def _without_macro(match: re.Match[str]) -> str:
    macro = match["macro"]
    words = ["__device__"] if _DEVICE_MACRO.search(macro) else []
    at = match.start("macro") - match.start()
    return match[0][:at] + _stand_in(macro, words) + match[0][at + len(macro) :]


def _without_braces(match: re.Match[str]) -> str:
    at = match.start("braces") - match.start()
    inside = match["braces"][1:-1]
    return f"{match[0][:at]}({inside}){match[0][at + len(inside) + 2 :]}"


def _one_branch(text: str, errors: Sequence[Span]) -> tuple[str, list[Span]]:
    """Keep one branch of each ``#if`` that an error touches: the first, or the last of ``#if 0``."""
    left_out: list[Span] = []
    pieces = list(text)
    stack: list[list[re.Match[str]]] = []
    for directive in _CONDITIONAL.finditer(text):
        word = directive["word"]
        if word.startswith("if"):
            stack.append([directive])
        elif stack:
            stack[-1].append(directive)
            if word == "endif":
                parts = stack.pop()
                start, end = parts[0].start(), parts[-1].end()
                if any(error.start <= end and start <= error.end for error in errors):
                    left_out += _keep_one(text, pieces, parts)
    return "".join(pieces), left_out


def _keep_one(text: str, pieces: list[str], parts: Sequence[re.Match[str]]) -> list[Span]:
    """Blank the directives and all branches but one; return those."""
    kept = len(parts) - 2 if parts[0]["rest"].strip() == "0" and parts[0]["word"] == "if" else 0
    left_out: list[Span] = []
    for at, (part, following) in enumerate(pairwise(parts)):
        end = part.end() if at == kept else following.start()
        pieces[part.start() : end] = _blank(text[part.start() : end])
        if at != kept and text[part.end() : following.start()].strip():
            left_out.append(Span(part.start(), following.start(), *_line_and_column(text, part.start())))
    last = parts[-1]
    pieces[last.start() : last.end()] = _blank(last[0])
    return left_out
