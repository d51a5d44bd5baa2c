"""Structs that are passed to kernels by value, taken apart: Metal's kernels get arrays and numbers, so each member that
is read becomes a parameter of its own, in the kernel and in the functions that the struct is handed to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda, walk
from translator.launch_plan import ArrayArgument, LaunchPlan, StructArgument, StructMember
from translator.metal_writer.expressions import call_arguments
from translator.metal_writer.flow import called
from translator.metal_writer.program import Routine, Variable, read_program
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_uses import Function, StructUses, Use, declaration_of, member_at
from translator.metal_writer.types import canonical
from translator.struct_types import Struct, joined, open_type, read_structs

_NAMES = ("type_identifier", "identifier", "namespace_identifier")
_CASTS = ("reinterpret_cast", "static_cast")
_WORDS = {"float32": "float", "float16": "half", "bfloat16": "__nv_bfloat16", "int32": "int", "uint32": "unsigned int",
          "int8": "signed char", "uint8": "unsigned char", "int64": "long long", "bool": "bool"}  # fmt: skip


@dataclass(frozen=True)
class Opened:
    """The source and the plan without structs among arguments; what could not be taken apart, by kernel."""

    source: CudaSource
    plan: LaunchPlan
    refused: tuple[tuple[str, Refused], ...] = ()


def open_structs(source: CudaSource, plan: LaunchPlan) -> Opened:
    """Return the source and plan with each struct argument replaced by its members; lines keep their numbers."""
    given = {
        (step.kernel, at): argument
        for step in plan.steps
        for at, argument in enumerate(step.arguments)
        if isinstance(argument, StructArgument)
    }
    if not given:
        return Opened(source, plan)
    uses = StructUses(read_program(source))
    refused = []
    for kernel in dict.fromkeys(name for name, _ in given):
        try:
            for routine in (r for r in uses.program.routines_of(kernel) if r.kernel):
                for (name, at), argument in given.items():
                    if name == kernel and at < len(routine.parameters):
                        uses.hold(routine, routine.parameters[at], argument)
                uses.follow(routine)
        except Refused as error:
            refused.append((kernel, error))
    if refused:
        return Opened(source, plan, tuple(refused))
    work = _Rewriting(uses, read_structs(source), plan)
    try:
        text = work.rewritten(source.text)
    except Refused as error:
        return Opened(source, plan, ((next(iter(given))[0], error),))
    return Opened(parse_cuda(text, source.path), work.flat_plan())


class _Rewriting:
    """Puts members where structs were."""

    def __init__(self, uses: StructUses, structs: dict[str, Struct], plan: LaunchPlan) -> None:
        self.uses, self.program, self.functions = uses, uses.program, uses.functions
        self.structs, self.plan = structs, plan
        self.dtypes = {array.name: array.dtype for array in plan.arrays}

    def rewritten(self, text: str) -> str:
        """Return the text with the structs taken apart."""
        edits: dict[tuple[int, int], str] = {}
        for routine, function in self.functions.items():
            self._name(routine, function)
        for routine, function in self.functions.items():
            for parameter in routine.parameters:
                if id(parameter) in function.held:
                    listed = [f"{self._type(routine, parameter, path)} {name}"
                              for path, name in self._members(routine, parameter)]  # fmt: skip
                    begin, end = parameter.declaration.start_byte, parameter.declaration.end_byte
                    if not listed:
                        begin, end = with_comma(parameter.declaration)
                    edits[begin, end] = ", ".join(listed)
            for use in self.uses.uses(routine):
                self._edit(routine, function, use, edits)
            self._drop_template(routine, function, edits)
        for (begin, end), new in sorted(edits.items(), reverse=True):
            lines = text[begin:end].count("\n")
            text = text[:begin] + new + "\n" * lines + text[end:]
        return text

    def _edit(self, routine: Routine, function: Function, use: Use, edits: dict[tuple[int, int], str]) -> None:
        node, root = use.node, use.held.root
        target, path = member_at(use.held.struct, use.path), joined(use.held.path, use.path)
        if not isinstance(target, StructArgument):
            node = self._without_cast(routine, root, path, node)
            edits[node.start_byte, node.end_byte] = function.names[root, path]
            return
        above = node.parent
        call = above.parent if above is not None and above.type == "argument_list" else None
        if call is None:
            statement = declaration_of(node)
            edits[statement.start_byte, statement.end_byte] = ""
            return
        callee = next(iter(called(self.program, call)))
        at = next(i for i, a in enumerate(call_arguments(call)) if a.id == node.id)
        names = [function.names[root, joined(path, inner)]
                 for inner, _ in self._members(callee, callee.parameters[at])]  # fmt: skip
        begin, end = (node.start_byte, node.end_byte) if names else with_comma(node)
        edits[begin, end] = ", ".join(names)

    def _members(self, routine: Routine, parameter: Variable) -> list[tuple[str, str]]:
        """Return the members that a function gets in place of a struct, in the order of the struct, with names."""
        function = self.functions[routine]
        order = [path for path, _ in function.held[id(parameter)].struct.leaves()]
        return [(path, function.names[parameter, path]) for path in order if path in function.used[parameter]]

    def _name(self, routine: Routine, function: Function) -> None:
        words = {self.program.text(node) for node in walk(routine.node) if node.type == "identifier"}
        taken = set(routine.variables) | words | set(self.program.items)
        taken -= {v.name for v in routine.parameters if id(v) in function.held}
        for parameter, paths in function.used.items():
            for path in paths:
                short = re.sub(r"\W+", "_", path.rpartition(".")[2]).strip("_")
                name = short if short not in taken else re.sub(r"\W+", "_", f"{parameter.name}.{path}").strip("_")
                while name in taken:
                    name += "_"
                taken.add(name)
                function.names[parameter, path] = name

    def _type(self, routine: Routine, parameter: Variable, path: str) -> str:
        """Return the type of a member as this function can say it."""
        held = self.functions[routine].held[id(parameter)]
        member = next(member for inner, member in held.struct.leaves() if inner == path)
        written = self.program.text(parameter.declaration)
        written = written[: written.rfind(parameter.name)].replace("*", "")
        part = open_type(written, self.structs, {}, lambda text: int(text) if text.isdigit() else None)
        own = dict(part.leaves()) if part is not None else {}
        type_text = own[path].type if path in own else member.type
        if re.search(r"\bvoid\b", type_text):
            type_text = re.sub(r"\bvoid\b", self._pointed(routine, parameter, path, member) or "void", type_text)
        return type_text

    def _pointed(self, routine: Routine, root: Variable, path: str, member: StructMember) -> str:
        """Return what a ``void*`` points to: elements of its array, or for a null pointer what it is cast to."""
        if isinstance(member.argument, ArrayArgument):
            return _WORDS.get(self.dtypes.get(member.argument.array, ""), "")
        for use in self.uses.uses(routine):
            named = use.held.root is root and joined(use.held.path, use.path) == path
            if named and (cast := self._cast_around(use.node)) is not None:
                return self._template(routine).get(cast[1], cast[1])
        return ""

    def _without_cast(self, routine: Routine, root: Variable, path: str, node: Node) -> Node:
        """Return the cast around a ``void*`` where it only gives the type that the member now has."""
        member = next(m for inner, m in self.functions[routine].held[id(root)].struct.leaves() if inner == path)
        cast = self._cast_around(node) if "void" in member.type else None
        if cast is None:
            return node
        wanted = self._template(routine).get(cast[1], cast[1])
        return cast[0] if canonical(wanted) == canonical(self._pointed(routine, root, path, member)) else node

    def _cast_around(self, node: Node) -> tuple[Node, str] | None:
        """Return the cast that a pointer stands in, and to what it makes the pointer lead."""
        above = node.parent
        if above is not None and above.type == "cast_expression":
            target, cast = above.child_by_field_name("type"), above
        elif above is not None and above.type == "argument_list" and above.parent is not None:
            cast = above.parent
            function = cast.child_by_field_name("function")
            given = function.child_by_field_name("arguments") if function is not None else None
            if function is None or given is None or not self.program.text(function).startswith(_CASTS):
                return None
            target = given.named_children[0]
        else:
            return None
        plain = re.sub(r"\bconst\b|\*|__restrict__", " ", self.program.text(target)) if target is not None else ""
        return cast, " ".join(plain.split())

    def _template(self, routine: Routine) -> dict[str, str]:
        """Return a kernel's template arguments where every launch gives the same ones."""
        given = {step.template for step in self.plan.steps if step.kernel == routine.name}
        if not routine.kernel or len(given) != 1:
            return {}
        names = [self.program.text(p).replace("=", " = ").split() for p in routine.template]
        return dict(zip((n[n.index("=") - 1] if "=" in n else n[-1] for n in names), given.pop(), strict=False))

    def _drop_template(self, routine: Routine, function: Function, edits: dict[tuple[int, int], str]) -> None:
        """Drop template parameters that were only there for the struct."""
        drop = self._dropped(routine)
        if not drop:
            return
        parameters = routine.outer.child_by_field_name("parameters")
        assert parameters is not None
        rest = [self.program.text(p) for i, p in enumerate(routine.template) if i not in drop]
        begin = parameters.start_byte if rest else routine.outer.start_byte
        edits[begin, parameters.end_byte] = f"<{', '.join(rest)}>" if rest else ""

    def _dropped(self, routine: Routine) -> set[int]:
        """Return which template parameters nothing names any more once the structs are gone."""
        function = self.functions.get(routine)
        if function is None:
            return set()
        gone = [
            (p.declaration.start_byte, p.declaration.end_byte) for p in routine.parameters if id(p) in function.held
        ]
        drop = set()
        for at, parameter in enumerate(routine.template):
            name = re.split(r"\s*=", self.program.text(parameter))[0].split()[-1]
            words = [n for n in walk(routine.node) if n.type in _NAMES and self.program.text(n) == name]
            inside = [n for n in words if any(b <= n.start_byte < e for b, e in gone)]
            types = " ".join(
                self._type(routine, p, path) for p in routine.parameters if id(p) in function.held
                for path, _ in self._members(routine, p)
            )  # fmt: skip
            if inside and len(inside) == len(words) and not re.search(rf"\b{name}\b", types):
                drop.add(at)
        return drop

    def flat_plan(self) -> LaunchPlan:
        """Return the plan with the members that kernels read in place of structs."""
        steps = []
        for step in self.plan.steps:
            kernel = next((r for r in self.functions if r.kernel and r.name == step.kernel), None)
            if kernel is None:
                steps.append(step)
                continue
            arguments = []
            for parameter, argument in zip(kernel.parameters, step.arguments, strict=False):
                if isinstance(argument, StructArgument):
                    used = self.functions[kernel].used[parameter]
                    arguments += [member.argument for path, member in argument.leaves() if path in used]
                else:
                    arguments.append(argument)
            drop = self._dropped(kernel)
            template = tuple(text for at, text in enumerate(step.template) if at not in drop)
            steps.append(replace(step, arguments=tuple(arguments), template=template))
        return replace(self.plan, steps=tuple(steps))


def with_comma(node: Node) -> tuple[int, int]:
    """Return the extent of a parameter or argument with a comma beside it."""
    after, before = node.next_sibling, node.prev_sibling
    if after is not None and after.type == ",":
        return node.start_byte, after.end_byte
    if before is not None and before.type == ",":
        return before.start_byte, node.end_byte
    return node.start_byte, node.end_byte
