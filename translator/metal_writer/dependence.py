"""What the values of a kernel depend on: the thread, the round of a loop, data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.cub_idioms import PREFIX
from translator.metal_writer.emits import emits
from translator.metal_writer.expressions import CASTS, Expressions, call_arguments, plain_name
from translator.metal_writer.flow import called
from translator.metal_writer.program import Program, Routine, Variable
from translator.metal_writer.types import SCALARS, canonical

_ACCESSES = ("subscript_expression", "pointer_expression")
_SAFE_CALLS = ("min", "max")
_SAME_FOR_ALL = ("__syncthreads_or", "__syncthreads_and", "__syncthreads_count")
_OF_THE_GROUP = ("size", "num_threads", "meta_group_size", "group_index", "group_dim", "dim_blocks")
"""What a group of threads says that is the same in all threads of the block."""


@dataclass(frozen=True)
class Dependence:
    """Follows the definitions of one function's variables; ``same`` are the parameters that all threads have alike."""

    reader: Expressions
    same: frozenset[str] = frozenset()

    @property
    def routine(self) -> Routine:
        """The kernel that is read."""
        return self.reader.routine

    def uniform(self, node: Node, seen: frozenset[int] = frozenset()) -> bool:
        """Whether an expression has one value for all threads of a block."""
        if node.type == "identifier":
            variable = self.reader.variable(node)
            if variable is None:
                return self.reader.text(node) != "threadIdx"
            return self._uniform_variable(variable, seen)
        if node.type in _ACCESSES and not self._shared_or_uniform(node):
            return False
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            name = plain_name(self.reader.program, function) if function is not None else ""
            if name in _SAME_FOR_ALL:
                return True
            return self._plain_call(node) and all(self.uniform(each, seen) for each in call_arguments(node))
        if node.type == "gnu_asm_expression":
            return False
        return all(self.uniform(child, seen) for child in node.named_children)

    def _shared_or_uniform(self, node: Node) -> bool:
        """A read of memory at a uniform place is uniform too: threads that write there meanwhile would be a race."""
        if node.type != "subscript_expression":
            return False
        base = node.child_by_field_name("argument")
        origins = self.reader.origins_of(base) if base is not None else set()
        return bool(origins) and all(space in ("array", "constant", "shared", "dynamic") for space, _ in origins)

    def _uniform_variable(self, variable: Variable, seen: frozenset[int]) -> bool:
        if variable.home == "parameter" and not self.routine.kernel and variable.name not in self.same:
            return False
        if variable.home in ("shared", "dynamic"):
            return True
        if id(variable) in seen:
            return True
        seen = seen | {id(variable)}
        values = list(self.values(variable))
        if not values and variable.home != "parameter":
            return False
        return all(self.uniform(value, seen) and self._under_uniform(value, variable, seen) for value in values)

    def _under_uniform(self, value: Node, variable: Variable, seen: frozenset[int]) -> bool:
        """Whether an assignment runs in all threads or none."""
        above = value.parent
        while above is not None and above.id != self.routine.body.id:
            condition = above.child_by_field_name("condition")
            inside = above.start_byte < variable.start or condition is None
            if not inside and condition is not None and condition.start_byte > value.end_byte:
                inside = above.type != "do_statement"
            if not inside and condition is not None and not self.uniform(condition, seen):
                return False
            above = above.parent
        return True

    def values(self, variable: Variable) -> list[Node]:
        """Return every expression that a variable is given or changed by."""
        own = [variable.value] if variable.value is not None else []
        return own + self._changes.get(id(variable), [])

    @cached_property
    def _changes(self) -> dict[int, list[Node]]:
        """The expressions that change variables after their declaration, by the variable's id."""
        found: dict[int, list[Node]] = {}
        for node in walk(self.routine.body):
            for target, value in self._changed(node):
                variable = self.reader.variable(target) if target.type == "identifier" else None
                if variable is not None:
                    found.setdefault(id(variable), []).append(value)
        return found

    def _changed(self, node: Node) -> Iterator[tuple[Node, Node]]:
        """Yield what a node changes, and by which expression."""
        if node.type == "assignment_expression":
            yield node.named_children[0], node.named_children[-1]
        elif node.type == "update_expression" or (node.type == "pointer_expression" and node.children[0].type == "&"):
            yield node.named_children[-1], node
        elif node.type == "call_expression":
            for callee in called(self.reader.program, node):
                for parameter, argument in zip(callee.parameters, call_arguments(node), strict=False):
                    if parameter.type.reference and not parameter.type.const:
                        yield argument, node
            for argument in _scanned_into(self.reader.program, node):
                yield argument, node

    @cached_property
    def returns(self) -> list[Node]:
        """The return statements of the kernel."""
        return [node for node in walk(self.routine.body) if node.type == "return_statement"]

    def _plain_call(self, node: Node) -> bool:
        """Whether a call gives the same for the same arguments, in every thread."""
        function = node.child_by_field_name("function")
        if function is None:
            return False
        if function.type in ("primitive_type", "sized_type_specifier"):
            return True
        program = self.reader.program
        name = plain_name(program, function)
        if function.type == "field_expression":
            return self.reader.text(function).rpartition(".")[2] in _OF_THE_GROUP
        if name in (*_SAFE_CALLS, *CASTS) or canonical(name) in SCALARS:
            return True
        if routines := called(program, node):
            return all(_is_pure(program, routine) for routine in routines)
        emit = emits().calls.get(name)
        return emit is not None and emit.result not in ("*", "void")

    def on_data(self, node: Node, seen: frozenset[int] = frozenset()) -> bool:
        """Whether an expression depends on what arrays hold, not on indices and sizes alone; an address doesn't."""
        if node.type == "pointer_expression" and node.children[0].type == "&":
            return any(self.on_data(part, seen) for part in place_parts(node.named_children[-1]))
        if node.type in _ACCESSES:
            return True
        if node.type == "identifier":
            variable = self.reader.variable(node)
            if variable is None or id(variable) in seen:
                return False
            return any(self.on_data(value, seen | {id(variable)}) for value in self.values(variable))
        return any(self.on_data(child, seen) for child in node.named_children)

    def fixed(self, node: Node, seen: frozenset[int] = frozenset()) -> bool:
        """Whether an expression is the same in all threads of the launch: sizes and constants."""
        for inner in walk(node):
            if inner.type == "identifier":
                if self.reader.text(inner) in ("threadIdx", "blockIdx"):
                    return False
                variable = self.reader.variable(inner)
                if variable is not None and not self._fixed_variable(variable, seen):
                    return False
            elif inner.type in _ACCESSES or (inner.type == "call_expression" and not self._plain_call(inner)):
                return False
        return True

    def _fixed_variable(self, variable: Variable, seen: frozenset[int] = frozenset()) -> bool:
        if variable.home == "parameter":
            return self.routine.kernel and not variable.type.points
        values = list(self.values(variable))
        if len(values) != 1 or variable.value is None or id(variable) in seen:
            return False
        return self.fixed(values[0], seen | {id(variable)})

    def named_in(self, node: Node) -> set[str]:
        """Return the variables and indices that an expression names: those that are the same for all left out."""
        found = set()
        for inner in walk(node):
            if inner.type == "field_expression" and self.reader.text(inner.children[0]) in ("threadIdx", "blockIdx"):
                found.add(self.reader.text(inner))
            elif inner.type == "identifier":
                variable = self.reader.variable(inner)
                if variable is not None and not self._fixed_variable(variable):
                    found.add(f"{variable.name}@{variable.start}")
        return found

    def closure(self, node: Node, seen: frozenset[int] = frozenset()) -> set[str]:
        """Return what `named_in` gives of an expression and of all that its variables are made of."""
        found = self.named_in(node)
        for inner in walk(node):
            variable = self.reader.variable(inner) if inner.type == "identifier" else None
            if variable is not None and id(variable) not in seen:
                seen = seen | {id(variable)}
                for value in self.values(variable):
                    found |= self.closure(value, seen)
        return found

    def divides(self, node: Node) -> bool:
        """Whether an index is made by division or remainder, so that two threads may come to one element."""
        return bool(self._divisors(node, "/", frozenset()) | self._divisors(node, "%", frozenset()))

    def _divisors(self, node: Node, sign: str, seen: frozenset[int]) -> set[str]:
        found = set()
        for inner in walk(node):
            if inner.type == "binary_expression" and inner.children[1].type == sign:
                found.add("".join(self.reader.text(inner.named_children[-1]).split()))
            variable = self.reader.variable(inner) if inner.type == "identifier" else None
            if variable is not None and id(variable) not in seen:
                seen = seen | {id(variable)}
                for value in self.values(variable):
                    found |= self._divisors(value, sign, seen)
        return found

    def advances(self, element: Node, loop: Node) -> bool:
        """Whether an element is another one in each round: its index depends on what the loop steps, by + - * only,
        or by a quotient together with its remainder.
        """
        stepped = set()
        update = loop.child_by_field_name("update")
        for inner in walk(update) if update is not None else ():
            if inner.type in ("assignment_expression", "update_expression") and inner.named_children:
                variable = self.reader.variable(inner.named_children[0])
                if variable is not None:
                    stepped.add(id(variable))
        if not stepped:
            return False
        whole = self._divisors(element, "/", frozenset()) & self._divisors(element, "%", frozenset())
        return self._reaches(element, stepped, frozenset(), frozenset(whole))

    def _reaches(self, node: Node, stepped: set[int], seen: frozenset[int], whole: frozenset[str]) -> bool:
        for inner in walk(node):
            if inner.type == "identifier" and (variable := self.reader.variable(inner)) is not None:
                if id(variable) in stepped:
                    if self._linear(inner, node, whole):
                        return True
                    continue
                if id(variable) in seen:
                    continue
                seen = seen | {id(variable)}
                if any(self._reaches(value, stepped, seen, whole) for value in self.values(variable)):
                    return True
        return False

    def _linear(self, node: Node, within: Node, whole: frozenset[str]) -> bool:
        at = node
        while at.id != within.id and at.parent is not None:
            at = at.parent
            if at.type == "binary_expression" and at.children[1].type not in ("+", "-", "*", "<<", "|", "^"):
                divisor = "".join(self.reader.text(at.named_children[-1]).split())
                return at.children[1].type in ("/", "%") and divisor in whole
        return True


def _scanned_into(program: Program, call: Node) -> list[Node]:
    """Return what a scan of CUB may write: what comes after the storage of a block and the value."""
    function = call.child_by_field_name("function")
    name = plain_name(program, function) if function is not None else ""
    if not name.startswith((f"{PREFIX}BlockScan", f"{PREFIX}WarpScan")):
        return []
    return call_arguments(call)[2 if name.startswith(f"{PREFIX}Block") else 1 :]


def place_parts(node: Node) -> list[Node]:
    """Return what decides which element an access is to: its pointer and its index."""
    if node.type in ("subscript_expression", "pointer_expression", "field_expression"):
        return [child for child in node.named_children if child.type != "field_identifier"]
    return [node]


def _is_pure(program: Program, routine: Routine, depth: int = 0) -> bool:
    """Whether a function computes with its arguments alone."""
    if depth > 8:
        return False
    for node in walk(routine.body):
        if node.type in _ACCESSES or node.type == "gnu_asm_expression":
            return False
        if node.type == "identifier" and program.text(node) in ("threadIdx", "clock", "clock64"):
            return False
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            name = plain_name(program, function) if function is not None else ""
            emit = emits().calls.get(name)
            routines = called(program, node)
            known = name in (*_SAFE_CALLS, *CASTS) or canonical(name) in SCALARS
            known |= emit is not None and emit.result not in ("*", "void")
            known |= bool(routines) and all(_is_pure(program, each, depth + 1) for each in routines)
            if not known:
                return False
    return True
