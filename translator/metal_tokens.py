"""The text of a Metal kernel as tokens, and what it declares: functions, parameters, variables and where they live.

The rules of `translator.metal_lint` work on this. It is no parser of C++: what it doesn't recognise it leaves out, so
that a rule stays silent rather than guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SPACES = ("device", "threadgroup", "constant", "thread", "threadgroup_imageblock", "object_data", "ray_data")
"""Address spaces, by the words that qualify pointers and variables."""

_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.]*|::|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||.", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_OPEN, _CLOSE = "([{", ")]}"

_NO_FUNCTION = frozenset(
    ("if", "for", "while", "switch", "return", "sizeof", "alignas", "alignof", "decltype", "static_assert", "catch",
     "defined", "operator", "constexpr", "else", "do")
)  # fmt: skip
_AFTER_PARAMETERS = frozenset(("const", "noexcept", "volatile", *SPACES))
_SCOPES = frozenset(("struct", "class", "union", "namespace", "extern"))
_NO_TYPE = frozenset(
    ("return", "else", "case", "goto", "delete", "new", "using", "typedef", "typename", "template", "struct", "enum",
     "class", "union", "namespace", "break", "continue", "public", "private", "default", "throw", "if", "while", "do",
     "for", "switch", "static_assert", "auto", "operator", "friend", "sizeof", "not", "and", "or")
)  # fmt: skip
_SIZES = frozenset(("long", "short", "int", "char", "unsigned", "signed"))
_QUALIFIERS = frozenset(("const", "constexpr", "volatile", "static", "inline", "unsigned", "signed", "coherent"))


@dataclass(frozen=True)
class Token:
    """A word or sign, and where it starts in the text."""

    text: str
    at: int

    @property
    def name(self) -> bool:
        """Whether it is a word: a name or a keyword."""
        return self.text[0].isalpha() or self.text[0] == "_"


Tokens = Sequence[Token]


@dataclass(frozen=True)
class Declared:
    """A parameter or variable: its type's words, its address space ("" where none is written), ``*``, ``&`` or "".

    ``extents`` are the tokens between each pair of its brackets, ``value`` those after ``=`` or within ``{}``, None
    where it isn't initialised.
    """

    name: str
    type: tuple[str, ...]
    space: str
    how: str
    extents: tuple[Tokens, ...]
    value: Tokens | None
    at: int


@dataclass(frozen=True)
class Function:
    """A function of the text. ``template`` has the names of its template parameters."""

    name: str
    parameters: tuple[Declared, ...]
    template: frozenset[str]
    member: bool
    body: Tokens
    at: int


def tokens_of(code: str) -> list[Token]:
    """Return the tokens of a text whose comments and literals are blanked, without those of preprocessor lines."""
    code = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)
    return [Token(match.group(), match.start()) for match in _TOKEN.finditer(code) if not match.group().isspace()]


def close_of(tokens: Tokens, at: int) -> int:
    """Return the index of the bracket that closes the one at ``at``, or ``len(tokens)`` when none does."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text in _OPEN) - (tokens[index].text in _CLOSE)
        if not depth:
            return index
    return len(tokens)


def split(tokens: Tokens, sign: str = ",") -> list[Tokens]:
    """Return the parts between signs that stand in no bracket, nor in ``<>`` as far as that can be told."""
    parts: list[Tokens] = []
    depth = begin = 0
    for index, token in enumerate(tokens):
        opens = token.text in _OPEN or (token.text == "<" and index > 0 and tokens[index - 1].name)
        depth += opens - (token.text in _CLOSE or (token.text == ">" and depth > 0))
        if token.text == sign and not depth:
            parts.append(tokens[begin:index])
            begin = index + 1
    parts.append(tokens[begin:])
    return [part for part in parts if part]


def functions_of(tokens: Tokens) -> list[Function]:
    """Return the functions that a text defines, members of its structs included, in order."""
    functions: list[Function] = []
    template: frozenset[str] = frozenset()
    structs: list[int] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        while structs and index >= structs[-1]:
            structs.pop()
        if token.text == "template" and _text(tokens, index + 1) == "<":
            end = _angle_close(tokens, index + 1)
            template = frozenset(part[-1].text for part in _template_parameters(tokens[index + 2 : end]))
            index = end + 1
            continue
        if token.text in ";}":
            template = frozenset()
        elif token.text in _SCOPES:
            opened = _scope_begin(tokens, index)
            if opened is not None:
                if token.text != "namespace":
                    structs.append(close_of(tokens, opened))
                index = opened
        elif token.name and token.text not in _NO_FUNCTION and _text(tokens, index + 1) == "(":
            closed = close_of(tokens, index + 1)
            begin = _body_begin(tokens, closed + 1)
            if _text(tokens, begin) == "{":
                end = close_of(tokens, begin)
                parameters = tuple(_parameter(part) for part in split(tokens[index + 2 : closed]))
                functions.append(
                    Function(token.text, parameters, template, bool(structs), tokens[begin + 1 : end], token.at)
                )
                template = frozenset()
                index = end
            else:
                index = closed
        elif token.text == "{":
            index = close_of(tokens, index)  # an initialiser, or a body that isn't understood
        index += 1
    return functions


def _body_begin(tokens: Tokens, at: int) -> int:
    """Go past what can stand between a function's parameters and its body: qualifiers, a constructor's initialisers."""
    while _text(tokens, at) in _AFTER_PARAMETERS:
        at += 1
    if _text(tokens, at) == ":":
        while _text(tokens, at) in (":", ",") and _text(tokens, at + 2) in ("(", "{"):
            at = close_of(tokens, at + 2) + 1
    return at


def variables_of(tokens: Tokens) -> Iterator[Declared]:
    """Yield the variables that a function's body declares, in every block of it."""
    start = True
    for index, token in enumerate(tokens):
        if start and token.name:
            yield from _declaration(tokens, index)
        start = token.text in ";{}" or (token.text == "(" and index > 0 and tokens[index - 1].text in ("for", "if"))


def program_variables_of(tokens: Tokens) -> Iterator[Declared]:
    """Yield the variables that a text declares outside of functions and structs."""
    index = 0
    start = True
    while index < len(tokens):
        token = tokens[index]
        if start and token.text == "template" and _text(tokens, index + 1) == "<":
            index = _angle_close(tokens, index + 1) + 1
            continue
        if start and token.text in _SCOPES:
            opened = _scope_begin(tokens, index)
            if opened is not None:
                index = opened + 1 if token.text == "namespace" else close_of(tokens, opened) + 1
                start = token.text == "namespace"
                continue
        if start and token.name:
            yield from _declaration(tokens, index)
        start = token.text in ";}"
        index = close_of(tokens, index) if token.text in _OPEN else index
        if index < len(tokens) and tokens[index].text == "}":
            start = True
        index += 1


def members_of(tokens: Tokens) -> Iterator[Declared]:
    """Yield the variables that the structs of a text are made of."""
    for index, token in enumerate(tokens):
        opened = _scope_begin(tokens, index) if token.text in _SCOPES and token.text != "namespace" else None
        if opened is not None:
            yield from program_variables_of(tokens[opened + 1 : close_of(tokens, opened)])


def _declaration(tokens: Tokens, at: int) -> Iterator[Declared]:
    """Yield what the statement that begins at ``at`` declares, if it is a declaration of variables."""
    index, space, words = at, "", list[str]()
    while index < len(tokens):
        text = tokens[index].text
        if text in SPACES:
            space = space or text
        elif text in ("alignas", "__attribute__") and _text(tokens, index + 1) == "(":
            index = close_of(tokens, index + 1)
        elif text in _QUALIFIERS:
            words.append(text)
        else:
            break
        index += 1
    whole = {"unsigned", "signed"} & set(words) and _text(tokens, index) not in _SIZES
    if not whole:
        if index >= len(tokens) or not tokens[index].name or tokens[index].text in _NO_TYPE - {"auto", "typename"}:
            return
        index = _type_end(tokens, index, words)
    while _text(tokens, index) in (*SPACES, "const", "volatile"):
        space = space or (tokens[index].text if tokens[index].text in SPACES else "")
        index += 1
    yield from _declarators(tokens, index, tuple(words), space)


def _declarators(tokens: Tokens, index: int, words: tuple[str, ...], space: str) -> Iterator[Declared]:
    while index < len(tokens):
        how = ""
        while _text(tokens, index) in ("*", "&", "&&", "const", *SPACES):
            how = how or (tokens[index].text if tokens[index].text in ("*", "&", "&&") else "")
            index += 1
        if index >= len(tokens) or not tokens[index].name or tokens[index].text in _NO_TYPE:
            return
        name, extents, index = tokens[index], list[Tokens](), index + 1
        while _text(tokens, index) == "[":
            closed = close_of(tokens, index)
            extents.append(tokens[index + 1 : closed])
            index = closed + 1
        value: Tokens | None = None
        if _text(tokens, index) == "=":
            end = _value_end(tokens, index + 1)
            value, index = tokens[index + 1 : end], end
        elif _text(tokens, index) == "{":
            closed = close_of(tokens, index)
            value, index = tokens[index + 1 : closed], closed + 1
        if _text(tokens, index) not in (",", ";", ":", ")"):
            return
        yield Declared(name.text, words, space, how, tuple(extents), value, name.at)
        if tokens[index].text != ",":
            return
        index += 1


def _value_end(tokens: Tokens, at: int) -> int:
    """Return where the value that begins at ``at`` ends: at a comma, a semicolon, or the bracket around it."""
    index = at
    while index < len(tokens) and tokens[index].text not in (",", ";", *_CLOSE):
        if tokens[index].text in _OPEN:
            index = close_of(tokens, index)
        elif tokens[index].text == "<" and tokens[index - 1].name and _text(tokens, _angle_close(tokens, index)) == ">":
            index = _angle_close(tokens, index)
        index += 1
    return index


def _parameter(tokens: Tokens) -> Declared:
    """Read one parameter. A pointer to an array or function has no name here."""
    value = next((index for index, token in enumerate(tokens) if token.text == "="), len(tokens))
    head = tokens[:value]
    space = next((token.text for token in head if token.text in SPACES), "")
    words, how, name, extents = list[str](), "", "", list[Tokens]()
    index = 0
    while index < len(head):
        text = head[index].text
        if text == "<":
            index = _angle_close(head, index)
        elif text in ("*", "&", "&&"):
            how = how or text
        elif text == "[":
            closed = close_of(head, index)
            if _text(head, index + 1) != "[":  # an attribute
                extents.append(head[index + 1 : closed])
            index = closed
        elif text == "(":
            return Declared("", tuple(words), space, "(", (), None, head[0].at)
        elif head[index].name and text not in SPACES:
            words.append(text)
            name = text
        index += 1
    if len(words) < 2:
        name, words = "", [*words, ""]
    default = tokens[value + 1 :] or None
    return Declared(name, tuple(words[:-1]), space, how, tuple(extents), default, head[0].at)


def _type_end(tokens: Tokens, index: int, words: list[str]) -> int:
    """Go past the type name that begins at ``index``, qualified and templated, and add its words."""
    words.append(tokens[index].text)
    index += 1
    while index < len(tokens):
        text = tokens[index].text
        if text == "::":
            index += 1
        elif text == "<":
            closed = _angle_close(tokens, index)
            if _text(tokens, closed) != ">":
                return index
            index = closed + 1
            if _text(tokens, index) != "::":
                return index
        elif tokens[index - 1].text == "::" or {text, words[-1]} <= _SIZES:
            words.append(text)
            index += 1
        else:
            return index
    return index


def _angle_close(tokens: Tokens, at: int) -> int:
    """Return the index of the ``>`` that closes the ``<`` at ``at``, or that of the sign that shows it isn't one."""
    depth = 0
    index = at
    while index < len(tokens):
        text = tokens[index].text
        if text == "(":
            index = close_of(tokens, index)
        elif text in ";{})" or text in ("&&", "||"):
            return index
        depth += (text == "<") - (text == ">")
        if not depth:
            return index
        index += 1
    return index


def _template_parameters(tokens: Tokens) -> Iterator[Tokens]:
    for part in split(tokens):
        value = next((index for index, token in enumerate(part) if token.text == "="), len(part))
        if value:
            yield part[:value]


def _scope_begin(tokens: Tokens, at: int) -> int | None:
    """Return the index of the ``{`` of a struct or namespace, None where only its name is mentioned."""
    for index in range(at + 1, min(at + 24, len(tokens))):
        if tokens[index].text == "{":
            return index
        if tokens[index].text in ";()=*&":
            return None
    return None


def _text(tokens: Tokens, index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""
