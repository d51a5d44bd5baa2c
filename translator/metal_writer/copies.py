"""One copy of a function for each kind of memory that it is given, where one text can't serve them all."""

from __future__ import annotations

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.expressions import Expressions, call_arguments, plain_name
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.program import Program, Routine, Variable, read_function

_SPACES = {"array": "device", "device": "device", "shared": "threadgroup", "thread": "thread", "constant": "constant"}


def copy_functions(program: Program, readers: dict[Routine, Expressions], order: list[Routine]) -> bool:
    """Give calls with other memory a copy of their own; return whether there was one to make.

    Functions that only index what they are given don't need it: a type for the pointer serves them.
    """
    for routine in order:
        if routine.kernel or not any(_needs_copies(readers[routine], p) for p in routine.parameters):
            continue
        groups: dict[tuple[str, ...], list[Node]] = {}
        for caller in order:
            for call in calls_in(caller.body):
                if routine in called(program, call):
                    groups.setdefault(_spaces(readers[caller], routine, call), []).append(call)
        if len(groups) < 2:
            continue
        for spaces, calls in list(groups.items())[1:]:
            copy = read_function(program, routine.node, routine.outer)
            copy.copy_of = next(space for space in spaces if space)
            readers[copy] = Expressions(program, copy, {}, readers[routine].globals)
            order.insert(order.index(routine) + 1, copy)
            program.copies |= {call.id: copy for call in calls}
        return True
    return False


def _needs_copies(reader: Expressions, parameter: Variable) -> bool:
    kinds = {space for space, _ in parameter.origins}
    if len(kinds) < 2:
        return False
    if parameter.type.reference:
        return not parameter.type.const or bool(parameter.type.extents)
    return bool(parameter.type.extents) or _casts(reader, parameter)


def _casts(reader: Expressions, parameter: Variable) -> bool:
    """Whether a function casts the pointer, or works on it with atomics: then the memory must be named."""
    for node in walk(reader.routine.body):
        target: Node | None = None
        if node.type == "cast_expression":
            target = node.child_by_field_name("value")
        elif node.type == "call_expression":
            name = plain_name(reader.program, node.child_by_field_name("function") or node)
            if name.endswith("_cast") or name.startswith("atomic"):
                target = next(iter(call_arguments(node)), None)
        if target is not None and reader.origins_of(target) & parameter.origins:
            return True
    return False


def _spaces(reader: Expressions, routine: Routine, call: Node) -> tuple[str, ...]:
    found = []
    for parameter, argument in zip(routine.parameters, call_arguments(call), strict=False):
        origins = reader.lvalue_origins(argument) if parameter.type.reference else reader.origins_of(argument)
        points = parameter.type.reference or parameter.type.points
        found.append("_".join(sorted({_SPACES[space] for space, _ in origins})) if points else "")
    return tuple(found)
