"""Which primitives stand where in a CUDA source, how much of it Metal has a counterpart for, what patterns it shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Node

from translator.bodies import Bodies, enclosing, read_bodies
from translator.cuda_source import CudaSource, shorten, span_of
from translator.patterns import PATTERNS, find_forms
from translator.primitives import EXPRESSION_MATCHES, FORM_MATCHES, WORD_MATCHES, Primitive, load_primitives
from translator.span import Span
from translator.structures import find_atomics, find_structures

Match = tuple[Span, Primitive]

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

_CALLED = ("identifier", "qualified_identifier", "template_function")
_NOT_IN_NAME = re.compile(r"<[^<>]*>|\s")
_NOT_IN_EXPRESSION = str.maketrans("", "", " \t\r\n()")


@dataclass(frozen=True, slots=True)
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
    bodies = read_bodies(source)
    found: list[Match] = []
    for kind, matches in _MATCHES.items():
        found.extend(matches(source, source.nodes_of(kind)))
    found.extend(_words(source))
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
    """The rows of the table by how they match; where several match the same, the first one counts."""

    def __init__(self, primitives: tuple[Primitive, ...]) -> None:
        self.words: dict[str, dict[str, Primitive]] = {match: {} for match in WORD_MATCHES + tuple(FORM_MATCHES)}
        self.calls: dict[str, list[Primitive]] = defaultdict(list)
        self.expressions: dict[str, list[tuple[re.Pattern[str], Primitive]]] = defaultdict(list)
        for primitive in primitives:
            for word in primitive.words:
                if primitive.match in EXPRESSION_MATCHES:
                    self.expressions[primitive.match].append((re.compile(word, re.DOTALL), primitive))
                elif primitive.match == "call":
                    self.calls[word].append(primitive)
                else:
                    self.words[primitive.match].setdefault(word, primitive)

    def call(self, name: str, arguments: int) -> Primitive | None:
        """Return the first row that matches a call: the qualified name before its last part, rows for calls first."""
        for candidate in dict.fromkeys((name, name.rpartition("::")[2])):
            for primitive in self.calls.get(candidate, ()):
                if primitive.arguments[0] <= arguments <= primitive.arguments[1]:
                    return primitive
        return self.words["type"].get(name.rpartition("::")[2])


@cache
def _table() -> _Table:
    return _Table(load_primitives())


def _calls(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    """Yield calls of functions by name, which launches and calls of an object's member are not."""
    for node in nodes:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        launch = any(child.type == "kernel_call_syntax" for child in node.children)
        if function is None or arguments is None or launch or function.type not in _CALLED:
            continue
        start, end = function.start_byte, _last_name(function).end_byte
        if end - start <= LONGEST_EXPRESSION:
            name = _NOT_IN_NAME.sub("", source.text[start:end])
            if primitive := _table().call(name, arguments.named_child_count):
                yield _until(function, end), primitive


def _fields(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    objects, fields = _table().words["object"], _table().words["field"]
    for node in nodes:
        object_, member = node.children[0], node.children[-1]
        if object_.type == "identifier" and (primitive := objects.get(source.text_of(object_))):
            yield span_of(node), primitive
        if member.type == "field_identifier" and (primitive := fields.get(source.text_of(member))):
            yield span_of(member), primitive


def _scopes(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    for node in nodes:
        scope = node.child_by_field_name("scope")
        if scope is not None and (primitive := _table().words["scope"].get(source.text_of(scope))):
            yield _until(node, _last_name(node).end_byte), primitive


def _operations(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    """Yield operations that are matched as a whole. Most texts come more than once; each is matched once."""
    seen: dict[str, Primitive | None] = {}
    for node in nodes:
        if node.end_byte - node.start_byte > LONGEST_EXPRESSION:
            continue
        text = source.text_of(node).translate(_NOT_IN_EXPRESSION)
        if text not in seen:
            rows = _table().expressions["expression"]
            seen[text] = next((primitive for pattern, primitive in rows if pattern.fullmatch(text)), None)
        if primitive := seen[text]:
            yield span_of(node), primitive


def _casts(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    """Yield casts to a vector pointer: ``(const float4*)x``, the cast without the value."""
    for node in nodes:
        target = node.child_by_field_name("type")
        if target is not None and (primitive := _vector_pointer(source, target)):
            yield _until(node, target.end_byte + 1), primitive


def _named_casts(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    """Yield casts to a vector pointer: ``reinterpret_cast<const float4*>``."""
    for node in nodes:
        name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
        if name is not None and arguments is not None and source.text_of(name).endswith("_cast"):
            target = next((child for child in arguments.named_children if child.type == "type_descriptor"), None)
            if target is not None and (primitive := _vector_pointer(source, target)):
                yield span_of(node), primitive


def _vector_pointer(source: CudaSource, target: Node) -> Primitive | None:
    """Return the row of a cast to a type."""
    named, declarator = target.child_by_field_name("type"), target.child_by_field_name("declarator")
    if named is None or declarator is None or declarator.type != "abstract_pointer_declarator":
        return None
    return _table().words["cast"].get(source.text_of(named))


def _assembly(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    for node in nodes:
        code = node.child_by_field_name("assembly_code")
        text = source.text_of(code) if code is not None else ""
        rows = _table().expressions["asm"]
        if primitive := next((primitive for pattern, primitive in rows if pattern.search(text)), None):
            yield span_of(node), primitive


def _pragmas(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    for node in nodes:
        directive, *words = source.text_of(node).split()
        if directive == "#pragma" and (primitive := _table().words["pragma"].get("".join(words[:1]))):
            yield _until(node, node.start_byte + len(source.text_of(node).rstrip())), primitive


def _identifiers(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    rows = _table().words["object"] | _table().words["name"]
    for node in nodes:
        if primitive := rows.get(source.text_of(node)):
            yield span_of(node), primitive


def _types(source: CudaSource, nodes: Sequence[Node]) -> Iterator[Match]:
    rows = _table().words["type"]
    for node in nodes:
        if primitive := rows.get(" ".join(source.text_of(node).split())):
            yield span_of(node), primitive


_MATCHES: Mapping[str, Callable[[CudaSource, Sequence[Node]], Iterator[Match]]] = {
    "call_expression": _calls,
    "field_expression": _fields,
    "qualified_identifier": _scopes,
    "binary_expression": _operations,
    "cast_expression": _casts,
    "template_function": _named_casts,
    "gnu_asm_expression": _assembly,
    "preproc_call": _pragmas,
    "identifier": _identifiers,
    "type_identifier": _types,
    "primitive_type": _types,
    "sized_type_specifier": _types,
}
"""What nodes of each kind say. Of two that say the same of one place the first one counts: a call before its name."""


def _words(source: CudaSource) -> Iterator[Match]:
    """Yield keywords, and nodes that say it all by their kind."""
    for kind, primitive in _table().words["node"].items():
        yield from ((span_of(node), primitive) for node in source.nodes_of(kind))
    for word, primitive in _table().words["token"].items():
        yield from ((span_of(node), primitive) for node in source.nodes_of(word) if not node.is_named)


def _last_name(node: Node) -> Node:
    """Return the name at the end of a possibly qualified, possibly templated name."""
    while node.type in ("qualified_identifier", "template_function", "template_type", "dependent_name"):
        inner = node.child_by_field_name("name")
        if inner is None:
            break
        node = inner
    return node


def _until(node: Node, end: int) -> Span:
    """Return the span from the start of a node."""
    return span_of(node)._replace(end=end)


def _forms(source: CudaSource, bodies: Bodies) -> Iterator[Match]:
    """Yield declarations, launches and structures, which the parsed source lists already."""
    table = _table()

    def row(match: str, word: str, span: Span) -> Iterator[Match]:
        if primitive := table.words[match].get(word):
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


def _without_absorbed(found: list[Match]) -> list[Match]:
    """Return the matches in order, once each, without those that are part of a larger one (see `ABSORBING`)."""
    kept: list[Match] = []
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
