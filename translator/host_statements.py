"""The statements of a host function, followed in order: declarations, assignments, blocks, returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_types import ITEM_BYTES, is_integer, is_real, plain_type
from translator.cuda_source import declared_name, shorten, span_of, walk
from translator.definitions import Definition, parameter_of
from translator.host_branches import follow_if, follow_loop, follow_switch, way_of
from translator.host_calls import call_record, call_size, follow_calls
from translator.host_code import Following
from translator.host_expressions import (
    as_grid,
    declared_grid,
    grid_of,
    is_new,
    known_value,
    moved,
    only_value,
    read_value,
    real_text,
    size_or_reason,
    text_size,
)
from translator.host_launches import with_values
from translator.host_records import (
    assign_record,
    new_record,
    parameter_record,
    record_from_function,
    set_field,
)
from translator.host_tensors import dimension, makes_tensor, new_tensor, new_vector, rename_size
from translator.host_values import Grid, HostArray, Pointer, Real, Record, Tensor, Unread, Value
from translator.sizes import Size, UnreadableSize, name, number
from translator.struct_types import aliases_of

if TYPE_CHECKING:
    from translator.host_code import HostCode


TENSOR_TYPES = re.compile(r"\b(?:torch|at)::Tensor\b|^Tensor$")
VECTOR_TYPES = re.compile(r"\b(?:vector|device_vector|host_vector)\s*<(?P<item>[^<>]*)>")
_SIZE_SOURCES = re.compile(r"\b(?:atoi|atol|atoll|stoi|stol|stoul|strtol|strtoul|size|numel|argc|argv|dim|length)\b")


def enter(host: HostCode, definition: Definition, given: Mapping[str, Value], driver: bool) -> None:
    """Bind the parameters of the function that the plan starts from: integers become axes, pointers arrays."""
    for parameter in definition.parameters:
        type_text, text = parameter_of(host.source, parameter)
        if text in given:
            host.env[text] = given[text]
        elif text:
            host.env[text] = parameter_value(host, text, type_text, parameter)
    if driver:
        host.loose = argument_names(host, definition.body)


def run(host: HostCode, node: Node | None) -> bool:
    """Follow a statement; return whether the function ends with it, or a round of a loop (`leaving` says which way)."""
    if node is None:
        return False
    kind = node.type
    if kind == "compound_statement" or kind.startswith("preproc_") or kind in ("try_statement", "else_clause"):
        return run_block(host, node)
    if kind == "declaration":
        run_declaration(host, node)
    elif kind == "expression_statement":
        for child in node.named_children:
            run_expression(host, child)
    elif kind == "if_statement":
        return follow_if(host, node)
    elif kind in ("for_statement", "while_statement", "do_statement", "for_range_loop"):
        return follow_loop(host, node)
    elif kind == "switch_statement":
        return follow_switch(host, node)
    elif kind in ("break_statement", "continue_statement"):
        host.leaving = kind.partition("_")[0]
        return True
    elif kind in ("return_statement", "throw_statement"):
        note_return(host, node)
        return True
    elif kind in ("labeled_statement", "ERROR"):
        return run_block(host, node)
    elif kind in ("alias_declaration", "type_definition"):
        note_alias(host, node)
    return False


def run_block(host: HostCode, node: Node) -> bool:
    """Follow the statements of a block, of ``#if`` the first branch; return whether the function ends with one."""
    outer = dict(host.env) if node.type == "compound_statement" else {}
    ended = any(
        run(host, child)
        for child in node.named_children
        if child.type not in ("preproc_else", "preproc_elif", "catch_clause")
    )
    if node.parent is not None and node.parent.type not in ("function_definition", "lambda_expression"):
        for child in node.named_children if outer else ():
            if child.type == "declaration":
                for declarator in child.children_by_field_name("declarator"):
                    text = host.of(_named(declarator))
                    if text in outer:  # a variable of the block's own hid one of the same name
                        host.env[text] = outer[text]
    return ended


def _named(declarator: Node) -> Node | None:
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    return declared_name(inner) if inner is not None else None


def note_alias(host: HostCode, node: Node) -> None:
    for alias, type_text in aliases_of(host.of, node).items():
        host.types[alias] = with_values(host, host.resolved(type_text))


def note_return(host: HostCode, node: Node) -> None:
    for child in node.named_children:
        follow_calls(host, child)
        found = new_record(host, host.returns, child, child) if host.returns else known_value(host, child)
        if isinstance(found, Record):
            host.returned = found
        for inner in walk(child):
            value = host.env.get(host.of(inner)) if inner.type == "identifier" else None
            if isinstance(value, Tensor) and value.array in host.arrays:
                host.arrays[value.array].returned = True


def run_declaration(host: HostCode, node: Node) -> None:
    qualifiers = [host.of(child) for child in node.children if child.type == "type_qualifier"]
    base = " ".join([*(q for q in qualifiers if q != "constexpr"), host.of(node.child_by_field_name("type"))])
    for declarator in node.children_by_field_name("declarator"):
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        if inner is not None and inner.type == "function_declarator" and plain_type(base) == "dim3":
            # dim3 grid(blocks, heads) reads as the declaration of a function
            grid_from_function(host, inner)
            continue
        if inner is not None and inner.type == "function_declarator":
            named, parameters = inner.child_by_field_name("declarator"), inner.child_by_field_name("parameters")
            texts = [host.of(child) for child in parameters.named_children] if parameters is not None else []
            if (record := record_from_function(host, base, texts, inner)) is not None:
                host.env[host.of(named)] = record
                continue
        named = declared_name(inner) if inner is not None else None
        if named is None or inner is None:
            continue
        type_text = base + host.of(inner).replace(host.of(named), "")
        if plain_type(base) == "void" and "[" in type_text and value is not None:
            host.pointers[host.of(named)] = [_pointed(child) for child in value.named_children]
            continue
        declare(host, host.of(named), type_text, value, node, "constexpr" in qualifiers)


def grid_from_function(host: HostCode, declarator: Node) -> None:
    named, parameters = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("parameters")
    texts = [host.of(child) for child in parameters.named_children] if parameters is not None else []
    host.env[host.of(named)] = grid_of(host, [text_size(host, text, declarator) for text in texts], declarator)


def declare(host: HostCode, text: str, type_text: str, value: Node | None, node: Node, fixed: bool) -> None:
    host.declared[text] = type_text
    resolved = host.resolved(type_text)
    plain = plain_type(resolved)
    if fixed_value := host.answers.get(f"value.{text}"):
        host.env[text] = host.answer_size(fixed_value)
    elif plain == "dim3":
        host.env[text] = declared_grid(host, value, node)
    elif (record := new_record(host, type_text, value, node)) is not None:
        host.env[text] = record
    elif "*" in type_text and (value is None or is_new(host, value)):
        host.env[text] = Pointer(text, resolved.replace("*", "").strip())
    elif TENSOR_TYPES.search(plain) or makes_tensor(host, value):
        host.env[text] = new_tensor(host, text, value)
    elif match := VECTOR_TYPES.search(resolved):
        new_vector(host, text, match["item"], value)
    elif value is None:
        host.env[text] = Unread(f"'{text}' has no value when it is needed", span_of(node))
    elif is_real(plain) and "*" not in type_text:
        host.env[text] = Real(text, real_text(host, value), plain)
    else:
        host.env[text] = initial_value(host, text, value, fixed)
    if value is not None:
        follow_calls(host, value)


def initial_value(host: HostCode, text: str, value: Node, fixed: bool) -> Value:
    """Return the value of a variable that may be an integer; a size from outside makes it an axis."""
    found = read_value(host, only_value(host, value))
    if isinstance(found, Size) and found.constant is not None and not fixed and text in host.loose:
        host.given[text] = found.constant
        return host.axis(text)
    if isinstance(found, Size) and not found.constant and len(found.terms) == 1:
        rename_size(host, text, found, value)
        return host.env.get(text, found)
    return host.axis(text) if isinstance(found, Unread) and is_from_outside(host, text, value) else found


def is_from_outside(host: HostCode, text: str, value: Node) -> bool:
    """Whether an integer variable takes its value from a command line or from the size of something."""
    type_text = host.resolved(host.declared.get(text, ""))
    return (is_integer(type_text) or plain_type(type_text) == "auto") and bool(_SIZE_SOURCES.search(host.of(value)))


def run_expression(host: HostCode, node: Node) -> None:
    kind = node.type
    if kind == "assignment_expression":
        assign(host, node)
    elif kind == "update_expression":
        argument = node.child_by_field_name("argument")
        held = host.env.get(host.of(argument))
        if isinstance(held, Size):
            host.env[host.of(argument)] = held + number(1 if "++" in host.of(node) else -1)
    elif kind == "comma_expression":
        for child in node.named_children:
            run_expression(host, child)
    else:
        follow_calls(host, node)


def assign(host: HostCode, node: Node) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return
    if right.type == "assignment_expression":  # a = b = 0
        assign(host, right)
        right = right.child_by_field_name("left") or right
    follow_calls(host, right)
    operator = host.of(node.child_by_field_name("operator"))
    target = "".join(host.of(left).split())
    object_, _, part = target.rpartition(".")
    held = host.env.get(object_ if object_ else target)
    if left.type == "call_expression":  # std::tie(a, b) = ...
        for text in {host.of(inner) for inner in walk(left)} & set(host.env):
            host.env[text] = Unread(f"'{text}' is one of several that are assigned at once", span_of(node))
    elif operator != "=":
        assign_compound(host, target, operator, right)
    elif isinstance(held, Grid) and object_ and part in ("x", "y", "z"):
        size = size_or_reason(host, right)
        host.env[object_] = size if isinstance(size, Unread) else replace(held, **{part: size})
    elif assign_record(host, target, right):
        pass
    elif left.type in ("identifier", "field_expression"):
        if makes_tensor(host, right):
            host.env[target] = new_tensor(host, target, right)
        elif isinstance(held, Grid):
            host.env[target] = as_grid(host, read_value(host, right), right)
        elif not (isinstance(held, Pointer) and is_new(host, right)):
            found = read_value(host, right)
            if isinstance(held, Real) and not isinstance(found, Real):
                found = replace(held, text=real_text(host, right))
            if isinstance(found, Unread) and is_from_outside(host, target, right):
                found = host.axis(target)
            host.env[target] = replace(found, name=target) if isinstance(found, Real) else found


def assign_compound(host: HostCode, target: str, operator: str, right: Node) -> None:
    held = host.env.get(target) or host.field(target)
    found: Value
    if isinstance(held, Pointer) and operator in ("+=", "-="):
        try:
            found = moved(host, held, right, 1 if operator == "+=" else -1)
        except UnreadableSize as error:
            found = Unread(str(error), span_of(right))
    elif isinstance(held, Size):
        found = text_size(host, f"({target}) {operator[:-1]} ({host.of(right)})", right)
    elif isinstance(held, Real):
        found = replace(held, text=f"({held.text or held.name}) {operator[:-1]} ({real_text(host, right)})")
    else:
        return
    if not set_field(host, target, found):
        host.env[target] = found


def parameter_value(host: HostCode, text: str, type_text: str, node: Node) -> Value:
    resolved = host.resolved(type_text)
    plain = plain_type(resolved)
    if answer := host.answers.get(f"value.{text}"):
        return host.answer_size(answer)
    if TENSOR_TYPES.search(plain):
        host.arrays.setdefault(text, HostArray(text, ""))
        return Tensor(text)
    to_struct = "*" in resolved and text and plain not in ITEM_BYTES
    handled = to_struct and re.search(rf"\b{text}\s*->|\(\s*\*\s*{text}\s*\)", host.source.text)
    if handled and (record := parameter_record(host, text, resolved.replace("*", ""))) is not None:
        return record
    if "*" in resolved or "[" in resolved:
        pointee = resolved.replace("*", "").strip()
        host.arrays.setdefault(text, HostArray(text, "" if plain == "void" else pointee))
        return Pointer(text, pointee)
    if (record := parameter_record(host, text, type_text)) is not None:
        return record
    if plain == "dim3":
        return Grid(*(host.axis(f"{text}_{part}") for part in "xyz"))
    if is_real(plain):
        return Real(text, "", plain)
    if is_integer(plain):
        if plain == "bool":
            host.flags.append(text)
        return host.axis(text)
    if values := enum_values(host, plain):
        host.requires.append(("most", name(text), number(max(values))))
        return host.axis(text)
    return Unread(f"'{text}' is a {shorten(plain, 40)}, which isn't followed", span_of(node))


def enum_values(host: HostCode, type_text: str) -> list[int]:
    """Return the values of an enum of the source, none for other types."""
    begin = f"{type_text.rpartition('::')[2]}::"
    texts = [text for label, text in host.definitions.enumerators.items() if label.startswith(begin)]
    found = (text_size(host, text, host.source.root) for text in texts)
    return [size.constant for size in found if isinstance(size, Size) and size.constant is not None]


def argument_names(host: HostCode, body: Node) -> frozenset[str]:
    """Return the variables that are passed to kernels by name: in a driver their values are examples of sizes."""
    found: set[str] = set()
    for node in walk(body):
        if node.type == "call_expression" and any(child.type == "kernel_call_syntax" for child in node.children):
            arguments = node.child_by_field_name("arguments")
            children = arguments.named_children if arguments is not None else []
            found.update(host.of(child) for child in children if child.type == "identifier")
    return frozenset(found)


def _pointed(node: Node) -> Node:
    """Return what ``(void*)&x`` points at."""
    while node.type in ("cast_expression", "parenthesized_expression", "pointer_expression"):
        inner = node.child_by_field_name("value") or node.child_by_field_name("argument") or node.named_children[0]
        node = inner
    return node


FOLLOWING = Following(run, run_expression, call_size, dimension, call_record, way_of)
