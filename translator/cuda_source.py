"""A CUDA source as a syntax tree, with what stands in it: kernels, device functions, memory, launches, mistakes.

The parser is tree-sitter, so that half a file, a file with errors or no CUDA at all still gives a tree and diagnostics,
never an exception. It parses a twin of the text in which every character is one byte and the macros that hinder it are
blanked: an offset in the tree is then an offset in the text as written.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from translator.cuda_text import mended, parsable
from translator.span import Span

CUDA = Language(tree_sitter_cuda.language())

MOST_DIAGNOSTICS = 100

_DEVICE_WORDS = ("__device__", "__global__")
_SPACES = {"__shared__": "shared", "__constant__": "constant", "__managed__": "managed", "__device__": "device"}
_DECLARATORS = ("pointer_declarator", "reference_declarator", "array_declarator", "parenthesized_declarator")

_MACRO_CALL = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_MOST_MENDS = 3


@dataclass(frozen=True)
class Parameter:
    """A function's parameter; ``type`` as written, qualifiers and array extents included."""

    name: str
    type: str
    span: Span


@dataclass(frozen=True)
class Function:
    """A kernel or device function. ``template`` and ``launch_bounds`` are their parameters as written, () if none."""

    name: str
    kernel: bool
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...]
    launch_bounds: tuple[str, ...]
    span: Span
    body: Span


@dataclass(frozen=True)
class MemoryDeclaration:
    """A variable in an address space: ``shared``, ``constant``, ``managed`` or ``device``. ``extents`` as written."""

    space: str
    name: str
    type: str
    extents: tuple[str, ...]
    extern: bool
    filled: bool
    span: Span


@dataclass(frozen=True)
class Launch:
    """``kernel<<<grid, block, shared, stream>>>(arguments)``, each as written, "" where it isn't given."""

    kernel: str
    grid: str
    block: str
    shared: str
    stream: str
    arguments: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Diagnostic:
    """Where the text isn't read, with the number of the reason.

    C001: it isn't CUDA as the parser knows it. C002: a character is missing. C003: one of the branches of an ``#if``
    that can't all stand in one text; the first is read. C004: a macro with arguments stands where it can't be read.
    """

    message: str
    span: Span
    code: str


@dataclass(frozen=True, eq=False)
class CudaSource:
    """A parsed source; one is only the same as itself.

    ``host_functions`` run on the CPU. ``root`` is the syntax tree; what looks for nodes of some kind
    in it takes them from `nodes_of` instead of walking it.
    """

    path: str
    text: str
    kernels: tuple[Function, ...]
    device_functions: tuple[Function, ...]
    host_functions: tuple[Span, ...]
    declarations: tuple[MemoryDeclaration, ...]
    launches: tuple[Launch, ...]
    diagnostics: tuple[Diagnostic, ...]
    root: Node = field(repr=False, compare=False)
    _nodes: Mapping[str, Sequence[Node]] = field(repr=False, compare=False)

    def nodes_of(self, *kinds: str) -> Sequence[Node]:
        """Return the nodes of these kinds in the order of the text, the outer one first where two begin together."""
        groups = [self._nodes[kind] for kind in kinds if kind in self._nodes]
        if len(groups) < 2:
            return groups[0] if groups else ()
        return sorted(itertools.chain(*groups), key=lambda node: (node.start_byte, -node.end_byte))

    def text_of(self, node: Node) -> str:
        """Return the text of a node as written."""
        return self.text[node.start_byte : node.end_byte]


def parse_cuda(text: str, path: str) -> CudaSource:
    """Parse CUDA source text; anything that doesn't parse becomes a `Diagnostic`, and the rest is still there."""
    reader = _Reader(text)
    root = _parse(parsable(text), reader)
    nodes: dict[str, list[Node]] = defaultdict(list)
    for node in walk(root):
        nodes[node.type].append(node)
    reader.read(root, nodes)
    return CudaSource(
        path,
        text,
        tuple(function for function in reader.functions if function.kernel),
        tuple(function for function in reader.functions if not function.kernel),
        tuple(reader.host_functions),
        tuple(reader.declarations),
        tuple(reader.launches),
        tuple(sorted(reader.diagnostics, key=lambda diagnostic: diagnostic.span.start)),
        root,
        dict(nodes),
    )


def _parse(text: str, reader: _Reader) -> Node:
    """Parse a text, mended where that leaves fewer errors; tell the reader what is left out by it."""
    root = Parser(CUDA).parse(text.encode("ascii")).root_node
    for _ in range(_MOST_MENDS):
        errors = list(map(span_of, _errors(root)))
        if not errors:
            break
        better, branches, macros = mended(text, errors)
        if better == text:
            break
        tree = Parser(CUDA).parse(better.encode("ascii")).root_node
        if _weight(map(span_of, _errors(tree))) >= _weight(errors):
            break
        root, text = tree, better
        reader.leave_out(branches, "this branch of an #if isn't read: it can't stand beside the other", "C003")
        reader.leave_out(macros, "this macro isn't read: end it with ';' or write what it stands for", "C004")
    return root


def _errors(root: Node) -> Iterator[Node]:
    """Yield what isn't understood, the outermost nodes of it, and what is missing, in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "ERROR" or node.is_missing:
            yield node
        elif node.has_error:
            stack.extend(reversed(node.children))


def _weight(errors: Iterable[Span]) -> int:
    return sum(1 + error.end - error.start for error in errors)


def parse_expression(text: str) -> tuple[Node, str] | None:
    """Parse one C++ expression: its node and the text that the node's offsets are in, None when it isn't one."""
    padded = f"int x = {text};"
    root = Parser(CUDA).parse(parsable(padded).encode("ascii")).root_node
    declarator = root.named_children[0].child_by_field_name("declarator") if root.named_child_count == 1 else None
    value = declarator.child_by_field_name("value") if declarator is not None else None
    return None if value is None or root.has_error else (value, padded)


def parse_statements(text: str) -> tuple[Node, str] | None:
    """Parse C++ statements: their block and the text that its offsets are in, None when they don't parse."""
    padded = f"void f() {{ {text}; }}"
    root = Parser(CUDA).parse(parsable(padded).encode("ascii")).root_node
    body = root.named_children[0].child_by_field_name("body") if root.named_child_count == 1 else None
    return None if body is None or root.has_error else (body, padded)


def walk(root: Node) -> Iterator[Node]:
    """Yield every node below and including ``root``, in the order of the text, at any depth."""
    cursor = root.walk()
    while (node := cursor.node) is not None:
        yield node
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return


def span_of(node: Node) -> Span:
    """Return where a node stands."""
    row, column = node.start_point
    return Span(node.start_byte, node.end_byte, row + 1, column + 1)


def shorten(text: str, longest: int) -> str:
    """Return the text on one line, cut to a length, with a mark for every character that can't be shown."""
    line = " ".join(text[: 4 * longest].split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= longest and len(text) <= 4 * longest else line[: longest - 1] + "…"


def declared_name(declarator: Node) -> Node | None:
    """Return the name within a declarator such as ``*x``, ``x[4][5]`` or ``(&x)[3]``, None when it has none."""
    node: Node | None = declarator
    while node is not None and node.type in _DECLARATORS:
        inner = node.child_by_field_name("declarator")
        node = inner or next((child for child in reversed(node.named_children) if child.type != "type_qualifier"), None)
    return node if node is not None and node.type in ("identifier", "field_identifier") else None


class _Reader:
    """Collects, in one walk over the tree, what a `CudaSource` lists."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.functions: list[Function] = []
        self.host_functions: list[Span] = []
        self.declarations: list[MemoryDeclaration] = []
        self.launches: list[Launch] = []
        self.diagnostics: list[Diagnostic] = []
        self._templates: dict[int, tuple[str, ...]] = {}

    def read(self, root: Node, nodes: Mapping[str, Sequence[Node]]) -> None:
        for node in nodes["template_declaration"]:
            self._templates[node.children[-1].start_byte] = self._items(node.child_by_field_name("parameters"))
        for node in nodes["function_definition"]:
            self._function(node)
        for node in nodes["declaration"]:
            self._declaration(node)
        for node in nodes["call_expression"]:
            self._launch(node)
        for node in _errors(root):
            if len(self.diagnostics) >= MOST_DIAGNOSTICS:
                break
            self._diagnostic(node)

    def leave_out(self, spans: list[Span], message: str, code: str) -> None:
        """Add a diagnostic for each of some parts of the text that the parser doesn't see."""
        room = MOST_DIAGNOSTICS - len(self.diagnostics)
        self.diagnostics.extend(Diagnostic(message, span, code) for span in spans[:room])

    def _text(self, node: Node | None) -> str:
        return "" if node is None else " ".join(self.text[node.start_byte : node.end_byte].split())

    def _function(self, node: Node) -> None:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type in _DECLARATORS:
            declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
        body = node.child_by_field_name("body")
        if declarator is None or declarator.type != "function_declarator" or body is None:
            return
        words = {child.type for child in node.children}
        if not words & set(_DEVICE_WORDS):
            self.host_functions.append(span_of(node))
            return
        bounds = next((child for child in node.children if child.type == "launch_bounds"), None)
        parameters = declarator.child_by_field_name("parameters")
        self.functions.append(
            Function(
                self._text(declarator.child_by_field_name("declarator")),
                "__global__" in words,
                tuple(self._parameter(child) for child in (parameters.named_children if parameters else ())
                      if child.type.endswith("parameter_declaration")),
                self._templates.get(node.start_byte, ()),
                self._items(bounds),
                span_of(node),
                span_of(body),
            )
        )  # fmt: skip

    def _items(self, node: Node | None) -> tuple[str, ...]:
        children = node.named_children if node else []
        return tuple(self._text(child) for child in children if child.type != "comment")

    def _parameter(self, node: Node) -> Parameter:
        declarator = node.child_by_field_name("declarator")
        name = declared_name(declarator) if declarator is not None else None
        default = node.child_by_field_name("default_value")
        end = default.start_byte if default is not None else node.end_byte
        if name is None:
            return Parameter("", self._text(node), span_of(node))
        type_text = self.text[node.start_byte : name.start_byte] + self.text[name.end_byte : end].rstrip().rstrip("=")
        return Parameter(self._text(name), " ".join(type_text.split()), span_of(node))

    def _declaration(self, node: Node) -> None:
        words = {child.type if child.type != "type_qualifier" else self._text(child) for child in node.children}
        space = next((space for word, space in _SPACES.items() if word in words), None)
        if space is None:
            return
        extern = any(child.type == "storage_class_specifier" and self._text(child) == "extern"
                     for child in node.children)  # fmt: skip
        type_text = self._text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            filled = declarator.type == "init_declarator"
            inner = declarator.child_by_field_name("declarator") if filled else declarator
            extents: list[str] = []
            while inner is not None and inner.type in _DECLARATORS:
                if inner.type == "array_declarator":
                    extents.insert(0, self._text(inner.child_by_field_name("size")))
                inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
            if inner is not None and inner.type == "identifier":
                self.declarations.append(
                    MemoryDeclaration(
                        space, self._text(inner), type_text, tuple(extents), extern, filled, span_of(node)
                    )
                )

    def _launch(self, call: Node) -> None:
        configuration = next((child for child in call.children if child.type == "kernel_call_syntax"), None)
        if configuration is None:
            return
        grid, block, shared, stream = (*self._items(configuration), "", "", "", "")[:4]
        self.launches.append(
            Launch(
                self._text(call.child_by_field_name("function")),
                grid,
                block,
                shared,
                stream,
                self._items(call.child_by_field_name("arguments")),
                span_of(call),
            )
        )

    def _diagnostic(self, node: Node) -> None:
        span = span_of(node)
        if node.is_missing:
            if not _ends_macro(self.text, node):
                self.diagnostics.append(Diagnostic(f"'{node.type}' is missing here", span, "C002"))
            return
        shown = shorten(self.text[node.start_byte : node.end_byte], 40)
        self.diagnostics.append(Diagnostic(f"not understood: '{shown}'" if shown else "not understood", span, "C001"))


def _ends_macro(text: str, missing: Node) -> bool:
    """Whether a missing semicolon is one that a macro brings: ``CHECK_INPUT(x)``."""
    call = missing.prev_sibling
    function = call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
    return (
        missing.type == ";"
        and function is not None
        and _MACRO_CALL.match(text[function.start_byte : function.end_byte]) is not None
    )
