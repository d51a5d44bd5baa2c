"""What is known while a host function is followed: the values of its variables, its arrays, the launches so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tree_sitter import Node

from translator.c_types import ITEM_BYTES, plain_type
from translator.cuda_source import CudaSource, shorten, span_of
from translator.definitions import Definitions, expand
from translator.host_values import (
    Grid,
    HostArray,
    HostStep,
    Record,
    Unread,
    Value,
    replaced,
    replaced_grid,
    split_path,
)
from translator.launch_plan import Question
from translator.named_sizes import Instance, named_size, resolved_type
from translator.requirements import Requirement
from translator.size_text import parse_size
from translator.sizes import Size, UnreadableSize, name, names_in, number
from translator.substitution import substitute


@dataclass(frozen=True)
class Following:
    """How the parts that need each other go on: statements, expressions, calls in sizes, dimensions of tensors, calls
    that give structs, conditions by which different launches are made.
    """

    statement: Callable[[HostCode, Node | None], bool]
    expression: Callable[[HostCode, Node], None]
    call: Callable[[HostCode, str, Sequence[Node]], Size]
    dimension: Callable[[HostCode, str, int], Size]
    record: Callable[[HostCode, Node], Value | None]
    way: Callable[[HostCode, Node, Node | None], bool]


class HostCode:
    """Follows one host function; a `Scope` for its expressions."""

    def __init__(
        self,
        source: CudaSource,
        definitions: Definitions,
        kernel: str | None,
        answers: Mapping[str, str],
        following: Following,
    ) -> None:
        self.source, self.text, self.following = source, source.text, following
        self.definitions, self.wanted, self.answers = definitions, kernel, answers
        self.env: dict[str, Value] = {}
        self.types: dict[str, str] = {}
        self.declared: dict[str, str] = {}
        self.axes: list[str] = []
        self.given: dict[str, int] = {}
        self.arrays: dict[str, HostArray] = {}
        self.steps: list[HostStep] = []
        self.requires: list[Requirement] = []
        self.questions: list[Question] = []
        self.choices: list[Question] = []
        self.symbols: list[str] = []
        self.equal: dict[str, Size] = {}
        self.pointers: dict[str, list[Node]] = {}
        self.between: dict[str, tuple[str, Node]] = {}
        self.flags: list[str] = []
        self.leaving = ""
        self.launched: dict[tuple[int, int], frozenset[str]] = {}
        self.dimensions: dict[str, int] = {}
        self.sizes: dict[tuple[str, int], Size] = {}
        self.numels: dict[str, Size] = {}
        self.likes: dict[str, str] = {}
        self.loose: frozenset[str] = frozenset()
        self.instance: Instance | None = None
        self.nested = self.named = 0
        self.lookups: Iterator[int] = count()
        self.returns = ""
        self.returned: Value | None = None

    def name(self, text: str) -> Size:
        value = self.env.get(text)
        if isinstance(value, Size):
            return value
        if isinstance(value, Unread):
            raise UnreadableSize(value.reason)
        if value is not None:
            raise UnreadableSize(f"'{text}' is no integer")
        found = named_size(text, self)
        if text in self.loose and found.constant is not None and self._is_example(text):
            self.given[text] = found.constant
            found = self.env[text] = self.axis(text)
        return found

    def _is_example(self, text: str) -> bool:
        """Whether a constant that a driver passes to kernels is only an example of a size: no kernel names it."""
        functions = (*self.source.kernels, *self.source.device_functions)
        named = re.compile(rf"\b{text}\b")
        return not any(named.search(self.source.text, f.span.start, f.span.end) for f in functions) and not re.search(
            rf"(?<!<)<[^<>;]*\b{text}\b[^<>;]*>(?!>)", self.source.text
        )

    def run(self, node: Node | None) -> bool:
        """Follow a statement; return whether the function ends with it."""
        return self.following.statement(self, node)

    def run_expression(self, node: Node) -> None:
        """Follow an expression for what it changes."""
        self.following.expression(self, node)

    def within(self, text: str) -> HostCode:
        other = object.__new__(HostCode)
        other.__dict__ = dict(self.__dict__)
        other.text = text
        return other

    def macro(self, called: str, arguments: Sequence[str]) -> str | None:
        return expand(self.definitions, called, arguments)

    def type_bytes(self, text: str) -> Size:
        if match := re.fullmatch(r"\*\s*(\w+)|(\w+)\s*\[\s*\w+\s*\]", text):
            text = self.declared.get(match[1] or match[2], text).replace("*", "", 1)
        text = self.resolved(self.declared.get(text, text))
        if "*" in text:
            return number(8)
        plain = plain_type(text)
        if plain in ITEM_BYTES:
            return number(ITEM_BYTES[plain])
        if re.fullmatch(r"[A-Za-z_][\w:]*", plain):
            return name(f"sizeof({plain})")
        raise UnreadableSize(f"how large '{shorten(text, 40)}' is isn't known")

    def call(self, called: str, arguments: Sequence[Node], node: Node) -> Size:
        return self.following.call(self, called, arguments)

    def member(self, node: Node) -> Size:
        text = "".join(self.of(node).split())
        object_, _, part = text.rpartition(".")
        value = self.env.get(object_)
        if isinstance(value, Grid) and part in ("x", "y", "z"):
            return {"x": value.x, "y": value.y, "z": value.z}[part]
        if isinstance(self.env.get(text), Size):
            return self.name(text)
        field = self.field(text)
        if isinstance(field, Size):
            return field
        if isinstance(field, Unread):
            raise UnreadableSize(field.reason)
        if match := re.fullmatch(r"(\w+)\.(?:sizes\(\)|shape)\[(-?\d+)\]", text):
            return self.following.dimension(self, match[1], int(match[2]))
        raise UnreadableSize(f"the source doesn't say what '{shorten(text, 40)}' is")

    def field(self, text: str) -> Value | None:
        """Return the member that ``p.dims.rows`` or ``p->rows`` names, None when it is none of a struct."""
        name, path = split_path(text)
        record = self.env.get(name)
        if isinstance(record, Record) and record.made is not None and path:
            return Unread(f"'{shorten(text, 40)}' is what a constructor makes of it", span_of(self.source.root))
        return record.member(path) if isinstance(record, Record) and path else None

    def of(self, node: Node | None) -> str:
        """Return a node's text."""
        return "" if node is None else self.text[node.start_byte : node.end_byte]

    def _put(self, values: Mapping[str, Size]) -> None:
        """Replace names by sizes in everything that is held."""
        self.env = {text: replaced(value, values) for text, value in self.env.items()}
        self.sizes = {key: substitute(size, values) for key, size in self.sizes.items()}
        self.numels = {key: substitute(size, values) for key, size in self.numels.items()}
        for array in self.arrays.values():
            array.bytes = substitute(array.bytes, values) if array.bytes is not None else None
            array.items = substitute(array.items, values) if array.items is not None else None
            array.moved = substitute(array.moved, values) if array.moved is not None else None
        self.requires = [
            (kind, substitute(size, values) if kind != "equal" else size, substitute(other, values))
            for kind, size, other in self.requires
        ]
        self.steps = [
            replace(
                step,
                grid=replaced_grid(step.grid, values), block=replaced_grid(step.block, values),
                shared=substitute(step.shared, values),
                arguments=tuple(replaced(argument, values) for argument in step.arguments),
            )
            for step in self.steps
        ]  # fmt: skip

    def axis(self, text: str) -> Size:
        """Return a new axis of this name."""
        if text in self.equal:
            return self.equal[text]
        if text not in self.axes:
            self.axes.append(text)
        return name(text)

    def _named(self, axis: str) -> bool:
        """Whether the source has a variable of this name."""
        return axis in self.declared or axis in self.env

    def fix(self, text: str, size: Size) -> None:
        """Hold an axis to one value from here on, and in what was read so far."""
        self.equal[text] = size
        self._put({text: size})
        if text in self.axes:
            self.axes.remove(text)

    def answer_size(self, text: str) -> Size:
        """Return a person's answer as a size, its names as axes; raise `UnreadableSize` when it is none."""
        size = parse_size(text)
        for used in sorted(names_in(size)):
            self.axis(used)
        return size

    def resolved(self, type_text: str) -> str:
        """Return a type with the names of template parameters and aliases replaced."""
        return resolved_type(type_text, self)

    def ask(self, about: str, message: str, node: Node, answer: str = "") -> None:
        self.questions.append(Question(about, message, span_of(node), answer))
