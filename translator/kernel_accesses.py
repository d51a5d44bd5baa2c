"""Accesses of arrays by a kernel: noted with how far they reach."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tree_sitter import Node

from translator.c_types import vector_width
from translator.cuda_source import span_of
from translator.extents import is_variable
from translator.kernel_code import KernelCode
from translator.kernel_pointers import pointer_of, target_of
from translator.kernel_values import Access, ArrayPointer, Reference, Use
from translator.sizes import ZERO, Size, UnreadableSize, ceildiv, names_in


def record_escapes(code: KernelCode, node: Node | None) -> None:
    """Note that pointers go where they aren't followed: into a structure, an array of pointers, assembly."""
    stack = [node] if node is not None else []
    while stack:
        inner = stack.pop()
        pointer = pointer_of(code, inner)
        if pointer is not None and pointer.array:
            use = Use.READ if "const" in pointer.type else Use.UPDATE
            record(code, replace(pointer, offset=None), use, inner)
        elif inner.type not in ("subscript_expression", "call_expression"):
            stack.extend(inner.named_children)


def record(code: KernelCode, pointer: ArrayPointer | None, use: Use, node: Node, bytes_: Size | None = None) -> None:
    """Note an access of what a pointer points at."""
    if pointer is None or not pointer.array:
        return
    extent: Size | None = None
    item = code.items.get(pointer.array)
    size = bytes_ if bytes_ is not None else code.bytes_or_none(pointer.type)
    if pointer.offset is not None and item is not None and size is not None:
        last = code.bounds.upper(pointer.offset)
        try:
            extent = None if last is None else ceildiv(last + size, item)
        except UnreadableSize:
            extent = None
    if vector_width(code.resolved(pointer.type)) > 1 and pointer.offset is not None and size is not None:
        note_alignment(code, pointer.offset, size)
    scattered = pointer.offset is not None and any(text[0] == "@" for text in names_in(pointer.offset))
    held = code.env.get(code.of(node))
    place = held.place if isinstance(held, Reference) else "".join(code.of(node).split())
    context = tuple(code.context)
    begin, dense, span = None, False, code.expanded_at or span_of(node)
    if use != Use.READ and pointer.offset is not None and size is not None:
        rising = code.bounds.upper(ZERO - pointer.offset)
        begin = ZERO - rising if rising is not None else None
        dense = any(
            len(monomial) == 1 and is_variable(monomial[0]) and size.constant == factor
            for monomial, factor in pointer.offset.terms
        )
    code.accesses.append(
        Access(pointer.array, use, extent, place, context, span, scattered, pointer.offset, begin, dense)
    )


def note_alignment(code: KernelCode, offset: Size, size: Size) -> None:
    """Note what must be a multiple for a vector access to be aligned."""
    if size.constant is None:
        return
    for monomial, factor in offset.terms:
        axes = [atom for atom in monomial if not is_variable(atom)]
        missing = size.constant // gcd(size.constant, factor)
        if missing > 1 and len(axes) == 1 and isinstance(axes[0], str) and len(monomial) > 1:
            code.aligned[(axes[0], missing)] = None


def read_access(code: KernelCode, node: Node) -> None:
    """Note a read of ``a[i]`` or ``*p``."""
    if node.type == "pointer_expression" and node.children[0].type == "&":
        visit_inside(code, node.child_by_field_name("argument"))
        return
    record(code, target_of(code, node), Use.READ, node)
    visit_inside(code, node)


def read_reference(code: KernelCode, node: Node) -> None:
    """Note a read of an element by another name for it."""
    held = code.env.get(code.of(node))
    if isinstance(held, Reference):
        record(code, held.pointer, Use.READ, node)


def refer_to(code: KernelCode, node: Node | None, declared: str) -> Reference | None:
    """Return what a reference is bound to, ``declared`` being its type; None for one to a constant or a local."""
    if node is None or "&" not in declared or "const" in declared.split():
        return None
    pointer = target_of(code, node)
    if pointer is None or not pointer.array:
        return None
    held = code.env.get(code.of(node))
    return Reference(pointer, held.place if isinstance(held, Reference) else "".join(code.of(node).split()))


def visit_inside(code: KernelCode, node: Node | None) -> None:
    """Follow the parts of a place, such as its index, but not the place itself."""
    for child in node.named_children if node is not None else ():
        if child.type == "identifier":
            continue
        if node is not None and node.type == "subscript_expression" and child == node.child_by_field_name("argument") \
                and child.type == "subscript_expression":  # fmt: skip
            visit_inside(code, child)
        else:
            code.visit(child)
