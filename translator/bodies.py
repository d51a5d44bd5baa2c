"""What the bodies of kernels and device functions do, as flat lists: calls, loops, assignments, returns."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from tree_sitter import Node

from translator.cuda_source import CudaSource, Function, MemoryDeclaration, declared_name, span_of, walk
from translator.span import Span

_LOOPS = ("for_statement", "while_statement", "do_statement")
_START = attrgetter("start")
_START_BYTE = attrgetter("start_byte")
_DEFINE = re.compile(r"#\s*define\s+(\w+)\s+(.+)")


@dataclass(frozen=True, slots=True)
class Call:
    """A call by its plain name: no namespace, no template arguments, no object."""

    name: str
    span: Span
    node: Node = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop; ``step`` is what a ``for`` does after each round, without blanks, "" for other loops."""

    span: Span
    step: str
    step_span: Span | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """``target operator value``; texts without blanks. An initialised declaration assigns to its name."""

    target: str
    operator: str
    value: str
    span: Span
    target_node: Node = field(repr=False, compare=False)
    value_node: Node = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Access:
    """``array[index]``, texts without blanks; of ``a[i][j]`` the part ``a[i]``."""

    array: str
    index: str
    span: Span


@dataclass
class Body:
    """What one function does, in the order of the text.

    ``conditions`` are those of its ifs, without blanks, with the span of the whole statement; ``differences`` the two
    sides of each ``a - b``; ``shared`` the shared memory that it can name.
    """

    function: Function
    calls: list[Call] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    returns: list[Span] = field(default_factory=list)
    conditions: list[tuple[Span, str]] = field(default_factory=list)
    differences: list[tuple[Span, Node, Node]] = field(default_factory=list)
    shared: list[MemoryDeclaration] = field(default_factory=list)

    @property
    def barriers(self) -> list[Call]:
        """The barriers that all threads of the block must reach."""
        return [call for call in self.calls if call.name.startswith("__syncthreads")]


@dataclass(frozen=True)
class Bodies:
    """All bodies of a source, and what its named constants stand for (text without blanks, by name)."""

    bodies: tuple[Body, ...]
    constants: dict[str, str]


def enclosing(spans: Sequence[Span], inner: Span) -> int | None:
    """Return the index of the span that holds ``inner``, of spans in order that don't overlap."""
    index = bisect.bisect_right(spans, inner.start, key=_START) - 1
    return index if index >= 0 and spans[index].holds(inner) else None


def read_bodies(source: CudaSource) -> Bodies:
    """Read the bodies of all kernels and device functions."""
    functions = sorted((*source.kernels, *source.device_functions), key=lambda function: function.body.start)
    starts = [*(function.body.start for function in functions), len(source.text)]
    bodies = [_read_body(source, function, end) for function, end in zip(functions, starts[1:], strict=True)]
    spans = [function.body for function in functions]
    for declaration in source.declarations:
        if declaration.space == "shared":
            index = enclosing(spans, declaration.span)
            for body in bodies if index is None else [bodies[index]]:
                body.shared.append(declaration)
    return Bodies(tuple(bodies), _constants(source))


def _constants(source: CudaSource) -> dict[str, str]:
    """Return what names stand for: macros, then the first value of each variable."""
    constants: dict[str, str] = {}
    for node in source.nodes_of("preproc_def"):
        if match := _DEFINE.match(source.text_of(node)):
            constants[match[1]] = squeeze(match[2])
    for node in source.nodes_of("init_declarator"):
        value = node.child_by_field_name("value")
        if (name := _assigned_name(node)) is not None:
            constants.setdefault(source.text_of(name), squeeze(source.text_of(value)) if value is not None else "")
    return constants


def squeeze(text: str) -> str:
    """Return the text without blanks, so that the same expression always reads the same."""
    return "".join(text.split())


def within(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the nodes of these kinds below and including ``node``."""
    return (inner for inner in walk(node) if inner.type in kinds)


def call_name(source: CudaSource, call: Node) -> str:
    """Return the plain name of what is called: ``reduce`` of ``cg::reduce<float>()``, ``sync`` of ``block.sync()``."""
    node = call.child_by_field_name("function")
    while node is not None and node.type in ("qualified_identifier", "template_function", "field_expression"):
        node = node.child_by_field_name("field" if node.type == "field_expression" else "name")
    return "" if node is None else source.text_of(node)


def base_name(source: CudaSource, node: Node) -> str:
    """Return the variable that an access starts from: ``tile`` of ``tile[i][j]`` and of ``*(float4*)&tile[i]``."""
    names = (source.text_of(inner) for inner in within(node, "identifier"))
    return next((name for name in names if not name.endswith("_cast")), "")


def _assigned_name(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    return declared_name(declarator) if declarator is not None else None


def _read_body(source: CudaSource, function: Function, end: int) -> Body:
    """Read a function's body, up to an offset where another one begins within it."""
    body = Body(function)
    start, end = function.body.start, min(function.body.end, end)

    def inside(*kinds: str) -> list[Node]:
        found: list[Node] = []
        for nodes in map(source.nodes_of, kinds):
            first, last = (bisect.bisect_left(nodes, offset, key=_START_BYTE) for offset in (start, end))
            found += (node for node in nodes[first:last] if node.end_byte <= function.body.end)
        return sorted(found, key=_START_BYTE) if len(kinds) > 1 else found

    body.calls = [Call(call_name(source, node), span_of(node), node) for node in inside("call_expression")]
    body.loops = [_loop(source, node) for node in inside(*_LOOPS)]
    body.returns = [span_of(node) for node in inside("return_statement")]
    for node in inside("assignment_expression", "init_declarator"):
        body.assignments.extend(_assignment(source, node))
    for node in inside("if_statement"):
        condition = node.child_by_field_name("condition")
        body.conditions.append((span_of(node), squeeze(source.text_of(condition)) if condition is not None else ""))
    for node in inside("binary_expression"):
        sign = node.child_by_field_name("operator")
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if sign is not None and sign.type == "-" and left is not None and right is not None:
            body.differences.append((span_of(node), left, right))
    for node in inside("subscript_expression"):
        array, index = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        if array is not None and index is not None and array.type == "identifier":
            body.accesses.append(Access(source.text_of(array), squeeze(source.text_of(index))[1:-1], span_of(node)))
    return body


def _loop(source: CudaSource, node: Node) -> Loop:
    step = node.child_by_field_name("update")
    if step is None:
        return Loop(span_of(node), "", None)
    return Loop(span_of(node), squeeze(source.text_of(step)), span_of(step))


def _assignment(source: CudaSource, node: Node) -> Iterator[Assignment]:
    if node.type == "init_declarator":
        target, sign, value = _assigned_name(node), None, node.child_by_field_name("value")
    else:
        target, sign, value = map(node.child_by_field_name, ("left", "operator", "right"))
    if target is not None and value is not None:
        texts = squeeze(source.text_of(target)), squeeze(source.text_of(value))
        operator = source.text_of(sign) if sign is not None else "="
        yield Assignment(texts[0], operator, texts[1], span_of(node), target, value)
