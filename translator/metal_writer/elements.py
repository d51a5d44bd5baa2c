"""Elements of arrays: read from the input, written to the output, where a kernel changes an array in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer import atomics
from translator.metal_writer.flow import called
from translator.metal_writer.program import Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import struct_of
from translator.metal_writer.types import vector_parts

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer


def _as_it_stands(renderer: Renderer, node: Node) -> str:
    """Return an element by the names of the mode; of ``y[x[i]] = 1`` only ``y`` is written, its index is read."""
    base, index = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    if not renderer.writing or base is None or index is None:
        return renderer.joined(node)
    return renderer.render(base) + renderer.gap(base.end_byte, index.start_byte) + renderer.as_read(index)


def _touches_split(renderer: Renderer, node: Node) -> bool:
    origins = renderer.reader.lvalue_origins(node)
    return renderer.is_split(origins) or any(
        name in renderer.shared.flags and renderer.has_halves(name) for space, name in origins if space == "array"
    )


def _read_of_output(renderer: Renderer, node: Node) -> bool:
    return any(node.id in split.reads_of_output for split in renderer.shared.splits.values())


def _is_chosen(renderer: Renderer, node: Node) -> bool:
    """Whether only flags tell which value an element has."""
    above = node.parent
    if renderer.reader.type_of(node).points or (above is not None and above.type == "pointer_expression"):
        return False
    if above is not None and above.type == "init_declarator" and above.named_children[0].type == "reference_declarator":
        return False
    arrays = {name for space, name in renderer.reader.lvalue_origins(node) if space == "array"}
    chosen = {name for name, split in renderer.shared.splits.items() if split.chosen and renderer.has_halves(name)}
    return bool(arrays & chosen)


def _choice(renderer: Renderer, node: Node) -> str:
    """Return the value that was written where the flag is set, else the one from before."""
    check_repeats(renderer, node)
    reads = _as_it_stands(renderer, node)
    written, flag = renderer.written(node), renderer.flagged(node)
    if vector_parts(renderer.reader.type_of(node).name):
        return renderer.leaf(node, f"select({reads}, {written}, {flag})")
    return renderer.leaf(node, f"({flag} ? {written} : {reads})")


def check_repeats(renderer: Renderer, node: Node) -> None:
    """Refuse an element that is written out several times, being changed in place, and whose index does something."""
    for inner in walk(node):
        function = inner.child_by_field_name("function") if inner.type == "call_expression" else None
        changes = inner.type in ("update_expression", "assignment_expression") or (
            function is not None and (renderer.text(function).startswith("atomic") or _may_change(renderer, inner))
        )
        if changes:
            shown = renderer.text(node)[:40]
            raise Refused(inner, f"the index of '{shown}' does something, and the array is changed in "
                          "place", "keep the index in a variable")  # fmt: skip


def _may_change(renderer: Renderer, call: Node) -> bool:
    """Whether a function of the source may change what it is given."""
    return any(
        (parameter.type.reference or parameter.type.points) and not parameter.type.const
        for routine in called(renderer.program, call)
        for parameter in routine.parameters
    )


def element(renderer: Renderer, node: Node) -> str:
    """Return an element that is read, or written while ``renderer.writing``."""
    if not renderer.writing and (address := atomics.swapped_address(renderer, node)) is not None:
        return renderer.leaf(node, atomics.load(renderer, address))
    if not renderer.writing and _read_of_output(renderer, node):
        return renderer.written(node)
    if not renderer.writing and _is_chosen(renderer, node):
        return _choice(renderer, node)
    return _as_it_stands(renderer, node)


def lies_elsewhere(renderer: Renderer, node: Node) -> bool:
    """Whether a struct lies in other memory than the thread's, where its methods and operators can't work on it."""
    type_ = renderer.reader.type_of(node)
    if type_.points or struct_of(renderer.program, type_.name) is None:
        return False
    return any(space != "thread" for space, _ in renderer.reader.lvalue_origins(node))


def copied(renderer: Renderer, node: Node) -> str:
    """Return a struct in other memory as a value of the thread."""
    name = renderer.reader.type_of(node).name
    item = struct_of(renderer.program, name)
    assert item is not None
    renderer.shared.used[item.name] = None
    return f"{name}({renderer.render(node)})"


def referred(renderer: Renderer, node: Node, variable: Variable) -> str:
    """Return what a reference names; one that is only read may have been written before."""
    if variable.home == "parameter" and variable.type.const and not renderer.routine.kernel:
        return renderer.leaf(node, renderer.names[variable])  # passed as a value
    if not renderer.writing and (_read_of_output(renderer, node) or _is_chosen(renderer, node)):
        written = renderer.in_mode(lambda _: renderer.name_of(variable), node, True, False)
        if _read_of_output(renderer, node):
            return renderer.leaf(node, written)
        if halves := renderer.flags_of(variable):
            return renderer.leaf(node, f"({halves} ? {written} : {renderer.name_of(variable)})")
    return renderer.leaf(node, renderer.name_of(variable))


def assignment(renderer: Renderer, node: Node) -> str:
    """Return an assignment; to a pointer into an array that is taken apart it becomes two."""
    left, right = node.named_children[0], node.named_children[-1]
    sign = node.children[1]
    reader = renderer.reader
    variable = reader.variable(left) if left.type == "identifier" else None
    if variable is not None and not (variable.type.reference and _touches_split(renderer, left)):
        split, flags = renderer.is_split(variable.origins), bool(renderer.flags_of(variable))
        if reader.type_of(left).points and (split or flags):
            modes = [(False, False), *[(True, False)] * split, *[(True, True)] * flags]
            return ", ".join(dict.fromkeys(renderer.in_mode(renderer.joined, node, *mode) for mode in modes))
        return renderer.joined(node)
    if sign.type != "=" and lies_elsewhere(renderer, left):
        raise Refused(node, f"'{sign.type}' on a struct that is not local", "copy it to a local, and store it back")
    if not _touches_split(renderer, left):
        return renderer.joined(node)
    if sign.type != "=" or _flag(renderer, node, left):
        check_repeats(renderer, left)
    target = renderer.written(left)
    flag = _flag(renderer, node, left)
    if sign.type == "=":
        between = renderer.gap(left.end_byte, sign.start_byte), renderer.gap(sign.end_byte, right.start_byte)
        return f"{target}{between[0]}{renderer.leaf(sign)}{between[1]}{renderer.render(right)}{flag}"
    value = renderer.parenthesised(right)
    return f"{target} = {renderer.render(left)} {sign.type[:-1]} {value}{flag}"


def _flag(renderer: Renderer, node: Node, left: Node) -> str:
    """Return what notes that an element is written, where an array has flags for that."""
    arrays = [name for space, name in renderer.reader.lvalue_origins(left) if space == "array"]
    if not any(name in renderer.shared.flags and renderer.has_halves(name) for name in arrays):
        return ""
    if node.parent is None or node.parent.type != "expression_statement":
        raise Refused(left, f"'{arrays[0]}' is changed in place within an expression", "write it as a statement")
    return f", {renderer.flagged(left)} = true"


def update(renderer: Renderer, node: Node) -> str:
    """Return ``++`` or ``--``."""
    inner = node.named_children[0]
    variable = renderer.reader.variable(inner) if inner.type == "identifier" else None
    pointer = variable is not None and renderer.reader.type_of(inner).points and renderer.is_split(variable.origins)
    reference = variable is not None and variable.type.reference
    if not pointer and not ((variable is None or reference) and _touches_split(renderer, inner)):
        return renderer.joined(node)
    if pointer or node.parent is None or node.parent.type != "expression_statement":
        raise Refused(node, "++ or -- on an array that is changed in place", "write it as an assignment")
    check_repeats(renderer, inner)
    sign = next(child.type[0] for child in node.children if child.type in ("++", "--"))
    return f"{renderer.written(inner)} = {renderer.render(inner)} {sign} 1{_flag(renderer, node, inner)}"
