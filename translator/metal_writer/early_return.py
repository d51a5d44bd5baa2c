"""Threads that return before a barrier: in Metal every thread must reach it, so the rest of the kernel runs under a
condition instead, barriers outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.cub_idioms import PREFIX
from translator.metal_writer.dependence import Dependence
from translator.metal_writer.expressions import plain_name
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.groups import waits_for_block
from translator.metal_writer.program import Program
from translator.metal_writer.refused import Refused

WAITING = ("__syncthreads", f"{PREFIX}Block")
LEAVE, GUARD, CHOOSE = "leave", "guard", "choose"
"""What becomes of a statement: a return turns into a flag, work gets a condition, a declaration a choice of values."""

_ADVICE = "put a condition around the work and let every thread reach the barrier"
_LOOPS = ("for_statement", "while_statement", "do_statement")


@dataclass(frozen=True)
class Guards:
    """What is done to which statement, by node id."""

    actions: dict[int, str]


def has_barrier(program: Program, node: Node) -> bool:
    """Whether a barrier of the block stands in a node, or in a function that it calls."""
    for call in calls_in(node):
        function = call.child_by_field_name("function")
        if function is not None and plain_name(program, function).startswith(WAITING):
            return True
        if waits_for_block(program, call):
            return True
        if any(has_barrier(program, routine.body) for routine in called(program, call)):
            return True
    return False


def plan_guards(dependence: Dependence) -> Guards:
    """Return what must be done so that no thread returns before a barrier; raise `Refused` where that can't be done."""
    program, body = dependence.reader.program, dependence.routine.body
    statements = [child for child in body.named_children if child.type != "comment"]
    barriers = [index for index, child in enumerate(statements) if has_barrier(program, child)]
    actions: dict[int, str] = {}
    if not barriers:
        return Guards(actions)
    guarded = False
    for index, statement in enumerate(statements):
        returns = [node for node in walk(statement) if node.type == "return_statement"]
        if returns and index <= barriers[-1] and not _stays(dependence, statement, returns):
            if not _is_early_return(statement, returns):
                raise Refused(returns[0], "some threads return before a barrier that others reach", _ADVICE)
            actions[statement.id] = LEAVE
            guarded = True
        elif guarded:
            _guard(dependence, statement, actions)
    return Guards(actions)


def _stays(dependence: Dependence, statement: Node, returns: list[Node]) -> bool:
    """Whether all threads of a block take a return, or none does."""
    for node in returns:
        above = node.parent
        while above is not None and above.id != dependence.routine.body.id:
            condition = above.child_by_field_name("condition")
            if condition is not None and not dependence.uniform(condition):
                return False
            above = above.parent
    return True


def _is_early_return(statement: Node, returns: list[Node]) -> bool:
    """Whether a statement is ``if (condition) return;``, with or without work before the return."""
    then = statement.child_by_field_name("consequence")
    if statement.type != "if_statement" or then is None or len(returns) != 1:
        return False
    if statement.child_by_field_name("alternative") is not None:
        return False
    last = then.named_children[-1] if then.type == "compound_statement" and then.named_children else then
    return last.id == returns[0].id


def _guard(dependence: Dependence, statement: Node, actions: dict[int, str]) -> None:
    program = dependence.reader.program
    kind = statement.type
    if kind in ("preproc_call", "comment", "using_declaration"):
        return
    if not has_barrier(program, statement):
        if kind == "declaration":
            if _touches_memory(statement) and "__shared__" not in program.text(statement):
                actions[statement.id] = CHOOSE
        else:
            actions[statement.id] = GUARD
        return
    if kind == "expression_statement" and _is_barrier(program, statement):
        return
    if kind == "compound_statement":
        for inner in statement.named_children:
            _guard(dependence, inner, actions)
        return
    if kind in _LOOPS or kind == "if_statement":
        for part in ("initializer", "condition", "update"):
            piece = statement.child_by_field_name(part)
            if piece is not None and not dependence.uniform(piece):
                raise Refused(statement, "a barrier in a loop or branch that threads leave at different times", _ADVICE)
        for part in ("body", "consequence", "alternative"):
            branch = statement.child_by_field_name(part)
            if branch is not None:
                target = branch.named_children[-1] if branch.type == "else_clause" else branch
                if target.type == "compound_statement" or has_barrier(program, target):
                    _guard(dependence, target, actions)
                else:
                    actions[target.id] = GUARD
        return
    raise Refused(statement, "threads that should have returned would take part in this barrier", _ADVICE)


def _is_barrier(program: Program, statement: Node) -> bool:
    text = program.text(statement).rstrip("; ").replace(" ", "")
    return text == "__syncthreads()" or any(waits_for_block(program, call) for call in calls_in(statement))


def _touches_memory(statement: Node) -> bool:
    for node in walk(statement):
        if node.type in ("subscript_expression", "call_expression"):
            return True
        if node.type == "pointer_expression" and node.children[0].type == "*":
            return True
    return False
