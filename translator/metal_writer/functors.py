"""Functors, structs that are there for their functions: put in where they are template arguments, and passed by value.

A kernel or function gets a copy for each functor that a template parameter of it stands for. A kernel that is given one
by value gets the numbers that it is made of, and makes it anew at its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from translator.cuda_source import parse_cuda, walk
from translator.launch_plan import Argument, ArrayArgument, LaunchPlan, LaunchStep, StructArgument
from translator.metal_writer.binding import template_arguments
from translator.metal_writer.expressions import Expressions, call_arguments
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.function_arguments import PutIn, instance
from translator.metal_writer.names import template_name
from translator.metal_writer.program import Program, Routine, Variable, read_program
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import is_functor
from translator.metal_writer.struct_parameters import with_comma
from translator.struct_types import Struct, joined, read_structs

_MOST_COPIES = 64
_TYPES = (
    "type_parameter_declaration", "optional_type_parameter_declaration", "template_template_parameter_declaration",
)  # fmt: skip


@dataclass(frozen=True)
class _Copies:
    """What has been put in so far: ``names`` are those of copies, by the line and the arguments that they are for."""

    done: PutIn
    names: Mapping[tuple[int, tuple[str, ...]], str] = field(default_factory=dict)

    def unused(self, program: Program, name: str) -> str:
        """Return a name that nothing in the source has."""
        while re.search(rf"\b{name}\b", program.source.text):
            name += "_"
        return name


def put_in_functors(done: PutIn) -> tuple[PutIn, list[tuple[str, Refused]]]:
    """Return the source and plan with functors put in, and by kernel those that can't be passed by value."""
    if not any(struct.methods for struct in read_structs(done.source).values()):
        return done, []
    copies = _Copies(done)
    for kernel in dict.fromkeys(step.kernel for step in done.plan.steps):
        copies = _copy_kernel(copies, kernel)
    by_value, refused = _by_value(copies.done)
    copies = replace(copies, done=by_value)
    for _ in range(_MOST_COPIES):
        after = _copy_function(copies)
        if after is None:
            break
        copies = after
    return copies.done, refused


def _copy_kernel(copies: _Copies, name: str) -> _Copies:
    """Put in the functors that launches give a kernel: in place where all give the same, else in a copy for each."""
    done = copies.done
    program = read_program(done.source)
    kernel = next((routine for routine in program.routines_of(name) if routine.kernel), None)
    steps = [step for step in done.plan.steps if step.kernel == name]
    if kernel is None:
        return copies
    places = [
        at
        for at, parameter in enumerate(kernel.template)
        if parameter.type in _TYPES
        and any(at < len(step.template) and is_functor(program, step.template[at]) for step in steps)
    ]
    groups = dict.fromkeys(tuple(step.template[at] for at in places) for step in steps) if places else {}
    if not groups:
        return copies
    text, plan, lines = done.source.text, done.plan, dict(done.lines)
    kernels = dict(done.kernels)
    for given in groups:
        given_here = [step for step in steps if tuple(step.template[at] for at in places) == given]
        arguments = dict(zip(places, given, strict=True))
        own = name if len(groups) == 1 else copies.unused(program, _named(name, given))
        copy = instance(program, kernel, arguments, own)
        if len(groups) == 1:
            text = text[: kernel.outer.start_byte] + copy + text[kernel.outer.end_byte :]
        else:
            text = _appended(text, copy, kernel, lines)
            kernels[own] = name
        plan = replace(plan, steps=tuple(
            _without(step, places, own) if step in given_here else step for step in plan.steps))  # fmt: skip
    return replace(copies, done=PutIn(parse_cuda(text, done.source.path), plan, lines, kernels))


def _without(step: LaunchStep, places: list[int], kernel: str) -> LaunchStep:
    rest = tuple(text for at, text in enumerate(step.template) if at not in places)
    return replace(step, kernel=kernel, template=rest)


def _named(name: str, arguments: tuple[str, ...]) -> str:
    return "_".join([name, *(re.sub(r"\W+", "_", text).strip("_") for text in arguments)])


def _appended(text: str, copy: str, original: Routine, lines: dict[int, int]) -> str:
    """Return the text with a copy after its end, the copy's lines entered as those of the original."""
    text = text.rstrip("\n") + "\n\n"
    first, begin = text.count("\n") + 1, original.outer.start_point[0] + 1
    for at in range(copy.count("\n") + 1):
        lines[first + at] = lines.get(begin + at, begin + at)
    return text + copy + "\n"


def _by_value(done: PutIn) -> tuple[PutIn, list[tuple[str, Refused]]]:
    """Give kernels the numbers that functors among their parameters are made of; launches that can't be so go."""
    structs = read_structs(done.source)
    program = read_program(done.source)
    edits: dict[tuple[int, int], str] = {}
    opened: dict[tuple[str, int], StructArgument] = {}
    refused: dict[str, Refused] = {}
    for step in done.plan.steps:
        kernel = next((routine for routine in program.routines_of(step.kernel) if routine.kernel), None)
        for at, argument in enumerate(step.arguments if kernel is not None else ()):
            if kernel is None or at >= len(kernel.parameters):
                continue
            before, place = opened.get((step.kernel, at)), kernel.parameters[at].node
            if before is not None:
                if isinstance(argument, StructArgument) and _paths(before) != _paths(argument):
                    refused[step.kernel] = Refused(place, f"'{argument.type}' is made by different constructors",
                                                   "give each launch a kernel of its own")  # fmt: skip
                continue
            if isinstance(argument, StructArgument) and _is_whole(program, structs, kernel, at, argument):
                opened[step.kernel, at] = argument
                try:
                    _make_anew(program, structs, kernel, kernel.parameters[at], argument, edits)
                except Refused as error:
                    refused.setdefault(step.kernel, error)
    if not opened:
        return done, []
    text = done.source.text
    for (begin, end), new in sorted(edits.items(), reverse=True):
        text = text[:begin] + new + "\n" * text[begin:end].count("\n") + text[end:]
    steps = []
    for step in (step for step in done.plan.steps if step.kernel not in refused):
        arguments: list[Argument] = []
        for at, argument in enumerate(step.arguments):
            if isinstance(argument, StructArgument) and (step.kernel, at) in opened:
                arguments += [member.argument for _, member in argument.leaves()]
            else:
                arguments.append(argument)
        steps.append(replace(step, arguments=tuple(arguments)))
    plan = replace(done.plan, steps=tuple(steps))
    return replace(done, source=parse_cuda(text, done.source.path), plan=plan), list(refused.items())


def _paths(argument: StructArgument) -> list[str]:
    return [path for path, _ in argument.leaves()]


def _struct(structs: Mapping[str, Struct], type_text: str) -> Struct | None:
    return structs.get(re.sub(r"<.*", "", type_text, flags=re.DOTALL).rpartition("::")[2].strip())


def _is_whole(
    program: Program, structs: Mapping[str, Struct], kernel: Routine, at: int, argument: StructArgument
) -> bool:
    """Whether a kernel needs a struct as such: it calls its functions, or a constructor has made it."""
    struct = _struct(structs, argument.type)
    if struct is None or not struct.methods:
        return False
    name = re.escape(kernel.parameters[at].name)
    called_here = re.search(rf"\b{name}\s*(?:\(|\.\s*\w+\s*(?:<[^;()]*>)?\s*\()", program.text(kernel.body))
    return argument.made or is_functor(program, argument.type) or called_here is not None


def _make_anew(
    program: Program, structs: Mapping[str, Struct], kernel: Routine, parameter: Variable, argument: StructArgument,
    edits: dict[tuple[int, int], str],
) -> None:  # fmt: skip
    """Note the edits that replace a parameter by numbers, and make it of them where the kernel begins."""
    taken = {program.text(node) for node in walk(kernel.node) if node.type in ("identifier", "type_identifier")}
    names: dict[str, str] = {}
    listed = []
    for path, member in argument.leaves():
        if isinstance(member.argument, ArrayArgument) or "*" in member.type:
            raise Refused(parameter.node, f"'{argument.type}' has functions of its own and holds the pointer '{path}'",
                          "pass the pointer by itself: its memory must be named")  # fmt: skip
        name = re.sub(r"\W+", "_", f"{parameter.name}_{path}").strip("_")
        while name in taken:
            name += "_"
        taken.add(name)
        names[path] = name
        listed.append(f"{member.type} {name}")
    declaration = parameter.declaration
    begin, end = declaration.start_byte, declaration.end_byte
    edits[(begin, end) if listed else with_comma(declaration)] = ", ".join(listed)
    written = program.text(declaration).replace("__grid_constant__", "")
    first = next((child for child in kernel.body.named_children if child.type != "comment"), None)
    plain = first is not None and not first.type.startswith("preproc")
    start = first.start_byte if first is not None and plain else kernel.body.start_byte + 1
    made = _made(structs, argument, "", names, parameter.node)
    edits[start, start] = f"{edits.get((start, start), '')}{' '.join(written.split())} = {made}; "


def _made(
    structs: Mapping[str, Struct], argument: StructArgument, path: str, names: Mapping[str, str], node: Node
) -> str:
    """Return the text that makes a struct of numbers."""
    struct = _struct(structs, argument.type) if not argument.type.endswith("]") else None
    parts = []
    for member in argument.members:
        here = joined(path, member.name)
        inner = member.argument
        parts.append(_made(structs, inner, here, names, node) if isinstance(inner, StructArgument) else names[here])
    if struct is not None and struct.made and not argument.made:
        raise Refused(node, f"'{argument.type}' has a constructor, and is given its members one by one",
                      "leave the constructor out, or give it what it takes")  # fmt: skip
    begin, end = "()" if argument.made else "{}"
    return f"{argument.type if not path else ''}{begin}{', '.join(parts)}{end}"


def _copy_function(copies: _Copies) -> _Copies | None:
    """Give one call of a function with a functor a copy of its own; None when there is none left."""
    done = copies.done
    program = read_program(done.source)
    dependent = _dependent(program)
    for caller, reader in _readers(program, done.plan):
        for call in calls_in(caller.body):
            routines = called(program, call)
            if len(routines) != 1 or routines[0].kernel or not routines[0].template:
                continue
            found = _arguments(program, reader, routines[0], call)
            if routines[0].name not in dependent:
                found = {at: text for at, text in found.items() if is_functor(program, text)}
            own = {template_name(program.text(each)) for each in caller.template} - set(reader.types)
            if any(set(re.findall(r"\w+", text)) & own for text in found.values()):
                continue
            if found:
                return _with_copy(copies, program, routines[0], call, found)
    return None


def _readers(program: Program, plan: LaunchPlan) -> Iterator[tuple[Routine, Expressions]]:
    """Yield the functions that launches may reach, kernels with their template arguments where all give the same."""
    for name in program.functions:
        for routine in program.routines_of(name):
            steps = [step for step in plan.steps if step.kernel == name] if routine.kernel else []
            given = [template_arguments(routine, step, program.text) for step in steps]
            same = given[0] if given and all(each == given[0] for each in given) else {}
            if not routine.kernel or steps:
                yield routine, Expressions(program, routine, same)


def _dependent(program: Program) -> set[str]:
    """Return the functions that name functors by their own template parameters, ``Sum<T>()``, or call such ones."""
    found: set[str] = set()
    calls: dict[str, set[str]] = {}
    for name in program.functions:
        for routine in program.routines_of(name):
            own = {template_name(program.text(each)) for each in routine.template}
            calls.setdefault(name, set())
            for node in walk(routine.body) if own else ():
                text = program.text(node)
                if node.type in ("template_type", "template_function") and is_functor(program, text):
                    if own & set(re.findall(r"\w+", text)):
                        found.add(name)
                elif node.type == "identifier" and text in program.functions:
                    calls[name].add(text)
    while more := {name for name, names in calls.items() if name not in found and names & found}:
        found |= more
    return found


def _arguments(program: Program, reader: Expressions, routine: Routine, call: Node) -> dict[int, str]:
    """Return what the types among a template's parameters stand for in a call, as far as that is known."""
    function = call.child_by_field_name("function")
    listed = function.child_by_field_name("arguments") if function is not None else None
    given = [program.text(child) for child in listed.named_children if child.type != "comment"] if listed else []
    found: dict[int, str] = {}
    for at, parameter in enumerate(routine.template):
        if parameter.type not in _TYPES:
            continue
        name = template_name(program.text(parameter))
        if at < len(given):
            text = given[at]
        else:
            types = (reader.type_of(argument) for own, argument in zip(routine.parameters, call_arguments(call),
                     strict=False) if own.type.name == name and not own.type.points)  # fmt: skip
            text = next((each.name for each in types if each.name and not each.points), "")
            text = text or program.text(parameter).partition("=")[2].strip()
        if text := re.sub(r"[A-Za-z_]\w*", lambda match: reader.types.get(match[0], match[0]), text):
            found[at] = text
    return found


def _with_copy(copies: _Copies, program: Program, routine: Routine, call: Node, found: dict[int, str]) -> _Copies:
    """Add the copy that a call needs, unless it is there, and have the call name it."""
    done, text, lines = copies.done, copies.done.source.text, dict(copies.done.lines)
    function = call.child_by_field_name("function")
    assert function is not None
    listed = function.child_by_field_name("arguments")
    given = [program.text(child) for child in listed.named_children if child.type != "comment"] if listed else []
    rest = [each for at, each in enumerate(given) if at not in found]
    key = (routine.outer.start_point[0], tuple(f"{at}={argument}" for at, argument in sorted(found.items())))
    names = dict(copies.names)
    name = names.get(key) or copies.unused(program, _named(routine.name, tuple(found.values())))
    text = (
        text[: function.start_byte] + name + (f"<{', '.join(rest)}>" if rest else "")
        + "\n" * text[function.start_byte : function.end_byte].count("\n") + text[function.end_byte :]
    )  # fmt: skip
    if key not in names:
        copy = instance(read_program(done.source), routine, found, name)
        names[key] = name
        text = _appended(text, copy, routine, lines)
    return _Copies(replace(done, source=parse_cuda(text, done.source.path), lines=lines), names)
