"""Where the pointers of a kernel lead, followed through its locals and the functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.expressions import Expressions, call_arguments, plain_name
from translator.metal_writer.program import Origin, Program, Routine
from translator.metal_writer.refused import Refused

MOST_NESTING = 160
"""How deep the nodes of a function's tree may nest."""

WAITING = ("while_statement", "do_statement", "for_statement")


def reachable(program: Program, kernel: Routine) -> list[Routine]:
    """Return the kernel and what it calls, callers first; refuse recursion and launches from within a kernel."""
    order: list[Routine] = []
    done: set[int] = set()

    def visit(routine: Routine, above: tuple[int, ...]) -> None:
        if id(routine) in done:
            return
        if depth_of(routine.node) > MOST_NESTING:
            raise Refused(routine.node, f"'{routine.name}' nests more than {MOST_NESTING} deep", "write it in steps")
        for call in calls_in(routine.node):
            if any(child.type == "kernel_call_syntax" for child in call.children):
                raise Refused(call, "a kernel is launched from within a kernel", "launch it from the host")
            for callee in called(program, call):
                if id(callee) in (*above, id(routine)):
                    raise Refused(call, f"'{callee.name}' calls itself", "Metal has no recursion: write a loop")
                visit(callee, (*above, id(routine)))
        done.add(id(routine))
        order.append(routine)

    visit(kernel, ())
    return order[::-1]


def operators(program: Program, readers: Mapping[Routine, Expressions]) -> list[Routine]:
    """Return the operators of the source that these functions use: sign and type of an operand fit."""
    used: set[tuple[str, str]] = set()
    for reader in readers.values():
        for node in walk(reader.routine.body):
            if node.type in ("binary_expression", "assignment_expression"):
                for operand in (node.named_children[0], node.named_children[-1]):
                    used.add((node.children[1].type, reader.type_of(operand).name))
    return [
        routine
        for name in program.functions
        if name.startswith("operator")
        for routine in program.routines_of(name)
        if any((name.removeprefix("operator").strip(), p.type.name) in used for p in routine.parameters)
    ]


def depth_of(node: Node) -> int:
    """Return how deep the tree below a node is."""
    deepest, level = 0, [node]
    while level and deepest <= MOST_NESTING:
        deepest += 1
        level = [child for parent in level for child in parent.children]
    return deepest


def grid_barrier(program: Program, routines: list[Routine]) -> Node | None:
    """Return where a kernel asks for all blocks of the grid, to wait for them."""
    for routine in routines:
        for call in calls_in(routine.node):
            function = call.child_by_field_name("function")
            if function is not None and plain_name(program, function) in ("this_grid", "this_multi_grid"):
                return call
    return None


def spin_lock(program: Program, routines: list[Routine]) -> Node | None:
    """Return a loop that waits for other threads: its condition asks an atomic."""
    for routine in routines:
        for node in walk(routine.body):
            condition = node.child_by_field_name("condition") if node.type in WAITING else None
            if condition is not None and any(
                plain_name(program, call.child_by_field_name("function") or call) in ("atomicCAS", "atomicExch")
                for call in calls_in(condition)
            ):
                return node
    return None


def fence(program: Program, routines: list[Routine]) -> Node | None:
    """Return a fence for other blocks."""
    for routine in routines:
        for call in calls_in(routine.body):
            if program.text(call).startswith(("__threadfence()", "__threadfence_system()")):
                return call
    return None


def last_block(program: Program, routines: list[Routine]) -> Node | None:
    """Return where blocks count themselves, so that the last one goes on with what all of them wrote."""
    if fence(program, routines) is None:
        return None
    for routine in routines:
        text = "".join(program.text(routine.body).split())
        for call in calls_in(routine.body):
            counted = re.match(r"atomic(?:Inc|Add)\s*\(", program.text(call))
            if counted and re.search(r"==\(?gridDim|gridDim\.\w\*?[\w.*]*-1|==\w*(?:[bB]locks|BLOCKS)\w*-1", text):
                return call
    return None


def calls_in(node: Node) -> Iterator[Node]:
    """Yield the calls below a node."""
    return (inner for inner in walk(node) if inner.type == "call_expression")


def called(program: Program, call: Node) -> list[Routine]:
    """Return the functions of the source that a call can mean: those of its name that take so many arguments."""
    function = call.child_by_field_name("function")
    if call.id in program.copies:
        return [program.copies[call.id]]
    if function is None or function.type == "field_expression":
        return []
    found = program.routines_of(plain_name(program, function))
    fitting = [routine for routine in found if len(routine.parameters) == len(call_arguments(call))]
    return fitting or found


def follow_pointers(readers: Mapping[Routine, Expressions]) -> None:
    """Fill in the origins of every pointer variable, from those of the kernel's parameters, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for routine, reader in readers.items():
            for target, origins in _flows(readers, routine, reader):
                if not origins <= target:
                    target |= origins
                    changed = True


def _flows(
    readers: Mapping[Routine, Expressions], routine: Routine, reader: Expressions
) -> Iterator[tuple[set[Origin], set[Origin]]]:
    for variable in routine.all_variables():
        if variable.value is not None:
            if variable.type.reference:
                yield variable.origins, reader.lvalue_origins(variable.value)
            elif variable.type.pointers or (variable.type.name == "auto" and reader.type_of(variable.value).points):
                yield variable.origins, reader.origins_of(variable.value)
    for node in walk(routine.body):
        if node.type == "assignment_expression":
            left, right = node.named_children[0], node.named_children[-1]
            pointer = reader.variable(left) if left.type == "identifier" else None
            if pointer is not None and pointer.type.pointers and node.children[1].type == "=":
                yield pointer.origins, reader.origins_of(right)
        elif node.type == "call_expression":
            for callee in called(reader.program, node):
                for parameter, argument in zip(callee.parameters, call_arguments(node), strict=False):
                    if callee not in readers:
                        continue
                    if parameter.type.reference:
                        yield parameter.origins, reader.lvalue_origins(argument)
                    elif reader.type_of(argument).points:
                        yield parameter.origins, reader.origins_of(argument)
