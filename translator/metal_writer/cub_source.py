"""CUB's reductions and scans over a block or a warp, written as calls of functions before the source is translated.

``BlockReduce(storage).Sum(x)`` becomes ``__cub_BlockReduce_Sum<float, 256>(storage, x)``, which `cub_calls` knows; a
block's storage becomes an array of shared memory, and what only names the types goes. Lines keep their numbers. What is
not understood stays as it is, and is refused where a kernel has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda, walk
from translator.metal_writer.cub_idioms import PREFIX
from translator.metal_writer.expressions import call_arguments
from translator.metal_writer.program import TYPES, Program, alias_of, read_program
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import nested_type
from translator.metal_writer.types import SCALARS, canonical

MOST_SIMDGROUPS = 32
OPERATIONS = ("Sum", "Max", "Min")
_REDUCTIONS, _SCANS = ("Sum", "Reduce"), ("InclusiveSum", "ExclusiveSum", "InclusiveScan", "ExclusiveScan")
METHODS = {"BlockReduce": _REDUCTIONS, "WarpReduce": _REDUCTIONS, "BlockScan": _SCANS, "WarpScan": _SCANS}
_COLLECTIVE = re.compile(r"(?:typename )?(?:::)?(cub ?:: ?)?((?:Block|Warp)(?:Reduce|Scan)) ?<(.*)>\Z")
_OPERATION = re.compile(r"(?:const )?(?:::)?(?:cub ?:: ?)?(Sum|Max|Min)\Z")
_OPERATION_VALUE = re.compile(r"(.*?) ?(?:\(\)|\{ ?\})\Z")
_NEWER = {"cuda::std::plus": "Sum", "cuda::maximum": "Max", "cuda::minimum": "Min"}
_REST = {
    "BlockLoad": "load with a loop over the thread's elements",
    "BlockStore": "store with a loop over the thread's elements",
    "BlockExchange": "put the values into shared memory, and read them in the other order after a barrier",
    "BlockRadixSort": "sort with mx.sort in a pass of its own",
    "WarpMergeSort": "sort with mx.sort in a pass of its own",
    "BlockMergeSort": "sort with mx.sort in a pass of its own",
    "BlockHistogram": "count with atomicAdd in shared memory",
    "BlockDiscontinuity": "put the values into shared memory, and compare with the neighbour's after a barrier",
}
"""What else of CUB kernels use, and what to write instead."""
_ALIASES = ("alias_declaration", "type_definition")
PAIR = "KeyValuePair"
_WHOLE = ("function_definition", "template_declaration", "namespace_definition")
_RESULT = "cub_result"
_MOST_ALIASES = 8


@dataclass(frozen=True)
class Collective:
    """A reduction or scan: ``BlockReduce`` and its like, and its template arguments as they are written."""

    name: str
    arguments: str

    @property
    def element(self) -> str:
        """The type of the values."""
        return self.parts[0]

    @property
    def parts(self) -> list[str]:
        """The template arguments one by one."""
        parts, depth = [""], 0
        for character in self.arguments:
            depth += (character in "<(") - (character in ">)")
            if character == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += character
        return [part.strip() for part in parts]

    @property
    def slots(self) -> int:
        """The room that a block's storage has: a value of each simdgroup, and one that a callback puts before all."""
        size = self.parts[1] if 1 < len(self.parts) <= 3 else ""
        simdgroups = -(-int(size) // 32) if size.isdigit() else MOST_SIMDGROUPS
        return simdgroups + self.name.endswith("Scan")


@dataclass(frozen=True)
class _Edit:
    begin: int
    end: int
    text: str


def with_cub(source: CudaSource) -> CudaSource:
    """Return the source with what it has of CUB's collectives as calls of functions."""
    if not re.search(r"\b(?:Block|Warp)(?:Reduce|Scan)\b", source.text):
        return source
    pairs = _with_pairs(source)
    program = read_program(pairs)
    edits: dict[int, _Edit] = {}
    for definitions in program.functions.values():
        for node, _ in definitions:
            edits |= {edit.begin: edit for edit in _Function(program, node).edits()}
    if not edits:
        return pairs
    text = pairs.text
    for edit in reversed(list(_outermost(edits))):
        lost = text[edit.begin : edit.end].count("\n") - edit.text.count("\n")
        text = text[: edit.begin] + edit.text + "\n" * lost + text[edit.end :]
    return parse_cuda(text, source.path)


def _outermost(edits: Mapping[int, _Edit]) -> Iterator[_Edit]:
    end = 0
    for begin in sorted(edits):
        if begin >= end:
            end = edits[begin].end
            yield edits[begin]


class _Function:
    """Finds what is to be changed in one function."""

    def __init__(self, program: Program, node: Node) -> None:
        self.program, self.node = program, node
        named = (alias_of(each) for each in walk(node) if each.type in _ALIASES)
        self.aliases = {program.text(name): type_ for name, type_ in named if name is not None and type_ is not None}
        self.values: dict[str, tuple[Collective, str]] = {}  # locals such as ``BlockReduce reduce(storage)``
        self.operations: dict[str, str] = {}
        self.unions: dict[str, set[str]] = {}

    def edits(self) -> Iterator[_Edit]:
        """Yield the changes, in the order of the text."""
        for node in walk(self.node):
            if node.type in _ALIASES:
                yield from self._alias(node)
            elif node.type == "declaration":
                yield from self._declaration(node)
            elif node.type == "parameter_declaration":
                yield from self._parameter(node)
            elif node.type == "call_expression":
                yield from self._call(node)
            elif node.type == "field_expression" and node.child_count == 3 and node.children[1].type == ".":
                owner, member = self._text(node.children[0]), self._text(node.children[-1])
                if member in self.unions.get(owner, ()):
                    yield _Edit(node.start_byte, node.end_byte, f"{owner}_{member}")

    def _text(self, node: Node) -> str:
        return self.program.text(node)

    def _written(self, text: str) -> Iterator[str]:
        """Yield a type's text, and what its name stands for, over and over."""
        for _ in range(_MOST_ALIASES):
            text = text.removeprefix("typename ").removeprefix("const ").strip()
            yield text
            owner, colons, member = text.rpartition("::")
            alias, within = self._alias_named(text), self._alias_named(owner) if colons else None
            if alias is not None:
                text = alias
            elif within is not None:
                text = f"{within}::{member}"
            elif colons and (nested := nested_type(self.program, text)) is not None:
                text = nested
            else:
                return

    def _alias_named(self, name: str) -> str | None:
        item = self.program.items.get(name)
        type_ = self.aliases.get(name)
        if type_ is None and item is not None and item.kind == "alias":
            type_ = item.node.child_by_field_name("type")
        return self._text(type_) if type_ is not None else None

    def collective(self, text: str) -> Collective | None:
        """Return what a type's name means, None when it is no reduction or scan."""
        for written in self._written(text):
            match = _COLLECTIVE.match(written)
            own = match is not None and not match[1] and match[2] in self.program.items
            if match is not None and not own:
                return Collective(match[2], match[3])
        return None

    def storage(self, text: str) -> Collective | None:
        """Return the collective whose ``TempStorage`` a type's name means."""
        for written in self._written(text):
            if written.endswith("TempStorage"):
                return self.collective(written.rpartition("::")[0].strip())
        return None

    def operation(self, text: str) -> str | None:
        """Return which of `OPERATIONS` a type's name means."""
        for written in self._written(text):
            newer = re.sub(r"\s|<.*", "", written).removeprefix("::")
            if newer in _NEWER:
                return _NEWER[newer]
            match = _OPERATION.match(written)
            if match is not None and ("::" in written or match[1] not in self.program.items):
                return match[1]
        return None

    def _alias(self, node: Node) -> Iterator[_Edit]:
        _, type_ = alias_of(node)
        text = self._text(type_) if type_ is not None else ""
        if self.collective(text) or self.storage(text) or self.operation(text):
            yield _Edit(node.start_byte, node.end_byte, "")

    def _declaration(self, node: Node) -> Iterator[_Edit]:
        kind = next((child for child in node.children if child.type in (*TYPES, "union_specifier")), None)
        if kind is None:
            return
        shared = any(self._text(child) == "__shared__" for child in node.children)
        if kind.type == "union_specifier" and shared:
            yield from self._union(node, kind)
        elif shared and (collective := self.storage(self._text(kind))) is not None:
            names = [self._text(each) for each in node.children_by_field_name("declarator")]
            yield _Edit(node.start_byte, node.end_byte, _declared(collective, names))
        elif not shared and (collective := self.collective(self._text(kind))) is not None:
            for name, value in _initial(node):
                self.values[self._text(name)] = (collective, ", ".join(map(self._text, call_arguments(value))))
            yield _Edit(node.start_byte, node.end_byte, "")
        elif not shared and (operation := self.operation(self._text(kind))) is not None:
            for name in node.children_by_field_name("declarator"):
                word = name.child_by_field_name("declarator") or name
                self.operations[self._text(word)] = operation
            yield _Edit(node.start_byte, node.end_byte, "")

    def _union(self, node: Node, union: Node) -> Iterator[_Edit]:
        """A union of storages becomes an array for each: nothing is gained by sharing so little."""
        body = union.child_by_field_name("body")
        names = node.children_by_field_name("declarator")
        fields = [each for each in body.named_children if each.type == "field_declaration"] if body is not None else []
        parts: list[str] = []
        members: set[str] = set()
        for field in fields:
            type_ = field.child_by_field_name("type")
            collective = self.storage(self._text(type_)) if type_ is not None else None
            if collective is None or len(names) != 1 or names[0].type != "identifier":
                return
            own = [self._text(each) for each in field.children_by_field_name("declarator")]
            members |= set(own)
            parts.append(_declared(collective, [f"{self._text(names[0])}_{each}" for each in own]))
        if parts:
            self.unions[self._text(names[0])] = members
            yield _Edit(node.start_byte, node.end_byte, " ".join(parts))

    def _parameter(self, node: Node) -> Iterator[_Edit]:
        kind = next((child for child in node.children if child.type in TYPES), None)
        declarator = node.child_by_field_name("declarator")
        collective = self.storage(self._text(kind)) if kind is not None else None
        if collective is not None and declarator is not None and collective.name.startswith("Block"):
            name = self._text(declarator).strip("&* ")
            yield _Edit(node.start_byte, node.end_byte, f"{collective.element}* {name}")

    def _call(self, node: Node) -> Iterator[_Edit]:
        function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or given is None or function.type != "field_expression":
            return
        of, method = function.named_children[0], self._text(function.named_children[-1])
        if of.type == "call_expression":
            constructed = of.child_by_field_name("function")
            collective = self.collective(self._text(constructed)) if constructed is not None else None
            storage = ", ".join(map(self._storage_text, call_arguments(of)))
        else:
            collective, storage = self.values.get(self._text(of), (None, ""))
        if collective is None or method not in METHODS[collective.name]:
            return
        begin = f"{PREFIX}{collective.name}_{method}<{collective.arguments}>("
        passed = [storage] if collective.name.startswith("Block") else []
        arguments = call_arguments(node)
        result = self._elsewhere(node, arguments) if method in _SCANS else None
        if result is not None and node.parent is not None:
            begin = f"{{ {collective.element} {_RESULT}; {begin}"
            yield _Edit(result.start_byte, result.end_byte, _RESULT)
            yield _Edit(node.parent.end_byte, node.parent.end_byte, f" {self._text(result)} = {_RESULT}; }}")
        between = ", " if passed and arguments else ""
        before = re.search(r"(?:\btypename\s+)?\Z", self.program.source.text[: node.start_byte])
        start = before.start() if before is not None else node.start_byte
        yield _Edit(start, given.start_byte + 1, begin + "".join(passed) + between)
        for argument in arguments:
            if (operation := self._operation_value(argument)) is not None:
                yield _Edit(argument.start_byte, argument.end_byte, f"{PREFIX}{operation}")

    def _elsewhere(self, node: Node, arguments: list[Node]) -> Node | None:
        """Return the result of a scan that may lie in other memory than a local does."""
        statement = node.parent is not None and node.parent.type == "expression_statement"
        result = arguments[1] if len(arguments) > 1 else None
        plain = result is None or result.type == "identifier"
        return result if statement and not plain else None

    def _operation_value(self, node: Node) -> str | None:
        text = self._text(node)
        if text in self.operations:
            return self.operations[text]
        match = _OPERATION_VALUE.match(text)
        return self.operation(match[1]) if match is not None else None

    def _storage_text(self, node: Node) -> str:
        owner, dot, member = self._text(node).partition(".")
        return f"{owner}_{member}" if dot and member in self.unions.get(owner, ()) else self._text(node)


def _declared(collective: Collective, names: list[str]) -> str:
    """Return the shared memory of a block's storage; a warp's needs none."""
    if collective.name.startswith("Warp"):
        return ""
    return f"__shared__ {collective.element} {', '.join(f'{name}[{collective.slots}]' for name in names)};"


def _initial(node: Node) -> Iterator[tuple[Node, Node]]:
    for declarator in node.children_by_field_name("declarator"):
        value, name = declarator.child_by_field_name("value"), declarator.child_by_field_name("declarator")
        if value is not None and name is not None:
            yield name, value


def _with_pairs(source: CudaSource) -> CudaSource:
    """Return the source with CUB's pairs as structs of its own, and what takes the greater or lesser of two."""
    text = source.text
    found = {re.sub(r"\s+", " ", each) for each in re.findall(rf"\bcub\s*::\s*({PAIR}\s*<[^<>]*>)", text)}
    if not found or re.search(rf"\bstruct\s+{PAIR}\b", text):
        return source
    made = [f"template <typename Key, typename Value> struct {PAIR} {{ Key key; Value value; }};"]
    pair = next(iter(found))
    parts = pair[len(PAIR) :].strip(" <>").split(",")
    if len(found) == 1 and all(canonical(part.strip()) in SCALARS for part in parts):
        for name, sign in (("ArgMax", ">"), ("ArgMin", "<")):
            made.append(
                f"struct {name} {{ __device__ {pair} operator()(const {pair}& a, const {pair}& b) const {{ "
                f"return b.value {sign} a.value || (b.value == a.value && b.key < a.key) ? b : a; }} }};"
            )
        text = re.sub(r"\bcub\s*::\s*(Arg(?:Max|Min))\b", r"\1", text)
    text = re.sub(rf"\bcub\s*::\s*{PAIR}\b", PAIR, text)
    whole = (node for node in parse_cuda(text, source.path).root.named_children if node.type in _WHOLE)
    last = max((node.end_byte for node in whole), default=-1)
    return parse_cuda(f"{text[:last]} {' '.join(made)}{text[last:]}", source.path) if last >= 0 else source


def refuse_rest(program: Program, node: Node) -> None:
    """Refuse what else of CUB a type or name is."""
    text = program.text(node)
    if (match := re.search(r"\bcub ?:: ?(\w+)", text)) is not None:
        raise Refused(node, f"'cub::{match[1]}' has no translation",
                      _REST.get(match[1], "of CUB reductions and scans are: write out what this does"))  # fmt: skip
    if text.endswith("TempStorage"):
        raise Refused(node, f"'{text}' is not known as the storage of a reduction or scan of CUB",
                      "declare it as __shared__, by itself or in a union of such")  # fmt: skip
