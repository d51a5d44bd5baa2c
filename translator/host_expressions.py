"""What the expressions of host code give: sizes, pointers, launch sizes, numbers, or the reason why it isn't known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import read_size, read_text, truth
from translator.c_types import cast_target, is_real, plain_type
from translator.cuda_source import shorten, span_of
from translator.definitions import last_name
from translator.host_values import Grid, KernelName, Null, Pointer, Real, Record, Tensor, Unread, Value
from translator.sizes import ONE, Size, UnreadableSize, number

if TYPE_CHECKING:
    from translator.host_code import HostCode


SAME_TENSOR = ("contiguous", "to", "clone", "cuda", "detach", "view", "reshape", "flatten")
_POINTER_METHODS = ("data_ptr", "const_data_ptr", "mutable_data_ptr", "data", "get")


def read_value(host: HostCode, node: Node | None) -> Value:
    """Return what an expression gives."""
    if node is None:
        return Unread("nothing stands here", span_of(host.source.root))
    try:
        found = known_value(host, node)
        return found if found is not None else read_size(node, host)
    except UnreadableSize as error:
        return Unread(str(error), span_of(node))


def known_value(host: HostCode, node: Node) -> Value | None:
    kind, text = node.type, host.of(node)
    if kind == "identifier":
        found = host.env.get(text)
        if found is None and any(not d.host for d in host.definitions.functions.get(text, [])):
            return KernelName(text)
        if found is None and text in host.definitions.pointers:
            return Pointer(text, host.resolved(host.definitions.pointers[text]))
        return found
    if kind == "template_function":
        return KernelName(text)
    if kind in ("null", "nullptr") or text in ("nullptr", "NULL"):
        return Null()
    if kind in ("parenthesized_expression", "initializer_list", "argument_list") and node.named_child_count == 1:
        return known_value(host, node.named_children[0])
    if kind == "cast_expression":
        return cast_value(host, node.child_by_field_name("type"), node.child_by_field_name("value"))
    if kind == "call_expression":
        return called_value(host, node)
    if kind == "field_expression":
        return host.env.get("".join(text.split())) or host.field(text)
    if kind == "subscript_expression":
        return host.field(text)
    if kind == "lambda_expression":
        return Unread("a lambda of the host stays there: write it as a struct with an operator()", span_of(node))
    if kind == "compound_literal_expression":
        return host.following.record(host, node)
    if kind == "pointer_expression":
        return address_of(host, node)
    if kind == "conditional_expression":
        condition = node.child_by_field_name("condition")
        sides = [node.child_by_field_name(side) for side in ("alternative", "consequence")]
        if all(side is not None and isinstance(known_value(host, side), KernelName) for side in sides):
            return read_value(host, sides[host.following.way(host, node, condition)])
        if (chosen := truth(condition, host)) is not None:
            return read_value(host, sides[chosen])
    if kind == "binary_expression" and node.children[1].type in ("+", "-"):
        left = known_value(host, node.children[0])
        right = known_value(host, node.children[2])
        if isinstance(left, Pointer):
            return moved(host, left, node.children[2], 1 if node.children[1].type == "+" else -1)
        if isinstance(right, Pointer) and node.children[1].type == "+":
            return moved(host, right, node.children[0], 1)
    if kind == "number_literal" and re.fullmatch(r"[\d.]+(?:[eE][-+]?\d+)?[fF]?", text) and re.search(r"[.fFeE]", text):
        return Real("", text, "float" if text[-1] in "fF" else "double")
    return None


def moved(host: HostCode, pointer: Pointer, node: Node, sign: int) -> Pointer:
    offset = read_size(node, host) * host.type_bytes(pointer.type) * number(sign)
    return replace(pointer, offset=pointer.offset + offset)


def address_of(host: HostCode, node: Node) -> Value | None:
    argument = node.child_by_field_name("argument")
    if argument is not None and isinstance(record := known_value(host, argument), Record):
        return record  # a pointer to a struct stands for it
    if node.children[0].type != "&" or argument is None:
        return None
    if argument.type == "subscript_expression":
        base = known_value(host, argument.children[0])
        indices = argument.child_by_field_name("indices")
        if isinstance(base, Pointer) and indices is not None:
            return moved(host, base, indices.named_children[0], 1)
    found = known_value(host, argument)
    return found if isinstance(found, KernelName) else None


def cast_value(host: HostCode, target: Node | None, value: Node | None) -> Value | None:
    return converted(host, host.of(target), value)


def converted(host: HostCode, type_text: str, value: Node | None) -> Value | None:
    if value is None:
        return None
    found = known_value(host, value)
    resolved = host.resolved(type_text)
    if isinstance(found, Pointer) and "*" in resolved and plain_type(resolved) != "void":
        if found.array in host.arrays and plain_type(host.arrays[found.array].type) in ("", "void"):
            host.arrays[found.array].type = resolved.replace("*", "").strip()
        return replace(found, type=resolved.replace("*", "").strip())
    if "*" in resolved and host.of(value).strip("() ") == "0":
        return Null()
    if isinstance(found, Real):
        return replace(found, type=plain_type(resolved) if is_real(resolved) else found.type)
    if is_real(resolved) and "*" not in resolved:
        return Real("", real_text(host, value), plain_type(resolved))
    return found


def called_value(host: HostCode, node: Node) -> Value | None:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return None
    values = [child for child in arguments.named_children if child.type != "comment"]
    called = "".join(host.of(function).split())
    if target := cast_target(host.of(function)):
        return converted(host, target, values[0]) if len(values) == 1 else None
    if called == "dim3":
        return grid_of(host, [size_or_reason(host, value) for value in values], node)
    if called.endswith("raw_pointer_cast") and values:
        return known_value(host, values[0])
    if is_real(called) and len(values) == 1:
        return converted(host, called, values[0])
    if re.fullmatch(r"(?:std::)?(?:sqrtf?|rsqrtf?|powf?|expf?|logf?|log2f?|exp2f?|fabsf?)", called):
        return Real("", real_text(host, node), "float")
    if function.type == "field_expression":
        object_ = known_value(host, function.child_by_field_name("argument") or function)
        field = function.child_by_field_name("field")
        method = last_name(host.of(field))
        if isinstance(object_, Tensor) and method in _POINTER_METHODS:
            given = re.search(r"<(.*)>", host.of(field), re.DOTALL)
            array = host.arrays[object_.array]
            if given and not array.type:
                array.type = host.resolved(given[1])
            return Pointer(object_.array, host.resolved(given[1]) if given else array.type)
        if isinstance(object_, Pointer) and method in _POINTER_METHODS:
            return object_
        if isinstance(object_, Tensor) and method in SAME_TENSOR:
            return object_
    return host.following.record(host, node)


def size_or_reason(host: HostCode, node: Node) -> Size | Unread:
    found = read_value(host, node)
    if isinstance(found, Size | Unread):
        return found
    return Unread(f"'{shorten(host.of(node), 40)}' is no integer", span_of(node))


def text_size(host: HostCode, text: str, node: Node) -> Size | Unread:
    try:
        return read_text(text, host)
    except UnreadableSize as error:
        return Unread(str(error), span_of(node))


def declared_grid(host: HostCode, value: Node | None, node: Node) -> Grid | Unread:
    if value is None:
        return Grid(ONE)
    if value.type in ("argument_list", "initializer_list"):
        children = [child for child in value.named_children if child.type != "comment"]
        if len(children) != 1:
            return grid_of(host, [size_or_reason(host, child) for child in children], node)
        value = children[0]
    return as_grid(host, read_value(host, value), node)


def as_grid(host: HostCode, found: Value, node: Node) -> Grid | Unread:
    """Return a value as the ``dim3`` that it converts to."""
    if isinstance(found, Grid | Unread):
        return found
    if isinstance(found, Size):
        return Grid(found)
    return Unread(f"'{shorten(host.of(node), 40)}' is no launch size", span_of(node))


def grid_of(host: HostCode, sizes: Sequence[Size | Unread], node: Node) -> Grid | Unread:
    known: list[Size] = []
    for size in sizes[:3]:
        if isinstance(size, Unread):
            return size
        known.append(size)
    return Grid(*(known or [ONE]))


def real_text(host: HostCode, value: Node) -> str:
    """Return the text of a floating-point expression with what is known put in."""

    def known(match: re.Match[str]) -> str:
        held = host.env.get(match[0])
        if isinstance(held, Size):
            return str(held.constant) if held.constant is not None else f"({held})"
        return f"({held.text})" if isinstance(held, Real) and held.text else match[0]

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", known, " ".join(host.of(only_value(host, value)).split()))


def only_value(host: HostCode, value: Node) -> Node:
    while (
        value.type in ("argument_list", "initializer_list", "parenthesized_expression") and value.named_child_count == 1
    ):
        value = value.named_children[0]
    return value


def is_new(host: HostCode, value: Node) -> bool:
    text = host.of(value)
    return (
        value.type == "null"
        or text in ("nullptr", "NULL", "0", "{}")
        or bool(re.search(r"\b(?:malloc|calloc|new|cudaMallocHost)\b", text))
    )
