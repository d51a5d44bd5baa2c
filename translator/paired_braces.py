"""Braces that pair up however a text's conditional compilation turns out.

Were they counted over the whole text only, ``#define`` and ``#if 0`` could hide one half of a pair and let the rest
close the function that MLX writes around a source. So each branch of an ``#if`` must pair up by itself. Where it
doesn't, as when ``#ifdef NAME`` chooses between two beginnings of one block, the text must pair up in each of the ways
in which it can be read.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise, product

_MOST_NAMES = 6  # each doubles the ways to read a text
_BRACE_OR_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*|[{}]", re.MULTILINE)
_BRANCH = re.compile(
    r"^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|elif|else|endif)\b(?P<rest>(?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<word>if(?:n?def)?|endif|define(?=[ \t]+(?P<name>\w+)))\b", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
_CLOSES_TOO_MUCH = "this '}' has no '{': in a source it would end the function that MLX writes around it; remove it"


def unpaired_braces(code: str) -> Iterator[tuple[int, str]]:
    """Yield what of ``code`` (comments and literals blanked) doesn't pair up: the line from 1, and what to do."""
    found = list(_branch_by_branch(code))
    conditionals = _conditionals(code) if found else []
    names = sorted({entry.name for entry in conditionals if entry.name})
    if 0 < len(names) <= _MOST_NAMES:
        ways = (dict(zip(names, turns, strict=True)) for turns in product((True, False), repeat=len(names)))
        each_way = (_branch_by_branch(_as_read(code, conditionals, way)) for way in ways)
        found = list(dict.fromkeys(chain.from_iterable(each_way)))
    yield from found


def settled(text: str, code: str, outside: Container[str]) -> str:
    """Return ``text`` with what isn't read of it blanked, where braces pair up only then; else ``text`` as it is.

    ``code`` is ``text`` with comments and literals blanked; ``outside`` are the names that a text before it defines.
    Names with two leading underscores are the compiler's: whether they are defined isn't known here.
    """
    conditionals = _conditionals(code) if any(_branch_by_branch(code)) else []
    if not conditionals or any(each.name.startswith("__") for each in conditionals):
        return text
    within = definitions(code)
    return _as_read(
        text, conditionals, {each.name: each.name in within or each.name in outside for each in conditionals}
    )


def definitions(code: str) -> frozenset[str]:
    """Return the names that ``code`` defines whatever else is defined."""
    found: set[str] = set()
    depth = 0
    for match in _DIRECTIVE.finditer(code):
        depth += match["word"].startswith("if") - (match["word"] == "endif")
        if match["word"] == "define" and not depth:
            found.add(match["name"])
    return frozenset(found)


def _branch_by_branch(code: str) -> Iterator[tuple[int, str]]:
    """Find what doesn't pair up within the text, within each branch of an #if, and within each #define."""
    open_lines: list[list[int]] = [[]]
    for match in _BRACE_OR_DIRECTIVE.finditer(code):
        line, token, word = code.count("\n", 0, match.start()) + 1, match.group(), match.group(1)
        if token == "{":
            open_lines[-1].append(line)
        elif token == "}":
            if not open_lines[-1]:
                yield line, _CLOSES_TOO_MUCH
            else:
                open_lines[-1].pop()
        elif word in ("if", "ifdef", "ifndef"):
            open_lines.append([])
        elif word in ("elif", "else", "endif"):
            if len(open_lines) == 1:
                yield line, f"this #{word} has no #if: remove it"
                continue
            if open_lines.pop():
                yield line, f"braces must pair up within each branch of an #if: close them before this #{word}"
            if word != "endif":
                open_lines.append([])
        elif not _pairs_up(token):
            yield line, "braces must pair up within a #define"
    if len(open_lines) > 1:
        yield code.count("\n") + 1, "an #if is never closed: add its #endif"
    for line in open_lines[0]:
        yield line, "this '{' is never closed: add its '}'"


def _pairs_up(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0


@dataclass
class _Conditional:
    """An #if by its directives; ``name``: what an #ifdef or (``unless``) #ifndef asks for, '' where more is asked."""

    name: str
    unless: bool
    directives: list[re.Match[str]]


def _conditionals(code: str) -> list[_Conditional]:
    """Return the conditionals of ``code``, none if they are not all whole."""
    found: list[_Conditional] = []
    still_open: list[_Conditional] = []
    for match in _BRANCH.finditer(code):
        if match["word"].startswith("if"):
            still_open.append(_Conditional(_asked(match), match["word"] == "ifndef", []))
        if not still_open:
            return []
        still_open[-1].directives.append(match)
        if match["word"] == "elif":
            still_open[-1].name = ""
        elif match["word"] == "endif":
            found.append(still_open.pop())
    first: dict[str, int] = {}
    for entry in sorted(found, key=lambda entry: entry.directives[0].start()):
        first.setdefault(entry.name, entry.directives[0].start())
    # A name that is defined or undefined between two questions has two answers.
    changing = {match[1] for match in _DEFINITION.finditer(code) if match.start() > first.get(match[1], len(code))}
    for entry in found:
        entry.name = "" if entry.name in changing else entry.name
    return [] if still_open else found


def _asked(match: re.Match[str]) -> str:
    rest = match["rest"].strip()
    return rest if match["word"] != "if" and rest.isidentifier() else ""


def _as_read(code: str, conditionals: list[_Conditional], defined: Mapping[str, bool]) -> str:
    """Return ``code`` as it is read where these names are ``defined`` or not, line for line."""
    left_out: list[tuple[int, int]] = []
    for entry in conditionals:
        if not entry.name:
            continue
        left_out += [match.span() for match in entry.directives]
        parts = [(one.end(), other.start()) for one, other in pairwise(entry.directives)]
        first = defined[entry.name] != entry.unless
        left_out += parts[1:] if first else parts[:1]
    kept = list(code)
    for start, end in left_out:
        kept[start:end] = (character if character == "\n" else " " for character in code[start:end])
    return "".join(kept)
