"""What host code does with device memory besides launches: allocating, clearing, copying, calling libraries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import truth
from translator.cuda_source import shorten, span_of
from translator.host_expressions import read_value
from translator.host_values import HostArray, Pointer, Tensor, pointers_in
from translator.launch_plan import Question
from translator.sizes import Size

if TYPE_CHECKING:
    from translator.host_code import HostCode


WORKS = re.compile(
    r"(?:cublas|cusparse|cusolver|cufft|curand|cudnn|nccl)\w+\Z|thrust::|cub::|cuda(?:Memcpy|Memset)\w*\Z"
)
"""Calls that read or change device arrays without a kernel of the source."""


def is_used(host: HostCode, array: str) -> bool:
    return any(pointer.array == array for step in host.steps for pointer in pointers_in(step.arguments))


def array_of(host: HostCode, node: Node) -> HostArray | None:
    found = read_value(host, node)
    if isinstance(found, Tensor):
        return host.arrays.get(found.array)
    if not isinstance(found, Pointer):
        return None
    return host.arrays.setdefault(found.array, HostArray(found.array, found.type))


def allocate(host: HostCode, target: Node, size: Node) -> None:
    while target.type in ("cast_expression", "parenthesized_expression", "pointer_expression") or (
        target.type == "call_expression" and "_cast" in host.of(target)
    ):
        inner = target.child_by_field_name("value") or target.child_by_field_name("argument")
        if target.type == "call_expression":
            arguments = target.child_by_field_name("arguments")
            inner = arguments.named_children[0] if arguments is not None and arguments.named_child_count else None
        inner = inner or next(iter(target.named_children), None)
        if inner is None:
            return
        target = inner
    text = "".join(host.of(target).split())
    type_text = host.resolved(host.declared.get(text, "")).replace("*", "").strip()
    found = read_value(host, size)
    array = HostArray(text, type_text, local=True)
    array.bytes = found if isinstance(found, Size) else None
    host.arrays[text] = array
    host.env[text] = Pointer(text, type_text)


def clear(host: HostCode, values: Sequence[Node]) -> None:
    array = array_of(host, values[0])
    if array is None:
        return
    if is_used(host, array.name):
        host.between[array.name] = ("cudaMemset", values[0])
    elif truth(values[1], host) is False:
        array.zeroed = True
        note_bytes(host, array, values[2])
    else:
        said = f"the host fills the bytes of '{array.name}' with {shorten(host.of(values[1]), 20)}: here it is an input"
        host.choices.append(Question(array.name, said, span_of(values[0])))


def note_bytes(host: HostCode, array: HostArray, node: Node) -> None:
    """Keep how many bytes the host clears or copies: what an array has when nothing else says."""
    found = read_value(host, node)
    if isinstance(found, Size) and array.moved is None:
        array.moved = found


def copy(host: HostCode, values: Sequence[Node]) -> None:
    kind = host.of(values[3])
    if kind.endswith("HostToDevice") and (array := array_of(host, values[0])) is not None:
        if is_used(host, array.name):
            host.between[array.name] = ("cudaMemcpy", values[0])
        array.copied_in = True
        note_bytes(host, array, values[2])
    elif kind.endswith("DeviceToHost") and (array := array_of(host, values[1])) is not None:
        array.copied_out = True
        note_bytes(host, array, values[2])
    elif kind.endswith("DeviceToDevice") and any(array_of(host, value) is not None for value in values[:2]):
        host.ask(host.of(values[0]), "the host copies one device array into another here, which a plan has no step "
                  "for: do it in a kernel", values[0].parent or values[0])  # fmt: skip
    elif kind.endswith("Default"):
        used = [array for value in values[:2] if (array := array_of(host, value)) and is_used(host, array.name)]
        for array in used:
            host.between[array.name] = ("cudaMemcpy", values[0])


def note_between(host: HostCode, node: Node, called: str, parts: Sequence[Node]) -> None:
    """Note the device arrays that something works on between launches: a launch that takes one afterwards asks."""
    for part in parts:
        found = host.env.get(host.of(part)) if part.type == "identifier" else None
        if isinstance(found, Pointer | Tensor):
            host.between[found.array] = (called, node)
