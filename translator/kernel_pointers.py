"""Pointers into arrays: what an expression of a kernel points at, in bytes from the array's beginning."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from tree_sitter import Node

from translator.c_integers import read_size
from translator.c_types import ITEM_BYTES, cast_target, is_integer, plain_type
from translator.cuda_source import declared_name
from translator.kernel_code import KernelCode
from translator.kernel_values import ArrayPointer, KernelValue, Reference
from translator.sizes import ZERO, Size, UnreadableSize, name, names_in, number


def read_value(code: KernelCode, node: Node | None) -> KernelValue:
    """Return what an expression gives, None when that isn't known."""
    if node is None:
        return None
    try:
        found = pointer_of(code, node)
        return found if found is not None else read_size(node, code)
    except UnreadableSize:
        return None


def pointer_of(code: KernelCode, node: Node) -> ArrayPointer | None:
    kind = node.type
    if kind == "identifier":
        found = code.env.get(code.of(node))
        return found if isinstance(found, ArrayPointer) else None
    if kind in ("field_expression", "subscript_expression"):
        found = code.env.get(member_key(code, node))
        return found if isinstance(found, ArrayPointer) else None
    if kind == "parenthesized_expression" and node.named_child_count == 1:
        return pointer_of(code, node.named_children[0])
    if kind == "cast_expression":
        inner = node.child_by_field_name("value")
        return retyped(code, inner, code.of(node.child_by_field_name("type")))
    if kind == "call_expression":
        called = code.of(node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.named_child_count and (target := cast_target(called)):
            return retyped(code, arguments.named_children[0], target)
        expanded = code.expanded(node)
        return pointer_of(*expanded) if expanded is not None else None
    if kind == "binary_expression" and node.children[1].type in ("+", "-"):
        left, right = pointer_of(code, node.children[0]), pointer_of(code, node.children[2])
        sign = 1 if node.children[1].type == "+" else -1
        if left is not None:
            return moved(code, left, node.children[2], sign)
        if right is not None and sign == 1:
            return moved(code, right, node.children[0], 1)
    if kind == "pointer_expression" and node.children[0].type == "&":
        argument = node.child_by_field_name("argument")
        return target_of(code, argument) if argument is not None else None
    if kind == "conditional_expression":
        return pointer_of_two(code, node)
    return None


def member_key(code: KernelCode, node: Node) -> str:
    """Return the name under which a member of a struct is held: ``p.dims.rows``."""
    return "".join(code.of(node).split()).replace("->", ".")


def copy_members(code: KernelCode, node: Node | None, text: str, env: dict[str, KernelValue]) -> None:
    """Hold the members of a struct under another name as well: that of a copy, a reference, or a parameter."""
    begin = member_key(code, node).strip("&*()") if node is not None else ""
    if not re.fullmatch(r"\w+(?:\.\w+|\[\d+\])*", begin):
        return
    for held, value in list(code.env.items()):
        if held.startswith(begin) and held[len(begin) : len(begin) + 1] in (".", "["):
            env[text + held[len(begin) :]] = value


def pointer_of_two(code: KernelCode, node: Node) -> ArrayPointer | None:
    sides = [
        pointer_of(code, n) for n in map(node.child_by_field_name, ("consequence", "alternative")) if n is not None
    ]
    known = [side for side in sides if side is not None]
    if len(known) == 2 and known[0] != known[1]:
        return replace(known[0], offset=None) if known[0].array == known[1].array else None
    return known[0] if known else None


def retyped(code: KernelCode, node: Node | None, type_text: str) -> ArrayPointer | None:
    found = pointer_of(code, node) if node is not None else None
    return replace(found, type=type_text.replace("*", "").strip()) if found is not None and "*" in type_text else found


def moved(code: KernelCode, pointer: ArrayPointer, node: Node, sign: int) -> ArrayPointer:
    if not pointer.array:
        note_indexing(code, node)
    if not pointer.array or pointer.offset is None:
        return pointer
    try:
        offset = read_size(node, code) * code.type_bytes(pointer.type) * number(sign)
        return replace(pointer, offset=pointer.offset + offset)
    except UnreadableSize:
        return replace(pointer, offset=None)


def note_indexing(code: KernelCode, index: Node) -> None:
    """Note the arrays whose elements say, without a bound, where shared or local memory is accessed."""
    with suppress(UnreadableSize):
        last = code.bounds.upper(read_size(index, code))
        code.indexing.update(text[1:] for text in names_in(last or ZERO) if text[0] == "?")


def target_of(code: KernelCode, node: Node) -> ArrayPointer | None:
    """Return where ``a[i]``, ``*p``, ``a[i].x`` points."""
    while node.type in ("field_expression", "parenthesized_expression") and pointer_of(code, node) is None:
        inner = node.child_by_field_name("argument") or next(iter(node.named_children), None)
        if inner is None:
            return None
        node = inner
    if node.type == "identifier" and isinstance(held := code.env.get(code.of(node)), Reference):
        return held.pointer
    if node.type == "call_expression":
        expanded = code.expanded(node)
        return target_of(*expanded) if expanded is not None else None
    if node.type == "subscript_expression":
        argument, indices = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        base = pointer_of(code, argument) if argument is not None else None
        if base is None and argument is not None and argument.type == "subscript_expression":
            base = target_of(code, argument)
            return base if base is not None and not base.array else None
        if base is not None and indices is not None and indices.named_child_count:
            return moved(code, base, indices.named_children[0], 1)
    if node.type == "pointer_expression" and node.children[0].type == "*":
        argument = node.child_by_field_name("argument")
        return pointer_of(code, argument) if argument is not None else None
    return None


def element_of(code: KernelCode, pointer: KernelValue) -> Size:
    """Return an element of an integer array as a size that stays below what is known of that array."""
    if isinstance(pointer, ArrayPointer) and pointer.array and is_integer(code.resolved(pointer.type)):
        variable = f"@{pointer.array}"
        plain = plain_type(code.resolved(pointer.type))
        if ITEM_BYTES.get(plain) == 1:
            largest = 255 if plain.startswith(("u", "uint")) or "unsigned" in plain else 127
            code.bounds.high.setdefault(variable, number(largest))
        return name(variable)
    raise UnreadableSize("an element that isn't known")


def size_of_element(code: KernelCode, node: Node) -> Size:
    """Return ``a[i]`` or ``*p`` of an integer array as a size; raise `UnreadableSize` for any other."""
    return element_of(code, target_of(code, node))


def declared_in(declarator: Node) -> Node | None:
    """Return the name that a declarator declares, with or without a value."""
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    return declared_name(inner) if inner is not None else None
