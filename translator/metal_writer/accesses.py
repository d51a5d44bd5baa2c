"""Which elements of which arrays a kernel reads and writes, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.expressions import Expressions, call_arguments, plain_name
from translator.metal_writer.program import Routine

READ, WRITE, UPDATE, ATOMIC = "read", "write", "update", "atomic"
_CHOICES = ("if_statement", "conditional_expression", "switch_statement")
LOOPS = ("for_statement", "while_statement", "do_statement")


@dataclass(frozen=True)
class Access:
    """One place where an array of the launch is touched; ``key`` is the text of the element that it names."""

    array: str
    kind: str
    node: Node
    key: str
    routine: Routine


def find_accesses(readers: Mapping[Routine, Expressions]) -> list[Access]:
    """Return the accesses to device arrays in all functions that a kernel reaches, each function in its order."""
    found = []
    for routine, reader in readers.items():
        for node in walk(routine.body):
            for origins, kind in _touched(reader, node):
                key = "".join(reader.program.source.text_of(node).split())
                found += [Access(name, kind, node, key, routine) for space, name in origins if space == "array"]
    return found


def _touched(reader: Expressions, node: Node) -> Iterator[tuple[set[tuple[str, str]], str]]:
    if node.type == "subscript_expression":
        base = node.child_by_field_name("argument")
        if base is not None and reader.type_of(base).points and not reader.type_of(node).points:
            yield reader.origins_of(base), _kind(reader, node)
    elif node.type == "pointer_expression" and node.children[0].type == "*":
        if not reader.type_of(node).points:
            yield reader.origins_of(node.named_children[-1]), _kind(reader, node)
    elif node.type == "field_expression" and node.children[1].type == "->":
        yield reader.origins_of(node.named_children[0]), _kind(reader, node)
    elif node.type == "identifier":
        variable = reader.variable(node)
        if variable is not None and variable.type.reference and variable.node.id != node.id:
            yield set(variable.origins), _kind(reader, node)
    elif node.type == "call_expression":
        function, arguments = node.child_by_field_name("function"), call_arguments(node)
        name = plain_name(reader.program, function) if function is not None else ""
        if not arguments:
            return
        if name.startswith("atomic"):
            yield reader.origins_of(arguments[0]), ATOMIC
        elif name.startswith("__ld"):
            yield reader.origins_of(arguments[0]), READ
        elif name.startswith("__st") and len(arguments) == 2:
            yield reader.origins_of(arguments[0]), WRITE
        elif name == "__pipeline_memcpy_async" and len(arguments) > 1:
            yield reader.origins_of(arguments[0]), WRITE
            yield reader.origins_of(arguments[1]), READ


def _kind(reader: Expressions, node: Node) -> str:
    """Return what the expression around an element does with it; "address" when it only takes its address."""
    at, above = node, node.parent
    while above is not None:
        if above.type == "parenthesized_expression" or (
            above.type in ("field_expression", "subscript_expression") and above.named_children[0].id == at.id
        ):
            at, above = above, above.parent
            continue
        if above.type == "assignment_expression" and above.named_children[0].id == at.id:
            return WRITE if above.children[1].type == "=" else UPDATE
        if above.type == "update_expression":
            return UPDATE
        if above.type == "pointer_expression" and above.children[0].type == "&":
            return "address"
        break
    return READ


def loops_around(node: Node, within: Node) -> list[Node]:
    """Return the loops that a node stands in, the outermost first."""
    loops: list[Node] = []
    above = node.parent
    while above is not None and above.id != within.id:
        if above.type in LOOPS:
            loops.insert(0, above)
        above = above.parent
    return loops


def leaves_early(loop: Node) -> bool:
    """Whether a loop, or a round of it, may end before its end: by ``break`` or ``continue``."""
    return any(
        child.type in ("break_statement", "continue_statement") or (child.type not in LOOPS and leaves_early(child))
        for child in loop.named_children
    )


def conditions_around(node: Node, within: Node) -> list[tuple[Node, Node]]:
    """Return what a node stands in one branch of, with the conditions, the outermost first.

    These are ifs, switches, and ``&&`` and ``||``, of which the right side may be left out.
    """
    found: list[tuple[Node, Node]] = []
    at, above = node, node.parent
    while above is not None and above.id != within.id:
        condition = above.child_by_field_name("condition")
        if above.type in _CHOICES and condition is not None and condition.id != at.id:
            found.insert(0, (above, condition))
        elif above.type == "binary_expression" and above.children[1].type in ("&&", "||"):
            left = above.named_children[0]
            found[:0] = [(above, left)] if left.id != at.id else []
        at, above = above, above.parent
    return found


def branches_around(node: Node, within: Node) -> dict[int, str]:
    """Return the branch that a node stands in of each condition around it, by the condition's number."""
    return {condition.id: _branch(above, node) for above, condition in conditions_around(node, within)}


def _branch(above: Node, node: Node) -> str:
    for name in ("consequence", "alternative", "right"):
        part = above.child_by_field_name(name)
        if part is not None and part.start_byte <= node.start_byte and node.end_byte <= part.end_byte:
            return name
    case = node
    while case.parent is not None and case.type != "case_statement":
        case = case.parent
    return f"case:{case.id}"
