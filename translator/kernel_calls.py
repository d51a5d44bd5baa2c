"""Calls in a kernel: atomics, loads and stores by name, device functions of the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from translator.c_integers import read_text
from translator.c_types import cast_target, is_integer, plain_type, split_types
from translator.definitions import Definition, last_name, parameter_of
from translator.kernel_accesses import record, refer_to, visit_inside
from translator.kernel_code import MOST_CALLS, KernelCode
from translator.kernel_pointers import copy_members, element_of, pointer_of, read_value
from translator.kernel_values import ArrayPointer, KernelValue, Use
from translator.sizes import Size, UnreadableSize

_ATOMICS = re.compile(r"atomic[A-Z]\w*|red_\w+")


def call_statement(code: KernelCode, node: Node) -> None:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return
    values = [child for child in arguments.named_children if child.type != "comment"]
    called = "".join(code.of(function).split())
    plain = last_name(called)
    if cast_target(code.of(function)):
        for value in values:
            code.visit(value)
        return
    if (expanded := code.expanded(node)) is not None:
        expanded[0].visit(expanded[1])
        return
    pointers = [pointer_of(code, value) for value in values]
    if _ATOMICS.fullmatch(plain) and values:
        record(code, pointers[0], Use.UPDATE, values[0])
    elif plain in ("__pipeline_memcpy_async", "memcpy_async", "memcpy") and len(values) >= 3:
        bytes_ = read_value(code, values[2])
        for pointer, use, value in ((pointers[0], Use.WRITE, values[0]), (pointers[1], Use.READ, values[1])):
            record(code, pointer, use, value, bytes_ if isinstance(bytes_, Size) else None)
    elif plain.startswith(("__ldg", "__ldc", "ldg", "__builtin_nontemporal_load")) and values:
        record(code, pointers[0], Use.READ, values[0])
    elif plain.startswith(("__stcs", "__stcg", "__stwt", "__stwb")) and values:
        record(code, pointers[0], Use.WRITE, values[0])
    elif not device_function(code, plain, len(values)):
        for pointer, value in zip(pointers, values, strict=True):
            if pointer is not None and pointer.array:
                use = Use.READ if "const" in pointer.type else Use.UPDATE
                record(code, replace(pointer, offset=None), use, value)
    definition = device_function(code, plain, len(values))
    for at, value in enumerate(values):
        if definition is not None and refer_to(code, value, parameter_of(code.source, definition.parameters[at])[0]):
            visit_inside(code, value)
        elif not (value.type == "pointer_expression" and value.children[0].type == "&"):
            code.visit(value)
        else:
            visit_inside(code, value.child_by_field_name("argument"))
    if function.type == "field_expression":
        code.visit(function.child_by_field_name("argument"))
    if code.calls >= MOST_CALLS and device_function(code, plain, len(values)) and plain not in code.following_now:
        code.cut = True
    follow_function(code, called, values)


def device_function(code: KernelCode, called: str, count: int) -> Definition | None:
    for definition in code.definitions.functions.get(called, []):
        if len(definition.parameters) >= count:
            return definition
    return None


def follow_function(code: KernelCode, called: str, values: Sequence[Node]) -> KernelValue:
    """Follow a call of a device function and return what it gives."""
    definition = device_function(code, last_name(called), len(values))
    if definition is None or code.calls >= MOST_CALLS:
        return None
    env: dict[str, KernelValue] = {}
    declared: dict[str, str] = {}
    types = dict(code.types)
    given = re.search(r"<(.*)>\Z", called)
    for at, argument in enumerate(split_types(given[1]) if given else []):
        if at < len(definition.template):
            if definition.template_types[at]:
                types[definition.template[at]] = code.resolved(argument)
            else:
                try:
                    env[definition.template[at]] = read_text(argument, code)
                except UnreadableSize:
                    env[definition.template[at]] = None
    for at, parameter in enumerate(definition.parameters):
        type_text, text = parameter_of(code.source, parameter)
        declared[text] = type_text
        found = (
            read_value(code, values[at])
            if at < len(values)
            else read_value(code, parameter.child_by_field_name("default_value"))
        )
        if (reference := refer_to(code, values[at] if at < len(values) else None, type_text)) is not None:
            env[text] = reference
            if (plain := plain_type(type_text)) in definition.template:
                types[plain] = reference.pointer.type
            continue
        if isinstance(found, ArrayPointer) and plain_type(type_text) in definition.template:
            types.setdefault(plain_type(type_text), found.type)
        if isinstance(found, ArrayPointer) and "*" in type_text and plain_type(type_text) not in definition.template:
            found = replace(found, type=type_text.replace("*", ""))
        env[text] = found
        copy_members(code, values[at] if at < len(values) else None, text, env)
    held = code.env, code.declared, code.types, len(code.bounds.facts), code.returned, code.text
    code.env, code.declared, code.types, code.returned, code.text = env, declared, types, None, code.source.text
    code.calls += 1
    code.following_now.append(definition.name)
    code.visit(definition.body)
    code.following_now.pop()
    code.calls -= 1
    found = code.returned
    del code.bounds.facts[held[3] :]
    code.env, code.declared, code.types, code.returned, code.text = held[0], held[1], held[2], held[4], held[5]
    return found


def call_size(code: KernelCode, called: str, arguments: Sequence[Node]) -> Size:
    """Return what a call in an expression gives; raise `UnreadableSize` when that isn't known."""
    if last_name(called) in ("__ldg", "ldg", "__ldcs", "__ldca", "__ldcg") and arguments:
        return element_of(code, read_value(code, arguments[0]))
    definition = device_function(code, last_name(called), len(arguments))
    if definition is not None and is_integer(code.of(definition.node.child_by_field_name("type"))):
        found = follow_function(code, called, arguments)
        if isinstance(found, Size):
            return found
    raise UnreadableSize("what this call gives isn't known")
