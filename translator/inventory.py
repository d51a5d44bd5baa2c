"""Which primitives stand where in a CUDA source, how much of it Metal has a counterpart for, what patterns it shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Node

from translator.bodies import Bodies, enclosing, read_bodies
from translator.cuda_source import CudaSource, shorten, span_of
from translator.patterns import PATTERNS, find_forms
from translator.primitives import Primitive, load_primitives
from translator.span import Span
from translator.structures import find_atomics, find_structures

__all__ = ["PATTERNS", "Inventory", "Occurrence", "take_inventory"]

HOST_CATEGORIES = ("launch", "host")
"""Categories that are looked for in functions of the host, too."""

ABSORBING = {
    "object": ("expression", "object"),
    "scope": ("call", "scope"),
    "call": ("atomic",),
    "type": ("cast",),
    "token": ("declaration", "asm"),
}
"""Matches that a match of the key's kind may be part of; it doesn't count then: ``threadIdx.x`` in a global index."""

LONGEST_EXPRESSION = 80
LONGEST_HINT = 48

_NAMES = ("identifier", "type_identifier", "primitive_type", "sized_type_specifier")
_FORMS = ("call_expression", "field_expression", "qualified_identifier", "binary_expression", "cast_expression",
          "template_function", "gnu_asm_expression", "preproc_call")  # fmt: skip
_CALLED = ("identifier", "qualified_identifier", "template_function")
_NOT_IN_EXPRESSION = str.maketrans("", "", " \t\r\n()")


@dataclass(frozen=True)
class Occurrence:
    """A primitive at one place: ``text`` is ``source.text[start:end]``; line and column count from 1."""

    primitive: Primitive
    line: int
    column: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Inventory:
    """What stands in one source, in the order of its text."""

    source: CudaSource
    occurrences: tuple[Occurrence, ...]
    patterns: Mapping[str, Span]

    @property
    def coverage(self) -> float:
        """The share of GPU primitives, counted by occurrence, that are direct or an idiom.

        Calls of the host and what is simply dropped count neither way; a source without any primitive is covered.
        """
        counted = [o for o in self.occurrences if o.primitive.category != "host" and o.primitive.kind != "drop"]
        covered = sum(o.primitive.kind in ("direct", "idiom") for o in counted)
        return covered / len(counted) if counted else 1.0

    def hints(self) -> dict[str, str]:
        """Return, for each pattern of `PATTERNS` that the source shows, where: ``flash.cu:41 __shfl_xor_sync``."""
        name = Path(self.source.path).name
        hints = {}
        for pattern, span in self.patterns.items():
            hints[pattern] = f"{name}:{span.line} {shorten(self.source.text[span.start : span.end], LONGEST_HINT)}"
        return hints


def take_inventory(source: CudaSource) -> Inventory:
    """Find every primitive of the table and every pattern in a source. Comments and strings are never looked at."""
    host = sorted(source.host_functions, key=lambda span: span.start)
    found: list[tuple[Span, Primitive]] = []
    for node in source.nodes:
        if (kind := node.type) in _table().kinds:
            found.extend(_matches(source, node, kind))
    bodies = read_bodies(source)
    found.extend(_forms(source, bodies))
    found = _without_absorbed([match for match in found if _counts(host, *match)])
    occurrences = [
        Occurrence(primitive, span.line, span.column, span.start, span.end, source.text[span.start : span.end])
        for span, primitive in found
    ]
    shown = find_forms(source, bodies)
    for span, primitive in found:
        if primitive.pattern and (primitive.pattern not in shown or span.start < shown[primitive.pattern].start):
            shown[primitive.pattern] = span
    return Inventory(source, tuple(occurrences), {name: shown[name] for name in PATTERNS if name in shown})


class _Table:
    """The rows of the table by how they match, in its order."""

    def __init__(self, primitives: tuple[Primitive, ...]) -> None:
        self.words: dict[str, dict[str, list[Primitive]]] = defaultdict(lambda: defaultdict(list))
        self.expressions: dict[str, list[tuple[re.Pattern[str], Primitive]]] = defaultdict(list)
        for primitive in primitives:
            for word in primitive.words:
                if primitive.match in ("asm", "expression"):
                    self.expressions[primitive.match].append((re.compile(word, re.DOTALL), primitive))
                else:
                    self.words[primitive.match][word].append(primitive)
        self.kinds = frozenset((*_NAMES, *_FORMS, *self.words["node"], *self.words["token"]))

    def word(self, match: str, word: str) -> Primitive | None:
        """Return the first row that matches a word."""
        rows = self.words[match].get(word)
        return rows[0] if rows else None

    def call(self, name: str, arguments: int) -> Primitive | None:
        """Return the first row that matches a call: the qualified name before its last part, rows for calls first."""
        for candidate in dict.fromkeys((name, name.rpartition("::")[2])):
            for primitive in self.words["call"].get(candidate, ()):
                if primitive.arguments[0] <= arguments <= primitive.arguments[1]:
                    return primitive
        return self.word("type", name.rpartition("::")[2])


@cache
def _table() -> _Table:
    return _Table(load_primitives())


def _matches(source: CudaSource, node: Node, kind: str) -> Iterator[tuple[Span, Primitive]]:
    """Yield what one node of the tree, of one of the table's kinds, says."""
    table = _table()
    primitive: Primitive | None = None
    if kind in _NAMES:
        if kind == "identifier":
            text = source.text_of(node)
            if (primitive := table.word("name", text)) or (primitive := table.word("object", text)):
                yield span_of(node), primitive
        elif primitive := table.word("type", " ".join(source.text_of(node).split())):
            yield span_of(node), primitive
    elif kind == "call_expression":
        yield from _call(source, node)
    elif kind == "field_expression":
        object_, member = node.children[0], node.children[-1]
        if object_.type == "identifier" and (primitive := table.word("object", source.text_of(object_))):
            yield span_of(node), primitive
        if member.type == "field_identifier" and (primitive := table.word("field", source.text_of(member))):
            yield span_of(member), primitive
    elif kind == "qualified_identifier":
        scope = node.child_by_field_name("scope")
        if scope is not None and (primitive := table.word("scope", source.text_of(scope))):
            yield _until(span_of(node), _last_name(node)), primitive
    elif kind == "binary_expression":
        if node.end_byte - node.start_byte <= LONGEST_EXPRESSION:
            text = source.text_of(node).translate(_NOT_IN_EXPRESSION)
            for pattern, primitive in table.expressions["expression"]:
                if pattern.fullmatch(text):
                    yield span_of(node), primitive
                    return
    elif kind in ("cast_expression", "template_function"):
        yield from _cast(source, node)
    elif kind == "gnu_asm_expression":
        code = node.child_by_field_name("assembly_code")
        text = source.text_of(code) if code is not None else ""
        for pattern, primitive in table.expressions["asm"]:
            if pattern.search(text):
                yield span_of(node), primitive
                return
    elif kind == "preproc_call":
        directive = source.text_of(node).split()
        if directive[:1] == ["#pragma"] and (primitive := table.word("pragma", "".join(directive[1:2]))):
            span = span_of(node)
            yield Span(span.start, span.start + len(source.text_of(node).rstrip()), span.line, span.column), primitive
    elif primitive := table.word("node", kind) or (None if node.is_named else table.word("token", kind)):
        yield span_of(node), primitive


def _call(source: CudaSource, node: Node) -> Iterator[tuple[Span, Primitive]]:
    """Yield a call of a function by name, which a launch and a call of an object's member are not."""
    function = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    launch = any(child.type == "kernel_call_syntax" for child in node.children)
    if function is None or arguments is None or launch or function.type not in _CALLED:
        return
    span = _until(span_of(function), _last_name(function))
    if span.end - span.start <= LONGEST_EXPRESSION:
        name = re.sub(r"<[^<>]*>|\s", "", source.text[span.start : span.end])
        if primitive := _table().call(name, arguments.named_child_count):
            yield span, primitive


def _cast(source: CudaSource, node: Node) -> Iterator[tuple[Span, Primitive]]:
    """Yield a cast to a vector pointer: ``reinterpret_cast<const float4*>`` or ``(const float4*)``."""
    span = span_of(node)
    if node.type == "cast_expression":
        target = node.child_by_field_name("type")
        if target is not None:
            span = Span(span.start, target.end_byte + 1, span.line, span.column)
    else:
        name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
        if name is None or arguments is None or not source.text_of(name).endswith("_cast"):
            return
        target = next((child for child in arguments.named_children if child.type == "type_descriptor"), None)
    if target is None or (declarator := target.child_by_field_name("declarator")) is None:
        return
    named = target.child_by_field_name("type")
    primitive = _table().word("cast", source.text_of(named)) if named is not None else None
    if primitive and declarator.type == "abstract_pointer_declarator":
        yield span, primitive


def _last_name(node: Node) -> Node:
    """Return the name at the end of a possibly qualified, possibly templated name."""
    while node.type in ("qualified_identifier", "template_function", "template_type", "dependent_name"):
        inner = node.child_by_field_name("name")
        if inner is None:
            break
        node = inner
    return node


def _until(span: Span, last: Node) -> Span:
    return Span(span.start, max(last.end_byte, span.start), span.line, span.column)


def _forms(source: CudaSource, bodies: Bodies) -> Iterator[tuple[Span, Primitive]]:
    """Yield declarations, launches and structures, which the parsed source lists already."""
    table = _table()

    def row(match: str, word: str, span: Span) -> Iterator[tuple[Span, Primitive]]:
        if primitive := table.word(match, word):
            yield span, primitive

    for declaration in source.declarations:
        prefix = "extern " if declaration.extern and declaration.space == "shared" else ""
        prefix = "filled " if declaration.filled and declaration.space == "constant" else prefix
        yield from row("declaration", prefix + declaration.space, declaration.span)
    device = [body.function.body for body in bodies.bodies]
    for launch in source.launches:
        from_device = enclosing(device, launch.span) is not None
        yield from row("launch", "device" if from_device else "host", launch.span)
        if launch.shared not in ("", "0"):
            yield from row("launch", "shared", launch.span)
        if launch.stream not in ("", "0", "nullptr"):
            yield from row("launch", "stream", launch.span)
    for structure, span in find_structures(source, bodies):
        yield from row("structure", structure, span)
    for memory, span in find_atomics(source, bodies):
        yield from row("atomic", memory, span)


def _counts(host: list[Span], span: Span, primitive: Primitive) -> bool:
    """Whether a match counts where it stands: in a host function only launches and host calls do."""
    return primitive.category in HOST_CATEGORIES or enclosing(host, span) is None


def _without_absorbed(found: list[tuple[Span, Primitive]]) -> list[tuple[Span, Primitive]]:
    """Return the matches in order, once each, without those that are part of a larger one (see `ABSORBING`)."""
    kept: list[tuple[Span, Primitive]] = []
    open_until: dict[str, int] = {}
    seen: set[tuple[int, int, str]] = set()
    for span, primitive in sorted(found, key=lambda match: (match[0].start, -match[0].end)):
        key = (span.start, span.end, primitive.id)
        absorbed = any(span.end <= open_until.get(larger, -1) for larger in ABSORBING.get(primitive.match, ()))
        if key not in seen and not absorbed:
            seen.add(key)
            kept.append((span, primitive))
            open_until[primitive.match] = max(span.end, open_until.get(primitive.match, 0))
    return kept
