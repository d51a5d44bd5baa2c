"""What the model that writes kernels may say: a program, a comment, and how it followed the person's guidance.

A program comes as JSON, or in the text form of `search.kernels.text` as one ```metal block: Metal within JSON strings
is hard for small models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from search.kernels.program import Buffer, Pass, Program, ProgramError, Triple
from search.kernels.text import parse_program_text
from search.proposers.llm.replies import check_followed
from search.proposers.llm.reply_faults import checked
from search.proposers.llm.reply_fields import (
    SAID,
    DTypeName,
    Followed,
    Header,
    InitValue,
    Name,
    Said,
    Size,
    Source,
    Strict,
    TemplateArgument,
)
from search.proposers.llm.reply_text import MalformedReply, answer_in, blocks_in, object_in

_LABEL = re.compile(r"^[\s*_#>-]*(comment|followed)[\s*_]*:[\s*_]*", re.IGNORECASE)


class BufferReply(Strict):
    """An array between two passes."""

    name: Name
    shape: Annotated[tuple[Size, ...], Field(min_length=1, max_length=6)]
    dtype: DTypeName


class TemplateReply(Strict):
    """A template argument."""

    name: Name
    value: TemplateArgument


class PassReply(Strict):
    """One kernel and its launch; fields as in `search.kernels.program.Pass`."""

    name: Name
    inputs: Annotated[tuple[Name, ...], Field(max_length=32)]
    outputs: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    grid: Annotated[tuple[Size, ...], Field(min_length=1, max_length=3)]
    threadgroup: Annotated[tuple[Size, ...], Field(min_length=1, max_length=3)]
    template: Annotated[tuple[TemplateReply, ...], Field(max_length=32)] = ()
    header: Header = ""
    source: Source
    init_value: InitValue = None
    atomic_outputs: bool = False


class ProgramReply(Strict):
    """A program, and what its author says of it."""

    passes: Annotated[tuple[PassReply, ...], Field(min_length=1, max_length=8)]
    buffers: Annotated[tuple[BufferReply, ...], Field(max_length=8)] = ()
    comment: Said
    followed: Followed = ""

    @model_validator(mode="after")
    def _passes_differ(self) -> Self:
        names = [step.name for step in self.passes]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two passes are called {twice}; give each its own name")
        return self

    def program(self) -> Program:
        """Return the program."""
        return Program(
            tuple(_pass(step) for step in self.passes),
            tuple(Buffer(buffer.name, tuple(map(str, buffer.shape)), buffer.dtype) for buffer in self.buffers),
        )


@dataclass(frozen=True)
class WrittenProgram:
    """A program as a model gave it, its comment, and how it says it followed the person's guidance."""

    program: Program
    comment: str
    followed: str


def read_program(text: str, guided: bool = False) -> WrittenProgram:
    """Return a reply to ``write``, ``repair`` or ``improve``; ``guided``: it must say how it followed the guidance.

    Raises `MalformedReply`. That the program can be launched is the evaluation's to say.
    """
    answer = answer_in(text)
    blocks, outside = blocks_in(answer) if not answer.startswith("{") else ([], "")
    programs = [block for block in blocks if block.is_program]
    if not programs:
        reply = checked(ProgramReply, object_in(answer))
        written = WrittenProgram(reply.program(), reply.comment, reply.followed)
    elif len(programs) > 1:
        raise MalformedReply(f"The reply has {len(programs)} programs; give one, whole, in one ```metal block.")
    elif any(block.is_json for block in blocks):
        raise MalformedReply("The reply has a JSON block and a ```metal block; give one, with everything in it.")
    elif not programs[0].closed:
        raise MalformedReply("The ```metal block has no end: the reply was cut off, or the closing ``` is missing.")
    else:
        written = _in_text_form(programs[0].text, outside)
    check_followed(written.followed, guided)
    return written


def _in_text_form(metal: str, outside: str) -> WrittenProgram:
    """Return the program of a block; it must be one that could have been given as JSON."""
    try:
        program = parse_program_text(metal).program
    except ProgramError as error:
        raise MalformedReply(f"The ```metal block does not read: {error}.") from None
    said = _labelled(outside)
    fields = {
        "passes": [_fields(step) for step in program.passes],
        "buffers": [{"name": b.name, "shape": b.shape, "dtype": b.dtype} for b in program.buffers],
        "comment": said.get("comment", said[""])[:SAID],
        "followed": said.get("followed", "")[:SAID],
    }
    reply = checked(ProgramReply, fields)
    return WrittenProgram(reply.program(), reply.comment, reply.followed)


def _fields(step: Pass) -> Mapping[str, Any]:
    initial = step.init_value
    return {
        "name": step.name,
        "inputs": step.inputs,
        "outputs": step.outputs,
        "grid": step.grid,
        "threadgroup": step.threadgroup,
        "template": [{"name": name, "value": value} for name, value in step.template],
        "header": step.header,
        "source": step.source,
        "init_value": str(initial) if initial in (float("inf"), float("-inf")) else initial,
        "atomic_outputs": step.atomic_outputs,
    }


def _labelled(text: str) -> dict[str, str]:
    """Return the prose around a block by its label, ``Comment:`` or ``Followed:``; what has none is under ""."""
    found: dict[str, list[str]] = {"": []}
    label = ""
    for line in text.split("\n"):
        printable = "".join(c if c.isprintable() else " " for c in line)
        if start := _LABEL.match(printable):
            label, printable = start[1].lower(), printable[start.end() :]
        found.setdefault(label, []).append(printable)
    return {label: " ".join(" ".join(lines).split()) for label, lines in found.items()}


def _pass(step: PassReply) -> Pass:
    return Pass(
        name=step.name,
        inputs=step.inputs,
        outputs=step.outputs,
        source=step.source,
        grid=_triple(step.grid),
        threadgroup=_triple(step.threadgroup),
        header=step.header,
        template=tuple((argument.name, argument.value) for argument in step.template),
        init_value=None if step.init_value is None else float(step.init_value),
        atomic_outputs=step.atomic_outputs,
    )


def _triple(sizes: tuple[int | str, ...]) -> Triple:
    x, y, z = (*map(str, sizes), "1", "1")[:3]
    return x, y, z
