"""Atomics: CUDA's on plain numbers become Metal's on its atomic types, with the address space named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer.expressions import call_arguments
from translator.metal_writer.flow import calls_in
from translator.metal_writer.program import Program, Routine
from translator.metal_writer.refused import Refused

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

_FETCH = {
    "atomicAdd": "add", "atomicSub": "sub", "atomicMax": "max", "atomicMin": "min", "atomicAnd": "and",
    "atomicOr": "or", "atomicXor": "xor", "atomicExch": "exchange",
}  # fmt: skip
_OTHER = ("atomicCAS", "atomicInc", "atomicDec")
_ORDER = "memory_order_relaxed"


def atomic_call(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str | None:
    """Return an atomic operation; None for other calls, a refusal for what Metal has no atomic of."""
    base = name.removesuffix("_block").removesuffix("_system")
    if base not in _FETCH and base not in _OTHER:
        return None
    at = arguments[0]
    kind = renderer.reader.type_of(at).element().name
    if kind in ("long", "ulong", "double", "half", "half2", "bfloat", "bfloat2", "short", "ushort"):
        raise Refused(node, f"Metal has no atomic for '{kind}'", "use float, int or unsigned, and convert afterwards")
    if kind not in ("int", "uint", "float"):
        raise Refused(node, f"the type that '{renderer.text(at)[:40]}' points to is not known", "name it by a cast")
    place = _place(renderer, at)
    if kind == "float" and base in ("atomicMax", "atomicMin", "atomicSub", "atomicAnd", "atomicOr", "atomicXor"):
        raise Refused(node, f"'{name}' of floats has no counterpart", "use a compare-and-swap loop")
    if base in ("atomicInc", "atomicDec"):
        idiom = "atomic_increment" if base == "atomicInc" else "atomic_decrement"
        renderer.shared.idioms.add(idiom)
        return renderer.leaf(node, f"{idiom}({_typed(renderer, at, place, 'uint')}, {renderer.render(arguments[1])})")
    if base == "atomicCAS":
        if kind == "float":
            raise Refused(node, "'atomicCAS' of floats", "cast the address to int* and use __float_as_int")
        renderer.shared.idioms.add("compare_exchange")
        values = ", ".join(renderer.render(argument) for argument in arguments[1:])
        return renderer.leaf(node, f"compare_exchange<{kind}>({_typed(renderer, at, place, kind)}, {values})")
    value = renderer.as_type(arguments[1], kind) if kind != "float" else renderer.render(arguments[1])
    if kind == "float" and place == "threadgroup":
        if base == "atomicExch":
            bits = _typed(renderer, at, place, "uint")
            return renderer.leaf(
                node, f"as_type<float>(atomic_exchange_explicit({bits}, as_type<uint>({value}), {_ORDER}))"
            )
        renderer.shared.idioms.add("atomic_add_float")
        return renderer.leaf(node, f"atomic_add_float({_typed(renderer, at, place, 'uint')}, {value})")
    function = "atomic_exchange_explicit" if base == "atomicExch" else f"atomic_fetch_{_FETCH[base]}_explicit"
    return renderer.leaf(node, f"{function}({_typed(renderer, at, place, kind)}, {value}, {_ORDER})")


def _place(renderer: Renderer, at: Node) -> str:
    before, renderer.writing = renderer.writing, True
    try:
        space = renderer.space(renderer.reader.origins_of(at), at)
    finally:
        renderer.writing = before
    named = next((text for text in re.findall(r"\w+", renderer.text(at)) if text in renderer.program.items), "")
    if space == "constant" and named and renderer.program.items[named].kind == "memory":
        raise Refused(at, f"'{named}' is a variable of the device, which Metal doesn't have",
                      "pass an array of one element to the kernel instead")  # fmt: skip
    if space not in ("device", "threadgroup"):
        raise Refused(at, f"'{renderer.text(at)[:40]}' is in {space} memory, where Metal has no atomics",
                      "use an array of the device or shared memory")  # fmt: skip
    return space


def _typed(renderer: Renderer, at: Node, place: str, kind: str) -> str:
    text = renderer.written(at)
    plain = ("identifier", "pointer_expression", "call_expression", "parenthesized_expression", "cast_expression")
    return f"({place} atomic_{kind}*){text if at.type in plain else f'({text})'}"


def swapped_address(renderer: Renderer, node: Node) -> Node | None:
    """Return the address in an ``atomicCAS`` of the same function that a plain read goes to, None for other reads."""
    above = node.parent
    if above is None or above.type == "pointer_expression" or _is_target(above, node):
        return None
    return renderer.swapped.get("".join(renderer.source.text_of(node).split()))


def swapped_elements(program: Program, routine: Routine) -> dict[str, Node]:
    """Return the address of each ``atomicCAS`` of a function by the texts of the element that it is of."""
    found: dict[str, Node] = {}
    for call in calls_in(routine.body):
        function, arguments = call.child_by_field_name("function"), call_arguments(call)
        if function is not None and program.text(function) == "atomicCAS" and arguments:
            address = "".join(program.source.text_of(arguments[0]).split())
            for text in (f"*{address}", f"{address}[0]", address[1:] if address.startswith("&") else ""):
                found[text] = arguments[0]
    return found


def _is_target(above: Node, node: Node) -> bool:
    return above.type == "assignment_expression" and above.named_children[0].id == node.id


def load(renderer: Renderer, address: Node) -> str:
    """Return an atomic read of what other threads change meanwhile."""
    kind = renderer.reader.type_of(address).element().name
    return f"atomic_load_explicit({_typed(renderer, address, _place(renderer, address), kind)}, {_ORDER})"
