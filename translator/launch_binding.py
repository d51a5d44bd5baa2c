"""Launches of the host bound to the kernels' parameters: template arguments deduced, arguments as a plan holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from translator.array_facts import ArrayFacts, BoundStep
from translator.c_types import dtype_of, is_integer, is_real, plain_type
from translator.cuda_source import CudaSource, span_of
from translator.definitions import Definition, last_name, parameter_of
from translator.host_code import HostCode
from translator.host_records import part_of
from translator.host_values import Grid, HostArray, HostStep, Null, Pointer, Real, Record, Tensor, Unread, Value
from translator.launch_plan import (
    Argument,
    ArrayArgument,
    Question,
    ScalarArgument,
    ScalarPlan,
    SizeArgument,
    StructArgument,
    StructMember,
    Triple,
)
from translator.real_numbers import real_value
from translator.size_text import parse_size
from translator.sizes import OPEN_MARK, ZERO, Size, UnreadableSize, floordiv, is_open, name, names_in, render, renders
from translator.struct_types import Part, joined

_FROM_ELSEWHERE = re.compile(r"(?!cuda)[A-Za-z]\w*")
"""A type that a person may have written, and neither CUDA nor a library."""


def type_question(text: str, source: CudaSource, where: Definition) -> Question:
    return Question(text, f"nothing in the source says which type {text} stands for: answer type.{text}, such as float",
                    span_of(where.node), f"type.{text}")  # fmt: skip


def template_value(
    source: CudaSource, host: HostCode, where: Definition, text: str, fixed: str, answers: Mapping[str, str]
) -> Size:
    if answer := answers.get(f"value.{text}", fixed):
        try:
            return parse_size({"true": "1", "false": "0"}.get(answer, answer))
        except UnreadableSize:
            pass
    host.questions.append(
        Question(text, f"nothing in the source says which number {text} stands for: answer value.{text}",
                 span_of(where.node), f"value.{text}")
    )  # fmt: skip
    return name(text)


class Binder:
    """Turns the host's steps into those of a plan."""

    def __init__(self, source: CudaSource, host: HostCode, answers: Mapping[str, str]) -> None:
        self.source, self.host, self.answers = source, host, answers
        self.scalars: dict[str, ScalarPlan] = {}
        self.numbers: dict[tuple[ScalarPlan, str], str] = {}
        self.questions: list[Question] = []

    def ask(self, question: Question) -> None:
        if question not in self.questions:
            self.questions.append(question)

    def bind(self, step: HostStep) -> BoundStep:
        """Match a launch's template parameters and arguments with the kernel's."""
        kernel = step.kernel
        pairs = [
            (*parameter_of(self.source, parameter), step.arguments[at] if at < len(step.arguments) else Null())
            for at, parameter in enumerate(kernel.parameters)
        ]
        types, values, template = self._template(step, pairs)
        step = replace(step, types={**step.types, **types})
        arguments: list[Argument] = []
        arrays: dict[str, tuple[str, Size]] = {}
        for type_text, text, value in pairs:
            resolved = resolved_type(self.host, step.types, type_text)
            if isinstance(value, Record) and "*" not in resolved:
                part = value.made or part_of(self.host, value.type)
                assert part is not None
                held = self._struct(step, text, part, value, values, arrays)
                arguments.append(replace(held, made=value.made is not None))
            else:
                arguments.append(self._plain(step, text, resolved, value, values, arrays))
        return BoundStep(step, template, tuple(arguments), step.types, values, arrays)

    def _plain(
        self, step: HostStep, text: str, resolved: str, value: Value, values: dict[str, Size],
        arrays: dict[str, tuple[str, Size]],
    ) -> Argument:  # fmt: skip
        """Return an array or a number as an argument; ``text`` is the parameter, or a member of one (``p.rows``)."""
        plain = plain_type(resolved)
        if "*" in resolved and (isinstance(value, Null) or value == ZERO):
            return SizeArgument("0")  # a null pointer
        if "*" in resolved or "[" in resolved or isinstance(value, Pointer | Tensor):
            return self._array(step, text, resolved, value, arrays)
        if is_integer(plain) or self._is_enum(plain):
            size = self._size(step, text, value)
            if size is not None:
                values[text] = size
            return SizeArgument("" if size is None else self.shown(size, text, step))
        if is_real(plain):
            return self._scalar(text, plain, value)
        self.ask(Question(text, self._not_followed(step, text, plain, value), step.span))
        return SizeArgument("")

    def _is_enum(self, type_text: str) -> bool:
        return type_text.rpartition("::")[2] in self.host.definitions.enums

    def _not_followed(self, step: HostStep, text: str, plain: str, value: Value) -> str:
        """Say why an argument can't be in a plan, and what to do."""
        here = {*self.host.definitions.structs, *step.kernel.template}
        if _FROM_ELSEWHERE.fullmatch(plain) and plain not in here:
            said = f"'{step.kernel.name}' takes '{text}' as a {plain}, which this source doesn't define"
            return f"{said}: put its definition into the file"
        if isinstance(value, Unread):
            said = f"'{step.kernel.name}' can't be given '{text}': {value.reason}"
        else:
            said = f"'{step.kernel.name}' takes '{text}' as a {plain or 'type'}, which isn't followed"
        return f"{said}: pass pointers, numbers, or a struct of them"

    def _struct(
        self, step: HostStep, path: str, part: Part, record: Record, values: dict[str, Size],
        arrays: dict[str, tuple[str, Size]], whole: bool = False,
    ) -> StructArgument:  # fmt: skip
        """Return a struct by its members; those that no kernel names may be unset, unless functions of it run there."""
        members = []
        struct = self.host.definitions.structs.get(re.sub(r"<.*", "", part.type, flags=re.DOTALL).rpartition("::")[2])
        whole = whole or (struct is not None and bool(struct.methods))
        for member, inner in part.parts:
            here = joined(path, member)
            if not inner.whole:
                held: Argument = self._struct(step, here, inner, record, values, arrays, whole)
                members.append(StructMember(member, inner.type, held))
                continue
            value = record.member(here.partition(".")[2] if "." in here else here) or Null()
            if not whole and not self._named(member if member[:1] != "[" else path.rpartition(".")[2]):
                members.append(StructMember(member, inner.type, SizeArgument("0"), True))
                continue
            argument = self._plain(step, here, self._pointee(step, here, inner.type), value, values, arrays)
            members.append(StructMember(member, inner.type, argument))
        return StructArgument(part.type, tuple(members))

    def _named(self, name: str) -> bool:
        """Whether any function of the device names a member."""
        functions = (*self.source.kernels, *self.source.device_functions)
        pattern = re.compile(rf"(?:\.|->)\s*{re.escape(name)}\b")
        return any(pattern.search(self.source.text, f.span.start, f.span.end) for f in functions)

    def _pointee(self, step: HostStep, path: str, type_text: str) -> str:
        """Return the type of a pointer; that of a ``void*`` is what the kernels cast it to."""
        resolved = resolved_type(self.host, step.types, type_text)
        if plain_type(resolved) != "void":
            return resolved
        name = re.escape(path.rpartition(".")[2])
        cast = re.search(
            rf"(?:_cast\s*<([^<>]*\*)[^<>]*>\s*\(|\(([^()]*\*)[^()*]*\))\s*\w+\s*(?:\.|->)\s*(?:\w+\.)*{name}\b",
            self.source.text,
        )
        return resolved_type(self.host, step.types, cast[1] or cast[2]) if cast else resolved

    def _template(
        self, step: HostStep, pairs: Sequence[tuple[str, str, Value]]
    ) -> tuple[dict[str, str], dict[str, Size], tuple[str, ...]]:
        types: dict[str, str] = {}
        values: dict[str, Size] = {}
        texts: list[str] = []
        kernel = step.kernel
        for at, text in enumerate(kernel.template):
            given = step.template[at] if at < len(step.template) else ""
            if kernel.template_types[at]:
                found = given or self._deduced(text, step, pairs) or kernel.template_defaults[at]
                if not found or found == text:
                    found = self.answers.get(f"type.{text}", "")
                unread = any(isinstance(value, Unread) and plain_type(each) == text for each, _, value in pairs)
                if not found and not unread:  # else what can't be read is asked about
                    self.ask(type_question(text, self.source, kernel))
                types[text] = found or text
                texts.append(types[text])
                continue
            found = given or kernel.template_defaults[at] or self.answers.get(f"value.{text}", "")
            for other, value in values.items():
                found = re.sub(rf"\b{re.escape(other)}\b", str(value), found)
            if (size := self._number(found)) is not None:
                values[text] = size
            elif not self._is_function(found):
                key = f"value.{found if found in self.host.env else text}"
                said = f"which number {text} of '{kernel.name}' stands for isn't known: answer {key}"
                self.ask(Question(text, said, step.span, key))
                values[text] = name(OPEN_MARK + text)
            kind = kernel.template_kinds[at] if at < len(kernel.template_kinds) else ""
            number = size.constant if size is not None else None
            texts.append(f"{kind}({number})" if number is not None and self._is_enum(kind) else found or text)
        return types, values, tuple(texts)

    def _is_function(self, argument: str) -> bool:
        """Whether a template argument is a function of the device, which the writer puts in."""
        named = self.host.definitions.functions.get(last_name(argument), [])
        return any(not definition.host for definition in named)

    def _number(self, argument: str) -> Size | None:
        """Return a template argument that is a number, over axes; None when that isn't known."""
        try:
            size = parse_size({"true": "1", "false": "0"}.get(argument, argument))
        except UnreadableSize:
            return None
        return size if not isinstance(self.host.env.get(argument), Unread) else None

    def _deduced(self, text: str, step: HostStep, pairs: Sequence[tuple[str, str, Value]]) -> str:
        for type_text, _, value in pairs:
            if plain_type(type_text) != text:
                continue
            if isinstance(value, Pointer) and "*" in type_text:
                array = self.host.arrays.get(value.array)
                found = plain_type(resolved_type(self.host, step.types, value.type or (array.type if array else "")))
                if found and found != "void":
                    return found
            if isinstance(value, Record):
                return value.type
            if isinstance(value, Real):
                return value.type
            if isinstance(value, Size):
                return "int"
        return ""

    def _array(
        self, step: HostStep, text: str, resolved: str, value: Value, arrays: dict[str, tuple[str, Size]]
    ) -> ArrayArgument:
        pointee = " ".join(resolved.replace("*", " ").split())
        if isinstance(value, Tensor):
            value = Pointer(value.array, pointee)
        if not isinstance(value, Pointer):
            reason = getattr(value, "reason", "it isn't an array")
            self.ask(
                Question(text, f"which array '{step.kernel.name}' gets as '{text}' can't be read: {reason}", step.span)
            )
            value = Pointer(text, pointee)
        array = self.host.arrays.setdefault(value.array, HostArray(value.array, ""))
        own = resolved_type(self.host, step.types, array.type)
        if not dtype_of(own):
            array.type = pointee
        else:
            array.type = own
        arrays[text] = (value.array, value.offset)
        item = ArrayFacts.item_bytes(array.type)
        try:
            offset = floordiv(value.offset, item)
        except UnreadableSize:
            offset = ZERO
        return ArrayArgument(value.array, self.shown(offset, text, step))

    def _size(self, step: HostStep, text: str, value: Value) -> Size | None:
        if isinstance(value, Size):
            return value
        reason = getattr(value, "reason", "it is no integer")
        held = re.match(r"'(\w+)'", reason)
        key = f"value.{held[1]}" if held and held[1] in self.host.env else ""
        if asked := re.search(r": answer (value\.\w+)\Z", reason):
            key, reason = asked[1], reason[: asked.start()]
        self.ask(Question(text, f"what '{step.kernel.name}' gets as '{text}' can't be read: {reason}"
                          + (f". Answer {key}" if key else ""), step.span, key))  # fmt: skip
        return None

    def _scalar(self, text: str, plain: str, value: Value) -> ScalarArgument:
        constants = {key: self.source.text_of(node) for key, node in self.host.definitions.constants.items()}
        constants.update(self.host.definitions.macros)
        plain_text = re.sub(r"\W+", "_", text).strip("_")
        known, written = plain_text, ""
        if isinstance(value, Real):
            known, written = value.name or known, value.text
        elif isinstance(value, Unread):
            written = self.source.text[value.span.start : value.span.end]
        elif isinstance(value, Size):
            written = str(value) if value.constant is None else str(float(value.constant))
        shown = real_value(written, constants)
        shown = self.answers.get(f"scalar.{known}", shown)
        if known in self.host.arrays or known in self.host.axes:
            known = f"{known}_{plain_text}" if plain_text != known else f"{known}_value"
        plan = ScalarPlan(known, dtype_of(plain), shown)
        if (same := self.numbers.get((plan, written))) is not None:
            return ScalarArgument(same)
        if known in self.scalars:  # another number of this name, such as a rate that the host has changed since
            own = f"{known}_{plain_text}"
            known = own if own not in self.scalars else f"{known}_{len(self.scalars)}"
        self.numbers[plan, written] = known
        self.scalars[known] = replace(plan, name=known)
        return ScalarArgument(known)

    def shown(self, size: Size, what: str, step: HostStep) -> str:
        """Return a size as text; ask when it is none that a plan can hold."""
        if renders(size):
            return render(size, self.host.axes)
        if is_open(size):
            return ""  # what it depends on is asked for
        types = sorted({match[1] for text in names_in(size) if (match := re.fullmatch(r"sizeof\((\w+)\)", text))})
        if types:
            self.ask(Question(types[0], f"how large {types[0]} is isn't known: answer type.{types[0]}", step.span,
                              f"type.{types[0]}"))  # fmt: skip
        else:
            key = what if what in ("grid", "block", "shared") else ""
            said = f"'{what}' of '{step.kernel.name}' is {size}, which a plan can't say"
            self.ask(Question(what, f"{said}: answer {key}" if key else said, step.span, key))
        return ""

    def triple(self, grid: Grid, what: str, step: HostStep) -> Triple:
        shown = tuple(self.shown(size, what, step) for size in (grid.x, grid.y, grid.z))
        return (shown[0], shown[1], shown[2])


def resolved_type(host: HostCode, types: Mapping[str, str], type_text: str) -> str:
    held, host.types = host.types, dict(types)
    found = host.resolved(type_text)
    host.types = held
    return found
