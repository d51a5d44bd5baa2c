"""What is known while a kernel is followed: values of variables, bounds, the accesses so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from tree_sitter import Node

from translator.c_facts import Fact
from translator.c_integers import LONGEST_MACRO
from translator.c_types import ITEM_BYTES, plain_type
from translator.cuda_source import CudaSource, parse_expression, parse_statements, span_of
from translator.definitions import Definitions, expand
from translator.extents import Bounds, variable_bounds
from translator.kernel_values import Access, Condition, KernelValue
from translator.named_sizes import MOST_NAMES, Instance, named_size, resolved_type
from translator.sizes import ONE, ZERO, Size, UnreadableSize, name, number
from translator.span import Span

_MOST_VISITS = 60_000
_MOST_DEPTH = 80
MOST_CALLS = 6
"""How deep calls may lead to each other."""

_BUILTIN = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])\Z")


@dataclass(frozen=True)
class KernelFollowing:
    """How the parts that need each other go on: nodes by type, calls in sizes, elements of arrays in sizes."""

    visitors: Mapping[str, Callable[[KernelCode, Node], None]]
    call: Callable[[KernelCode, str, Sequence[Node]], Size]
    element: Callable[[KernelCode, Node], Size]


class KernelCode:
    """Follows one kernel; a `Scope` for its expressions."""

    def __init__(
        self, source: CudaSource, definitions: Definitions, types: Mapping[str, str], grid: Sequence[Size],
        block: Sequence[Size], below: Mapping[str, Size], following: KernelFollowing,
    ) -> None:  # fmt: skip
        self.source, self.text, self.definitions, self.following = source, source.text, definitions, following
        self.types = dict(types)
        self.grid, self.block = grid, block
        self.env: dict[str, KernelValue] = {}
        self.declared: dict[str, str] = {}
        self.items: dict[str, Size | None] = {}
        self.accesses: list[Access] = []
        self.guarded: dict[str, Size] = {}
        self.met: dict[str, dict[int, None]] = {}
        self.indexing: set[str] = set()
        self.aligned: dict[tuple[str, int], None] = {}
        self.bounds = Bounds()
        self.bounds.high.update(variable_bounds(self.grid, self.block))
        self.bounds.low.update({variable: ZERO for variable in self.bounds.high})
        self.bounds.high.update({f"@{array}": size - ONE for array, size in below.items()})
        self.context: list[str] = []
        self.returned: KernelValue = None
        self.instance: Instance | None = None
        self.visits = self.calls = self.depth = self.named = 0
        self.numbers = count(1)
        self.lookups: Iterator[int] = count()
        self.cut = False
        self.following_now: list[str] = []
        self.expanded_at: Span | None = None

    def name(self, text: str) -> Size:
        if text in self.env:
            value = self.env[text]
            if isinstance(value, Size):
                return value
            raise UnreadableSize(f"'{text}' is no integer that is known")
        if text == "warpSize":
            return number(32)
        return named_size(text, self)

    def condition(self, text: str) -> tuple[list[Fact], list[Fact]] | None:
        """Return the facts of a bool variable, when it is true and when it is false."""
        value = self.env.get(text)
        return (list(value.true), list(value.false)) if isinstance(value, Condition) else None

    def within(self, text: str) -> KernelCode:
        other = object.__new__(KernelCode)
        other.__dict__ = dict(self.__dict__)
        other.text = text
        return other

    def macro(self, called: str, arguments: Sequence[str]) -> str | None:
        return expand(self.definitions, called, arguments)

    def expanded(self, node: Node) -> tuple[KernelCode, Node] | None:
        """Return what a call of a macro stands for, and the code that it is to be read in; None for other calls."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None or self.named > MOST_NAMES:
            return None
        values = [self.of(child) for child in arguments.named_children if child.type != "comment"]
        text = self.macro(self.of(function).strip(), values)
        if text is None or len(text) > LONGEST_MACRO:
            return None
        parsed = parse_expression(text) or parse_statements(text)
        if parsed is None:
            return None
        other = self.within(parsed[1])
        other.named += 1
        other.expanded_at = self.expanded_at or span_of(node)
        return other, parsed[0]

    def type_bytes(self, text: str) -> Size:
        text = self.resolved(self.declared.get(text, text))
        plain = plain_type(text)
        if "*" in text:
            return number(8)
        if plain in ITEM_BYTES:
            return number(ITEM_BYTES[plain])
        if re.fullmatch(r"[A-Za-z_][\w:]*", plain):
            return name(f"sizeof({plain})")
        raise UnreadableSize("how large this type is isn't known")

    def call(self, called: str, arguments: Sequence[Node], node: Node) -> Size:
        if (match := re.search(r"(?:thread_rank|thread_index|group_index|block_rank)\Z", called)) and not arguments:
            return self._group(called, match[0])
        return self.following.call(self, called, arguments)

    def _group(self, called: str, what: str) -> Size:
        if what == "thread_rank" and re.match(r"(?:block|cta|cg::this_thread_block\(\)|tb|g)\b", called):
            x, y, z = (name(f".threadIdx.{part}") for part in "xyz")
            return x + self.block[0] * (y + self.block[1] * z)
        raise UnreadableSize("what this call gives isn't known")

    def member(self, node: Node) -> Size:
        text = "".join(self.of(node).split())
        if match := _BUILTIN.match(text):
            at = "xyz".index(match[2])
            if match[1] in ("blockDim", "gridDim"):
                return (self.block if match[1] == "blockDim" else self.grid)[at]
            return name(f".{match[1]}.{match[2]}")
        if node.type in ("subscript_expression", "pointer_expression") and text.replace("->", ".") not in self.env:
            return self.following.element(self, node)
        value = self.env.get(text.replace("->", "."))
        if isinstance(value, Size):
            return value
        raise UnreadableSize(f"'{text[:40]}' isn't known")

    def bytes_or_none(self, type_text: str) -> Size | None:
        """Return how many bytes a type has, None when that isn't known."""
        try:
            return self.type_bytes(type_text)
        except UnreadableSize:
            return None

    def resolved(self, type_text: str) -> str:
        """Return a type with the names of template parameters and aliases replaced."""
        return resolved_type(type_text, self)

    def of(self, node: Node | None) -> str:
        """Return a node's text."""
        return "" if node is None else self.text[node.start_byte : node.end_byte]

    def visit(self, node: Node | None) -> None:
        """Follow a statement or an expression."""
        if node is None:
            return
        if self.visits > _MOST_VISITS or self.depth > _MOST_DEPTH:
            self.cut = True
            return
        self.visits += 1
        self.depth += 1
        visitor = self.following.visitors.get(node.type)
        if visitor is not None:
            visitor(self, node)
        else:
            for child in node.named_children:
                self.visit(child)
        self.depth -= 1

    @contextmanager
    def where(self, facts: Sequence[Fact], context: str) -> Iterator[None]:
        held = len(self.bounds.facts)
        self.learn(facts)
        self.context.append(context)
        yield
        self.context.pop()
        del self.bounds.facts[held:]

    def learn(self, facts: Sequence[Fact]) -> None:
        """Take facts as given from here on; one on an element alone says what its array's elements are compared with.

        A bound that depends on sizes is a guard of the array, unless it says what a single element is.
        """
        self.bounds.learn(facts)
        for fact in facts:
            atom = next(iter(fact.expression.atoms), "")
            if not isinstance(atom, str) or atom[:1] != "@" or fact.expression != name(atom):
                continue
            met = self.met.setdefault(atom[1:], {})
            single = fact.low == fact.high
            for bound, beside in ((fact.low, 0 if single else -1), (fact.high, 1)):
                if bound is not None and bound.constant is not None:
                    met |= {bound.constant: None, bound.constant + beside: None}
            limit = self.bounds.upper(fact.high) if fact.high is not None and fact.low is None else None
            if limit is not None and limit.constant is None:
                self.guarded.setdefault(atom[1:], limit + ONE)

    def fresh(self, text: str) -> str:
        """Return the name of a new variable."""
        return f".{text}.{next(self.numbers):04}"
