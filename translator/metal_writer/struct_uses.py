"""What kernels, and the functions that they hand structs to, read of the structs that they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from translator.cuda_source import walk
from translator.launch_plan import StructArgument
from translator.metal_writer.expressions import call_arguments
from translator.metal_writer.flow import called
from translator.metal_writer.program import Program, Routine, Variable
from translator.metal_writer.refused import Refused
from translator.struct_types import joined

ADVICE = "read its members one by one, or pass plain numbers and arrays"


@dataclass
class Held:
    """A parameter, or a local that is another name for one, that holds a struct: ``root`` and ``path`` say which."""

    root: Variable
    path: str
    struct: StructArgument
    alias: bool = False


@dataclass
class Function:
    """What one function does with the structs that it is given: by parameter, the members that it reads."""

    held: dict[int, Held] = field(default_factory=dict)
    used: dict[Variable, dict[str, None]] = field(default_factory=dict)
    names: dict[tuple[Variable, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Use:
    """A place where a struct or a member of it is named: ``node`` is the whole of it."""

    node: Node
    held: Held
    path: str


class StructUses:
    """The functions that structs reach, and what they read of them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions: dict[Routine, Function] = {}

    def hold(self, routine: Routine, parameter: Variable, struct: StructArgument) -> bool:
        """Note that a parameter holds a struct; return whether that is new."""
        function = self.functions.setdefault(routine, Function())
        before = function.held.get(id(parameter))
        if before is not None:
            if [path for path, _ in before.struct.leaves()] != [path for path, _ in struct.leaves()]:
                raise Refused(parameter.node, f"'{parameter.name}' is given different structs", ADVICE)
            return False
        function.held[id(parameter)] = Held(parameter, "", struct)
        function.used[parameter] = {}
        return True

    def follow(self, kernel: Routine) -> None:
        """Follow structs into the functions that are called, and their members back, until nothing changes."""
        changed = True
        while changed:
            changed = False
            for routine in list(self.functions):
                self._find_aliases(routine)
                for use in self.uses(routine):
                    changed |= self._take(routine, use)

    def _find_aliases(self, routine: Routine) -> None:
        function = self.functions[routine]
        for variable in routine.all_variables():
            value = variable.value
            if id(variable) in function.held or value is None or value.type in ("initializer_list", "call_expression"):
                continue
            for use in self.uses(routine):
                if use.node.id == value.id and isinstance(
                    target := member_at(use.held.struct, use.path), StructArgument
                ):
                    function.held[id(variable)] = Held(use.held.root, joined(use.held.path, use.path), target, True)
                    break

    def uses(self, routine: Routine) -> Iterator[Use]:
        """Yield where structs are named, each with the longest path that is written there."""
        function = self.functions[routine]
        for node in walk(routine.body):
            variable = routine.variable(self.program.text(node), node.start_byte) if node.type == "identifier" else None
            held = function.held.get(id(variable)) if variable is not None else None
            if variable is None or held is None or node.id == variable.node.id:
                continue
            yield Use(*self._path(node, held))

    def _path(self, node: Node, held: Held) -> tuple[Node, Held, str]:
        path, at = "", node
        while (above := at.parent) is not None:
            if above.type in ("pointer_expression", "parenthesized_expression") and not path and (
                above.type == "pointer_expression" or above.named_child_count == 1
            ):  # fmt: skip
                if above.parent is not None and above.parent.type in ("if_statement", "while_statement"):
                    break
                at = above
                continue
            if not isinstance(member_at(held.struct, path), StructArgument):
                break
            if above.type == "field_expression" and above.named_children[0].id == at.id:
                path = joined(path, self.program.text(above.named_children[-1]))
            elif above.type == "subscript_expression" and above.named_children[0].id == at.id:
                index = self.program.text(above.named_children[-1]).replace(" ", "")
                if not re.fullmatch(r"\[\d+\]", index):
                    raise Refused(
                        above, f"'{self.program.text(above)[:40]}' is a member by an index that varies", ADVICE
                    )
                path += index
            else:
                break
            at = above
        while path == "" and at.type == "parenthesized_expression":
            at = at.named_children[0]
        return at, held, path

    def _take(self, routine: Routine, use: Use) -> bool:
        """Note what a use reads; return whether that is new."""
        function = self.functions[routine]
        target = member_at(use.held.struct, use.path)
        path = joined(use.held.path, use.path)
        if target is None:
            raise Refused(use.node, f"'{self.program.text(use.node)[:40]}' is no member that is followed", ADVICE)
        wanted = {path: None}
        if isinstance(target, StructArgument):
            wanted = self._handed_on(routine, use, target, path)
        elif _is_written(use.node) and (
            use.held.root.type.reference or use.held.root.type.pointers or any(h.alias for h in function.held.values())
        ):
            raise Refused(use.node, f"'{self.program.text(use.node)[:40]}' is changed and has several names", ADVICE)
        new = [each for each in wanted if each not in function.used[use.held.root]]
        function.used[use.held.root].update(dict.fromkeys(new))
        return bool(new)

    def _handed_on(self, routine: Routine, use: Use, target: StructArgument, path: str) -> dict[str, None]:
        """Return the members that a struct is handed on for: those that the callee reads."""
        named = any(v.value is not None and v.value.id == use.node.id for v in routine.all_variables())
        if named and _declares_alone(use.node):
            return {}
        above = use.node.parent
        call = above.parent if above is not None and above.type == "argument_list" else None
        for callee in called(self.program, call) if call is not None and call.type == "call_expression" else ():
            at = next((i for i, a in enumerate(call_arguments(call)) if a.id == use.node.id), None)  # type: ignore[arg-type]
            if at is not None and at < len(callee.parameters):
                parameter = callee.parameters[at]
                self.hold(callee, parameter, target)
                return {joined(path, inner): None for inner in self.functions[callee].used[parameter]}
        raise Refused(use.node, f"'{self.program.text(use.node)[:40]}' is used as a whole", ADVICE)


def member_at(struct: StructArgument, path: str) -> object:
    """Return the argument that a path leads to, None when there is none."""
    if not path:
        return struct
    for member in struct.members:
        if not member.name and isinstance(member.argument, StructArgument):
            found = member_at(member.argument, path)
        elif path == member.name:
            found = member.argument
        elif path.startswith(member.name) and path[len(member.name)] in ".[" and isinstance(
            member.argument, StructArgument
        ):  # fmt: skip
            found = member_at(member.argument, path[len(member.name) :].lstrip("."))
        else:
            continue
        if found is not None:
            return found
    return None


def _is_written(node: Node) -> bool:
    above = node.parent
    return above is not None and (
        (above.type == "assignment_expression" and above.named_children[0].id == node.id)
        or above.type == "update_expression"
        or (above.type == "pointer_expression" and above.children[0].type == "&")
    )


def declaration_of(node: Node) -> Node:
    while node.type != "declaration" and node.parent is not None:
        node = node.parent
    return node


def _declares_alone(node: Node) -> bool:
    return len(declaration_of(node).children_by_field_name("declarator")) == 1
