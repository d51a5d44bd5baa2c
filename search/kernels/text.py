"""A program as one editable Metal file, and back.

Launch facts stand in ``//@`` lines, so that the file highlights as Metal in any editor::

    //@ buffer partial [rows, 4] float32
    //@ pass softmax
    //@ inputs x
    //@ outputs y
    //@ grid 32, rows, 1
    //@ threadgroup 32, 1, 1
    //@ template T = T, N = n
    //@ init 0
    //@ atomic_outputs
    //@ header
    inline float twice(float x) { return 2 * x; }
    //@ source
    y[thread_position_in_grid.x] = twice(x[thread_position_in_grid.x]);

``grid`` counts threads; ``init`` is the value that every output begins with, and ``atomic_outputs`` makes outputs
atomic. A line of the kernel that begins with ``//@`` itself has that twice. A file without any ``//@`` line can't be
launched and is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from search.kernels.dtypes import DTYPES
from search.kernels.expressions import ExpressionError, parse
from search.kernels.program import Buffer, Pass, Program, ProgramError, TemplateValue, Triple

_MARK = "//@"
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_BUFFER = re.compile(r"(\w+)\s*\[(.*)\]\s*(\w+)\Z")
_EXACT = 2**53
_BOOLS: dict[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class ParsedProgram:
    """A program and, for each pass name, the file lines (from 1) before the first line of its source and its header."""

    program: Program
    source_offsets: dict[str, int]
    header_offsets: dict[str, int]


@dataclass
class _Draft:
    """A pass as far as it has been read: its directives by key and the lines of its two texts."""

    name: str
    line: int
    directives: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=lambda: {"header": [], "source": []})
    starts: dict[str, int] = field(default_factory=lambda: {"header": 0, "source": 0})


def program_to_text(program: Program) -> str:
    """Return ``program`` as an editable file; `program_from_text` gives the same program back."""
    lines = [f"{_MARK} buffer {b.name} [{', '.join(b.shape)}] {b.dtype}" for b in program.buffers]
    for step in program.passes:
        lines += [
            f"{_MARK} pass {step.name}",
            f"{_MARK} inputs {', '.join(step.inputs)}",
            f"{_MARK} outputs {', '.join(step.outputs)}",
            f"{_MARK} grid {'; '.join(step.grid)}",
            f"{_MARK} threadgroup {'; '.join(step.threadgroup)}",
        ]
        if step.template:
            pairs = "; ".join(f"{name} = {_spell(value)}" for name, value in step.template)
            lines.append(f"{_MARK} template {pairs}")
        if step.init_value is not None:
            lines.append(f"{_MARK} init {spell_number(step.init_value)}")
        if step.atomic_outputs:
            lines.append(f"{_MARK} atomic_outputs")
        if step.header:
            lines += [f"{_MARK} header", _masked(step.header)]
        lines += [f"{_MARK} source", _masked(step.source)]
    return "\n".join(lines) + "\n"


def _masked(text: str) -> str:
    """Return a kernel's text with its own lines that read like launch facts told apart, by another mark before them."""
    return re.sub(rf"(?m)^{_MARK}", _MARK * 2, text)


def spell_number(value: float) -> str:
    """Return ``value`` as it stands in the file: ``0``, ``0.5``, ``-inf``."""
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def program_from_text(text: str) -> Program:
    """Return the program that ``text`` describes; raise `ProgramError` naming the line of a mistake."""
    return parse_program_text(text).program


def parse_program_text(text: str) -> ParsedProgram:
    """Like `program_from_text`, and say where in the file each pass's texts begin."""
    buffers: list[Buffer] = []
    drafts: list[_Draft] = []
    part = ""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        own = part and line.startswith(_MARK * 2)
        if own or not line.startswith(_MARK):
            if part:
                drafts[-1].texts[part].append(line.removeprefix(_MARK) if own else line)
            elif line.strip() and not line.strip().startswith("//"):
                raise ProgramError(
                    f"line {number}: expected a '{_MARK}' line such as '{_MARK} source' before the kernel"
                )
            continue
        key, _, rest = line.removeprefix(_MARK).strip().partition(" ")
        rest = rest.strip()
        part = ""
        if key == "buffer":
            buffers.append(_buffer(rest, number))
        elif key == "pass":
            drafts.append(_Draft(_identifier(rest, number), number))
        elif not drafts:
            raise ProgramError(f"line {number}: '{_MARK} {key}' stands before the first '{_MARK} pass NAME'")
        elif key in ("header", "source"):
            part = key
            drafts[-1].starts[key] = number
        elif key == "atomic_outputs" and rest:
            raise ProgramError(f"line {number}: '{_MARK} atomic_outputs' stands alone; it holds for all outputs")
        elif key in ("inputs", "outputs", "grid", "threadgroup", "template", "init", "atomic_outputs"):
            drafts[-1].directives[key] = rest
        else:
            raise ProgramError(f"line {number}: unknown directive '{_MARK} {key}'")
    if not drafts:
        raise ProgramError(
            f"there is no '{_MARK} pass NAME' line; `ksearch-tui check --help` shows the form of the file"
        )
    names = [draft.name for draft in drafts]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ProgramError(f"two passes are called '{min(repeated)}'")
    return ParsedProgram(
        Program(tuple(_pass(draft) for draft in drafts), tuple(buffers)),
        {draft.name: draft.starts["source"] for draft in drafts},
        {draft.name: draft.starts["header"] for draft in drafts},
    )


def _pass(draft: _Draft) -> Pass:
    where = f"pass '{draft.name}' (line {draft.line})"
    for key in ("outputs", "grid", "threadgroup"):
        if not draft.directives.get(key):
            raise ProgramError(f"{where}: '{_MARK} {key}' is missing")
    source = "\n".join(draft.texts["source"])
    if not source.strip():
        raise ProgramError(f"{where}: '{_MARK} source' is missing or empty")
    return Pass(
        name=draft.name,
        inputs=_names(draft.directives.get("inputs", ""), where),
        outputs=_names(draft.directives["outputs"], where),
        source=source,
        grid=_triple(draft.directives["grid"], f"{where} grid"),
        threadgroup=_triple(draft.directives["threadgroup"], f"{where} threadgroup"),
        header="\n".join(draft.texts["header"]),
        template=_template(draft.directives.get("template", ""), where),
        init_value=_initial(draft.directives["init"], where) if "init" in draft.directives else None,
        atomic_outputs="atomic_outputs" in draft.directives,
    )


def _initial(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProgramError(f"{where}: '{_MARK} init' needs a number such as 0 or -inf, not '{text}'") from None


def _identifier(text: str, number: int) -> str:
    if not _IDENTIFIER.match(text):
        raise ProgramError(f"line {number}: '{text}' is no name")
    return text


def _names(text: str, where: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in found:
        if not _IDENTIFIER.match(name):
            raise ProgramError(f"{where}: '{name}' is no name")
    return found


def _expression(text: str, where: str) -> str:
    try:
        parse(text)
    except ExpressionError as error:
        raise ProgramError(f"{where}: {error}") from error
    return text


def _split(text: str) -> list[str]:
    """Split at ``;``, or at commas outside parentheses where there is no ``;``."""
    if ";" in text:
        return [part.strip() for part in text.split(";")]
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _triple(text: str, where: str) -> Triple:
    parts = [_expression(part, where) for part in _split(text)]
    if len(parts) > 3:
        raise ProgramError(f"{where}: there are {len(parts)} sizes; at most three are allowed")
    x, y, z = (*parts, "1", "1")[:3]
    return x, y, z


def _template(text: str, where: str) -> tuple[tuple[str, TemplateValue], ...]:
    pairs: list[tuple[str, TemplateValue]] = []
    for part in _split(text) if text else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not _IDENTIFIER.match(name):
            raise ProgramError(f"{where}: '{part}' is no template argument; write 'NAME = VALUE'")
        if value in _BOOLS:
            pairs.append((name, _BOOLS[value]))
        elif value.lstrip("-").isdigit():
            pairs.append((name, int(value)))
        else:
            pairs.append((name, value if value in DTYPES else _expression(value, where)))
    return tuple(pairs)


def _buffer(text: str, number: int) -> Buffer:
    match = _BUFFER.match(text)
    if match is None:
        raise ProgramError(f"line {number}: write '{_MARK} buffer NAME [shape, ...] DTYPE'")
    name, shape, dtype = match.groups()
    return Buffer(name, tuple(_expression(extent, f"line {number}") for extent in _split(shape)), dtype)


def _spell(value: TemplateValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
