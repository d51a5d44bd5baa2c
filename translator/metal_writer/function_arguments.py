"""Functions that are template arguments, put in: Metal has no pointers to functions, so each use gets a copy.

Copies stand after the end of the text, and their lines know the lines that they are copies of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from translator.cuda_source import CudaSource, parse_cuda, walk
from translator.launch_plan import LaunchPlan
from translator.metal_writer.flow import calls_in
from translator.metal_writer.program import Program, Routine, read_program

_MOST_COPIES = 32
_NAMES = ("identifier", "type_identifier", "namespace_identifier")


@dataclass(frozen=True)
class PutIn:
    """The source and plan without functions among template arguments; ``lines`` says what the added lines stand for.

    ``kernels`` says which kernels the copies of some are copies of.
    """

    source: CudaSource
    plan: LaunchPlan
    lines: dict[int, int] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)


def put_in_functions(source: CudaSource, plan: LaunchPlan) -> PutIn:
    """Return the source with a copy of each function for the functions that are its template arguments."""
    done = PutIn(source, plan)
    if not re.search(r"template\s*<[^;{]*(?:\(\s*\*|_t\s+\w+\s*[,>]|\b[A-Za-z]\w*\s+\w+\s*[,>])", source.text):
        return done
    for _ in range(_MOST_COPIES):
        after = _put_in_one(done)
        if after is None:
            break
        done = after
    return done


def _put_in_one(done: PutIn) -> PutIn | None:
    """Put in the arguments of one call or launch; None when there is none left."""
    program = read_program(done.source)
    for name, definitions in program.functions.items():
        if not any(_takes_function(program, outer) for _, outer in definitions):
            continue
        for routine in program.routines_of(name):
            places = [at for at, parameter in enumerate(routine.template) if _is_function(program, parameter)]
            if not places:
                continue
            if routine.kernel:
                if (found := _in_kernel(done, program, routine, places)) is not None:
                    return found
                continue
            for call, given in _calls(program, routine):
                arguments = [program.text(child) for child in given.named_children]
                names = [arguments[at] for at in places if at < len(arguments)]
                if len(names) == len(places) and all(_names_function(program, text) for text in names):
                    return _with_copy(done, program, routine, places, call, arguments)
    return None


def _takes_function(program: Program, outer: Node) -> bool:
    parameters = outer.child_by_field_name("parameters") if outer.type == "template_declaration" else None
    return parameters is not None and any(_is_function(program, child) for child in parameters.named_children)


def _is_function(program: Program, parameter: Node) -> bool:
    """Whether a template parameter is a pointer to a function, written out or by an alias."""
    if parameter.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return False
    if any(inner.type == "function_declarator" for inner in walk(parameter)):
        return True
    kind = parameter.child_by_field_name("type")
    item = program.items.get(program.text(kind)) if kind is not None else None
    return item is not None and item.kind == "alias" and any(
        inner.type in ("function_declarator", "abstract_function_declarator") for inner in walk(item.node)
    )  # fmt: skip


def _names_function(program: Program, text: str) -> bool:
    return text.partition("<")[0].strip() in program.functions


def _calls(program: Program, routine: Routine) -> Iterator[tuple[Node, Node]]:
    """Yield where a template is named with its arguments in a call."""
    for name in program.functions:
        for caller in program.routines_of(name):
            for call in calls_in(caller.body):
                function = call.child_by_field_name("function")
                if function is not None and function.type == "template_function":
                    called, given = function.child_by_field_name("name"), function.child_by_field_name("arguments")
                    if called is not None and given is not None and program.text(called) == routine.name:
                        yield function, given


def _in_kernel(done: PutIn, program: Program, routine: Routine, places: list[int]) -> PutIn | None:
    """Put in what every launch of a kernel gives it."""
    given = {step.template for step in done.plan.steps if step.kernel == routine.name}
    if len(given) != 1 or len(template := next(iter(given))) <= max(places):
        return None
    if not all(_names_function(program, template[at]) for at in places):
        return None
    begin, end = routine.outer.start_byte, routine.outer.end_byte
    text = instance(program, routine, {at: template[at] for at in places}, routine.name)
    source = parse_cuda(done.source.text[:begin] + text + done.source.text[end:], done.source.path)
    rest = tuple(each for at, each in enumerate(template) if at not in places)
    steps = tuple(replace(s, template=rest) if s.kernel == routine.name else s for s in done.plan.steps)
    return PutIn(source, replace(done.plan, steps=steps), done.lines)


def _with_copy(
    done: PutIn, program: Program, routine: Routine, places: list[int], function: Node, arguments: list[str]
) -> PutIn:
    """Add the copy that a call needs, unless it is there, and have the call name it."""
    text = done.source.text
    name = "_".join([routine.name, *(re.sub(r"\W+", "_", arguments[at]).strip("_") for at in places)])
    rest = [each for at, each in enumerate(arguments) if at not in places]
    call = name + (f"<{', '.join(rest)}>" if rest else "")
    lines = dict(done.lines)
    after = text[: function.start_byte] + call + text[function.end_byte :]
    if name not in program.functions:
        copy = instance(program, routine, {at: arguments[at] for at in places}, name)
        after = after.rstrip("\n") + "\n\n"
        first, begin = after.count("\n") + 1, routine.outer.start_point[0] + 1
        for at in range(copy.count("\n") + 1):
            lines[first + at] = lines.get(begin + at, begin + at)
        after += copy + "\n"
    return PutIn(parse_cuda(after, done.source.path), done.plan, lines)


def instance(program: Program, routine: Routine, arguments: Mapping[int, str], name: str) -> str:
    """Return a function's text with these arguments put in at their places of its template."""
    edits: dict[tuple[int, int], str] = {}
    names = [re.findall(r"\w+", _declared(program, parameter))[-1] for parameter in routine.template]
    values = {names[at]: argument for at, argument in arguments.items()}
    for node in walk(routine.outer):
        if node.type in _NAMES and (value := values.get(program.text(node))) is not None:
            edits[node.start_byte, node.end_byte] = value
        elif node.type == "identifier" and program.text(node) == routine.name and _is_name(routine, node):
            edits[node.start_byte, node.end_byte] = name
    parameters = routine.outer.child_by_field_name("parameters")
    assert parameters is not None
    rest = [program.text(parameter) for at, parameter in enumerate(routine.template) if at not in arguments]
    begin = parameters.start_byte if rest else routine.outer.start_byte
    edits = {place: new for place, new in edits.items() if place[0] >= parameters.end_byte}
    edits[begin, parameters.end_byte] = f"<{', '.join(rest)}>" if rest else ""
    text, base = program.source.text_of(routine.outer), routine.outer.start_byte
    for (start, end), new in sorted(edits.items(), reverse=True):
        lines = text[start - base : end - base].count("\n")
        text = text[: start - base] + new + "\n" * lines + text[end - base :]
    return text


def _declared(program: Program, parameter: Node) -> str:
    """Return a template parameter up to its name: ``T (*F)(T)`` to ``F``."""
    for node in walk(parameter):
        if node.type == "parenthesized_declarator":
            return program.text(node)
    return program.text(parameter).partition("=")[0]


def _is_name(routine: Routine, node: Node) -> bool:
    return (
        node.parent is not None
        and node.parent.type == "function_declarator"
        and node.end_byte <= routine.body.start_byte
    )
