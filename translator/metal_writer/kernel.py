"""One launch as one Metal kernel: the body of the CUDA kernel between what MLX and Metal want around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from translator.launch_plan import LaunchStep
from translator.metal_writer.binding import SHARED_BYTES, bind_parameters
from translator.metal_writer.constants import integer
from translator.metal_writer.coverage import Copy
from translator.metal_writer.cub_calls import lanes_of_structs
from translator.metal_writer.dependence import Dependence
from translator.metal_writer.early_return import CHOOSE, GUARD, LEAVE, plan_guards
from translator.metal_writer.expressions import Expressions
from translator.metal_writer.functions import comment_before, hoisted, write_function
from translator.metal_writer.groups import masked_reduction, tile_reduction
from translator.metal_writer.idioms import IDIOMS
from translator.metal_writer.items import write_item
from translator.metal_writer.lines import split_marks, unmark
from translator.metal_writer.names import renamed
from translator.metal_writer.passes import DROPPED, Pass, SharedParameter
from translator.metal_writer.program import TYPES, Routine, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.renderer import Renderer
from translator.metal_writer.types import SCALARS, bytes_of, canonical, spelled

THREADGROUP_BYTES = 32768
_FLIPPED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


@dataclass
class Written:
    """The texts of one pass, and the template pairs and arrays that they use."""

    header: str
    source: str
    header_lines: tuple[int, ...]
    source_lines: tuple[int, ...]
    template: tuple[tuple[str, str], ...]


def write_kernel(
    shared: Pass, step: LaunchStep, kernel: Routine, order: list[Routine], given: dict[str, str]
) -> Written:
    """Write one pass; what is refused is noted in ``shared``. ``given`` are the template arguments by name."""
    for routine in reversed(order):
        if not routine.kernel:
            write_function(shared, routine)
    binding = bind_parameters(shared, step, kernel, given)
    renderer = KernelRenderer(shared, kernel, binding.names)
    renderer.launch, renderer.given = step, given
    body = _body(renderer, kernel)
    _check_memory(renderer, kernel)
    before = [*binding.before, *renderer.hoisted.values()]
    source = comment_before(renderer, kernel.outer) + "\n".join((*before, body))
    header = _header(shared)
    source_text, source_lines = split_marks(_without_dropped(source))
    header_text, header_lines = split_marks(_without_dropped(header))
    words = set(re.findall(r"\w+", source_text))
    template = [*binding.template, *((SHARED_BYTES, step.shared) for _ in [0] if renderer.dynamic_size)]
    return Written(
        header_text, source_text, header_lines if header_text else (), source_lines,
        tuple((name, value) for name, value in template if name in words),
    )  # fmt: skip


class KernelRenderer(Renderer):
    """Writes a kernel's body, with the threadgroup memory of the functions that it calls."""

    launch: LaunchStep
    given: dict[str, str]

    def __init__(self, shared: Pass, routine: Routine, names: dict[Variable, str]) -> None:
        super().__init__(shared, routine, names)
        self.hoisted: dict[str, str] = {}
        self.owners: dict[str, Variable] = {}
        self.dynamic_size = False

    def share(self, variables: list[Variable]) -> None:
        """A kernel declares its threadgroup memory itself."""
        raise AssertionError(variables)

    def pass_on(self, shared: SharedParameter) -> str:
        """Declare a function's threadgroup memory before the body, once, and return its name."""
        for name, variable in self.owners.items():
            if variable is shared.variable:
                return name
        name = renamed(
            shared.name if shared.name not in self.taken else f"{shared.routine.name}_{shared.name}", self.taken
        )
        self.taken.add(name)
        self.owners[name] = shared.variable
        word, extents = hoisted(self.shared, shared)
        if shared.variable.home == "dynamic":
            kinds = [child for child in shared.variable.declaration.children if child.type in TYPES]
            extents = self.dynamic_extent(canonical(self.text(kinds[0])))
        self.hoisted[name] = f"threadgroup {word} {name}{extents};"
        return name

    def vote_slots(self) -> None:
        """Declare one slot of threadgroup memory for each simdgroup."""
        self.hoisted["votes"] = "threadgroup int votes[32];"

    def dynamic(self, variable: Variable) -> str:
        """Return name and extent of the shared memory that the launch sizes."""
        others = {v.name for v in self.routine.all_variables() if v.home == "dynamic"} - {variable.name}
        if others:
            raise Refused(variable.node, f"'{variable.name}' and '{others.pop()}' are one block of shared memory",
                          "declare it once and take pointers into it")  # fmt: skip
        return self.leaf(variable.node, self.names[variable]) + self.dynamic_extent(variable.type.name)

    def dynamic_extent(self, kind: str) -> str:
        """Return the extent of the dynamic shared memory in elements of a type."""
        shared, size = self.launch.shared, bytes_of(canonical(self.given.get(kind, kind)))
        if shared in ("", "0"):
            raise Refused(self.routine.node, f"'{self.routine.name}' has dynamic shared memory and is given none",
                          "give its bytes at the launch")  # fmt: skip
        if shared.isdigit() and size:
            return f"[{int(shared) // size}]"
        self.dynamic_size = True
        return f"[{SHARED_BYTES}]" if size == 1 else f"[{SHARED_BYTES} / sizeof({kind})]"


def _body(renderer: KernelRenderer, kernel: Routine) -> str:
    dependence = Dependence(renderer.reader)
    try:
        actions = plan_guards(dependence).actions
    except Refused as refused:
        renderer.shared.refuse(refused.node, refused.reason, refused.advice)
        actions = {}
    flag = renamed("active", renderer.taken)
    returns = [node for node, action in actions.items() if action == LEAVE]
    for node, action in actions.items():
        renderer.replacements[node] = _replacement(
            renderer, action, flag, len(returns) > 1, node == (returns or [0])[0]
        )
    _plan_copies(renderer, {node: flag for node in actions if node != (returns or [0])[0]})
    body = kernel.body
    text = renderer.joined(body, begin=body.children[0].end_byte, end=body.children[-1].start_byte)
    text += renderer.gap(body.children[-2].end_byte, body.children[-1].start_byte)
    if renderer.dynamic_size:
        renderer.hoisted["limit"] = f'static_assert({SHARED_BYTES} <= {THREADGROUP_BYTES}, "at most 32 KiB");'
    return _dedented(text)


Write = Callable[[Node], str]


def _replacement(renderer: KernelRenderer, action: str, flag: str, several: bool, first: bool) -> Write:
    def leave(node: Node) -> str:
        condition = node.child_by_field_name("condition")
        then = node.child_by_field_name("consequence")
        assert condition is not None and then is not None
        work = [child for child in then.named_children if child.type not in ("return_statement", "comment")]
        inner = ""
        if then.type == "compound_statement" and work:
            inner = renderer.joined(then, begin=then.children[0].end_byte, end=then.named_children[-1].start_byte)
        if inner and not first:  # threads that have left before must not take part
            leaves = _operand(renderer.render(condition.named_children[-1]))
            gap = renderer.gap(work[-1].end_byte, then.named_children[-1].start_byte)
            end = renderer.gap(then.named_children[-1].end_byte, then.children[-1].start_byte)
            return renderer.leaf(node, f"if ({flag} && ") + f"{leaves}) {{{inner}{gap}{flag} = false;{end}}}"
        stays = _negated(renderer, condition.named_children[-1])
        before = f"{'' if several else 'const '}bool {flag} = " if first else f"{flag} = {flag} && "
        stays = f"({stays})" if not first and "||" in unmark(stays) else stays
        text = renderer.leaf(node, before) + stays + ";"
        if inner:
            text += f" if (!{flag}) {{{inner}}}"
        return text

    def guard(node: Node) -> str:
        if node.type == "if_statement" and node.child_by_field_name("alternative") is None:
            condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
            assert condition is not None and then is not None
            value = condition.named_children[-1]
            inner = _operand(renderer.render(value))
            between = renderer.gap(condition.end_byte, then.start_byte)
            return renderer.leaf(node, f"if ({flag} && ") + inner + ")" + between + renderer.render(then)
        text = renderer.render(node)
        if "\n" not in text:
            return renderer.leaf(node, f"if ({flag}) ") + text
        indent = renderer.new_line(node)
        lines = [line if unmark(line).startswith("#") else f"  {line}" for line in text.split("\n")]
        return renderer.leaf(node, f"if ({flag}) {{") + indent + "\n".join(lines) + indent + "}"

    def choose(node: Node) -> str:
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            if value is not None and not (value.type == "pointer_expression" and value.children[0].type == "&"):
                renderer.replacements[value.id] = chosen
        return renderer.render(node)

    def chosen(value: Node) -> str:
        kind = renderer.reader.type_of(value)
        if kind.points or not kind.name or value.type == "initializer_list":
            raise Refused(
                value, "a value is read after threads have returned, before a barrier", "put it under a condition"
            )
        text = renderer.render(value)
        nothing = "0.0f" if kind.name == "float" else "0" if kind.name in SCALARS else f"{spelled(kind.name)}(0)"
        return f"{flag} ? {f'({text})' if value.type == 'conditional_expression' else text} : {nothing}"

    return {LEAVE: leave, GUARD: guard, CHOOSE: choose}[action]


def _operand(condition: str) -> str:
    """Return a condition as it stands beside ``&&``."""
    plain = unmark(condition)
    return f"({condition})" if "||" in plain or "?" in plain else condition


def _negated(renderer: Renderer, node: Node) -> str:
    """Return the opposite of a condition, comparisons of integers turned around."""
    if node.type == "parenthesized_expression":
        return _negated(renderer, node.named_children[-1])
    if node.type == "binary_expression":
        left, right, sign = node.named_children[0], node.named_children[-1], node.children[1].type
        if sign in ("||", "&&"):
            one, other = _negated(renderer, left), _negated(renderer, right)
            if sign == "||":
                return f"{one} && {other}"
            return f"{one} || {other}"
        whole = all(renderer.reader.type_of(side).name not in ("float", "half", "bfloat", "") for side in (left, right))
        if sign in _FLIPPED and whole:
            return f"{renderer.render(left)} {_FLIPPED[sign]} {renderer.render(right)}"
    return f"!({renderer.render(node)})"


def _plan_copies(renderer: KernelRenderer, flags: Mapping[int, str]) -> None:
    """Have elements that a condition on data may leave unwritten copied before it.

    ``flags`` has what tells, at a statement, whether its thread should have returned before.
    """
    found: dict[int, list[Copy]] = {}
    for split in renderer.shared.splits.values():
        for statement, copies in split.copies.items():
            found.setdefault(statement, []).extend(copies)
    for statement, copies in found.items():
        write = renderer.replacements.get(statement, renderer.render)
        renderer.replacements[statement] = _copier(renderer, copies, flags.get(statement), write)


def _copier(renderer: KernelRenderer, copies: list[Copy], flag: str | None, write: Write) -> Write:
    seen = {(copy.write.array, copy.write.key): copy for copy in copies}

    def copied(node: Node) -> str:
        lines = []
        for copy in seen.values():
            bounds = [renderer.render(bound) for bound in copy.bounds]
            guard = " && ".join([flag, *bounds] if flag else bounds)
            line = f"{renderer.written(copy.write.node)} = {renderer.render(copy.write.node)};"
            lines.append(f"if ({guard}) {line}" if guard else line)
        return renderer.new_line(node).join([*lines, write(node)])

    return copied


def _check_memory(renderer: KernelRenderer, kernel: Routine) -> None:
    total = 0
    for routine, reader in renderer.shared.readers.items():
        for variable in routine.all_variables():
            size = bytes_of(reader.bound(variable.type).name)
            if variable.home == "dynamic" and routine is kernel and renderer.launch.shared.isdigit():
                total += int(renderer.launch.shared)
            if variable.home != "shared" or size is None:
                continue
            for extent in variable.type.extents:
                count = integer(renderer.program, extent, renderer.given | _local_constants(routine, reader))
                size *= count if count is not None else 0
            total += size
    if total > THREADGROUP_BYTES:
        raise Refused(kernel.node, f"'{kernel.name}' needs {total:,} bytes of shared memory; a threadgroup has 32 KiB",
                      "make the tiles smaller, or hold one of them in registers")  # fmt: skip


def _local_constants(routine: Routine, reader: Expressions) -> dict[str, str]:
    return {v.name: reader.text(v.value) for v in routine.all_variables() if v.type.const and v.value is not None}


def _header(shared: Pass) -> str:
    items: dict[str, str] = {}
    while missing := [name for name in shared.used if name not in items]:
        for name in missing:
            items[name] = ""
            if name in shared.program.items or name in shared.program.macros:
                try:
                    items[name] = write_item(shared, name)
                except Refused as refused:
                    shared.refuse(refused.node, refused.reason, refused.advice)

    def place(name: str) -> tuple[int, int]:
        program = shared.program
        node = program.items[name].node if name in program.items else program.macros.get(name)
        return (0 if name in program.macros and name not in program.items else 1, node.start_byte if node else 0)

    parts = [text for name, text in IDIOMS.items() if name in shared.idioms]
    parts += [tile_reduction(name) for name in sorted(shared.idioms) if name.startswith("tile_")]
    parts += [masked_reduction(name) for name in sorted(shared.idioms) if name.startswith("masked_")]
    parts += [scan.text for scan in sorted(shared.scans)]
    short: list[str] = []
    for name in sorted(items, key=place):
        text = items[name]
        if not text:
            continue
        if "\n" in text.strip() and not text.startswith("//"):
            parts += ["\n".join(short)] if short else []
            short = []
            parts.append(text)
        elif text not in short:
            short.append(text)
    parts += ["\n".join(short)] if short else []
    parts += lanes_of_structs(shared)
    parts += [rendered.text for rendered in shared.functions.values()]
    return "\n\n".join(parts)


def _dedented(text: str) -> str:
    lines = text.strip("\n").rstrip().split("\n")
    plain = [unmark(line) for line in lines]
    indents = [len(line) - len(line.lstrip()) for line in plain if line.strip() and not line.lstrip().startswith("#")]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] if not line[:cut].strip() else line for line in lines)


def _without_dropped(text: str) -> str:
    """Return the text without what was dropped, and without lines that held nothing else."""
    lines = [
        line for line in text.split("\n") if not (DROPPED in line and not unmark(line).replace(DROPPED, "").strip())
    ]
    return "\n".join(line.replace(DROPPED, "").rstrip() for line in lines)
