"""MLX's own full text of a kernel (what ``verbose=True`` prints), taken apart into what the simulator compiles."""

from __future__ import annotations

import re
from dataclasses import dataclass

from search.devices.simulator.tokens import Token, closing, following, join, preceding, tokenize

_BUFFER = re.compile(
    r"(?P<const>const )?(?P<space>device|constant) (?P<type>[\w<>: ]+?) ?(?P<how>[*&]) ?(?P<name>\w+) ?"
    r"\[\[ ?buffer ?\( ?\d+ ?\) ?\]\]"
)
_ATTRIBUTE = re.compile(r"(?P<type>\w+) (?P<name>\w+) ?\[\[ ?(?P<attribute>\w+) ?\]\]")
_TYPE_PARAMETER = re.compile(r"(?:typename|class) (?P<name>\w+)")
_VALUE_PARAMETER = re.compile(r"(?P<type>[\w ]+) (?P<name>\w+)")


class GeneratedTextError(ValueError):
    """Text with a ``[[kernel]]`` that does not have the form that MLX writes; ``line`` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: a buffer (``how`` is ``*`` or ``&``) or, with ``how`` empty, Metal's ``attribute``."""

    type: str
    name: str
    how: str = ""
    const: bool = False
    attribute: str = ""


@dataclass(frozen=True)
class GeneratedKernel:
    """MLX's text in pieces that, with as many lines between them as they say, keep every line where it was."""

    before: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...]  # declarations that give each template parameter its argument
    signature_lines: int
    body: str  # what stands between the kernel's braces
    lines: int  # of the whole text


def is_generated(source: str) -> bool:
    """Return whether ``source`` is a whole Metal file: a kernel's body can't hold a kernel."""
    return re.search(r"\[\[\s*kernel\s*\]\]", source) is not None


def parse_generated(text: str) -> GeneratedKernel:
    """Take MLX's generated ``text`` apart; raise `GeneratedTextError` where it has another form."""
    tokens = tokenize(text)
    mark = _kernel_mark(tokens)
    opened = next((i for i in range(mark, len(tokens)) if tokens[i].text == "("), len(tokens))
    closed = closing(tokens, opened) if opened < len(tokens) else opened
    brace = following(tokens, closed)
    end = closing(tokens, brace) if brace < len(tokens) and tokens[brace].text == "{" else len(tokens)
    if end >= len(tokens):
        raise GeneratedTextError("no function with a body follows [[kernel]]", tokens[mark].line)
    begin = _template_begin(tokens, mark)
    name = tokens[preceding(tokens, opened)].text
    return GeneratedKernel(
        before=join(tokens[:begin]),
        parameters=tuple(_parameter(piece) for piece in _split(tokens[opened + 1 : closed])),
        template=_template(tokens[begin:mark], _instance(tokens[end + 1 :], name), tokens[begin].line),
        signature_lines=join(tokens[begin : brace + 1]).count("\n"),
        body=join(tokens[brace + 1 : end]),
        lines=text.count("\n") + 1,
    )


def _kernel_mark(tokens: list[Token]) -> int:
    words = [(index, token) for index, token in enumerate(tokens) if not token.blank]
    marks = [
        words[at][0]
        for at in range(len(words) - 4)
        if [token.text for _, token in words[at : at + 5]] == ["[", "[", "kernel", "]", "]"]
    ]
    instances = [at for at in marks if tokens[preceding(tokens, at)].text == "]"]  # after [[host_name("...")]]
    kernels = [at for at in marks if at not in instances]
    if len(kernels) != 1:
        line = tokens[kernels[1]].line if kernels else 1
        raise GeneratedTextError(f"the text has {len(kernels)} kernels; MLX writes one", line)
    return kernels[0]


def _template_begin(tokens: list[Token], mark: int) -> int:
    """Return where ``template <...>`` before the kernel at ``mark`` begins, or ``mark``."""
    closed = preceding(tokens, mark)
    if closed < 0 or tokens[closed].text != ">":
        return mark
    for at in range(closed, -1, -1):
        if tokens[at].text == "template":
            return at
    return mark


def _instance(tokens: list[Token], name: str) -> list[str]:
    """Return the arguments of the instance of the kernel ``name`` that MLX asks for at the end."""
    found: list[str] = []
    for at, token in enumerate(tokens):
        opened = following(tokens, at)
        if token.text == name and opened < len(tokens) and tokens[opened].text == "<":
            found = [_flat(piece) for piece in _split(tokens[opened + 1 : closing(tokens, opened)])]
    return found


def _template(declared: list[Token], arguments: list[str], line: int) -> tuple[str, ...]:
    opened = next((at for at, token in enumerate(declared) if token.text == "<"), None)
    if opened is None:
        return ()
    names = [_flat(piece) for piece in _split(declared[opened + 1 : closing(declared, opened)])]
    if len(names) != len(arguments):
        raise GeneratedTextError(f"{len(names)} template parameters, but {len(arguments)} arguments at the end", line)
    return tuple(_given(name, argument, line) for name, argument in zip(names, arguments, strict=True))


def _given(declared: str, argument: str, line: int) -> str:
    if kind := _TYPE_PARAMETER.fullmatch(declared):
        return f"using {kind['name']} = {argument};"
    if value := _VALUE_PARAMETER.fullmatch(declared):
        return f"constexpr {value['type']} {value['name']} = {argument};"
    raise GeneratedTextError(f"MLX writes no template parameter like '{declared}'", line)


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Split at the commas that stand in no bracket."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{", "<")) - (token.text in (")", "]", "}", ">"))
        if token.text == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if any(not token.blank for token in piece)]


def _flat(tokens: list[Token]) -> str:
    return " ".join("".join(" " if token.blank else token.text for token in tokens).split())


def _parameter(tokens: list[Token]) -> Parameter:
    text = _flat(tokens)
    if buffer := _BUFFER.fullmatch(text):
        return Parameter(buffer["type"], buffer["name"], buffer["how"], buffer["const"] is not None)
    if attribute := _ATTRIBUTE.fullmatch(text):
        return Parameter(attribute["type"], attribute["name"], attribute=attribute["attribute"])
    line = next(token.line for token in tokens if not token.blank)
    raise GeneratedTextError(f"'{text}' is not a parameter as MLX writes them", line)
