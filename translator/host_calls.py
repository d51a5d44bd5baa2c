"""The calls of host code that matter to launches: memory, checks, dispatching macros, functions of the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import read_size, truth
from translator.c_types import is_integer, plain_type
from translator.cuda_source import shorten, span_of, walk
from translator.definitions import Definition, last_name, parameter_of, template_arguments
from translator.host_checks import keep_check
from translator.host_expressions import read_value, text_size
from translator.host_launches import follow_launch, is_known_type, launch_by_call, launches_within
from translator.host_memory import WORKS, allocate, array_of, clear, copy, is_used, note_between
from translator.host_records import filled, part_of, set_field, unknown_record, zeros
from translator.host_tensors import tensor_size
from translator.host_values import (
    MOST_NESTED,
    Pointer,
    Real,
    Record,
    Tensor,
    Unread,
    Value,
    replaced,
    split_path,
)
from translator.launch_plan import Question
from translator.sizes import Size, UnreadableSize, number

if TYPE_CHECKING:
    from translator.host_code import HostCode


_CHECKS = re.compile(r"(?:TORCH_|AT_|C10_|DCHECK|CHECK|GGML_)?(?:INTERNAL_)?(?:CHECK|ASSERTM?|assert|DCHECK)\Z")
_OF_THE_GPU = (
    "cudaDeviceGetAttribute", "cudaGetDevice", "cudaGetDeviceProperties", "cudaOccupancyMaxPotentialBlockSize",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
)  # fmt: skip
_LOGICAL = ("==", "!=", "<", ">", "<=", ">=", "&&", "||", "!", "and", "or", "not")
_COPIES = ("cudaMemcpy", "cudaMemcpyAsync")


def follow_calls(host: HostCode, node: Node) -> None:
    """Follow the calls within an expression that matter, outer ones first."""
    stack = [node]
    while stack:
        inner = stack.pop()
        if inner.type == "call_expression" and follow_call(host, inner):
            continue
        if inner.type != "lambda_expression":
            stack.extend(reversed(inner.named_children))


def follow_call(host: HostCode, node: Node) -> bool:
    """Follow one call; return whether what stands within it is done with."""
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return False
    values = [child for child in arguments.named_children if child.type != "comment"]
    if any(child.type == "kernel_call_syntax" for child in node.children):
        follow_launch(host, node, function, values)
        return True
    called = last_name(host.of(function))
    if called in ("cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "hipMalloc") and len(values) >= 2:
        allocate(host, values[0], values[1])
    elif called in ("cudaMemset", "cudaMemsetAsync") and len(values) >= 3:
        clear(host, values)
    elif called in _COPIES and len(values) >= 4:
        copy(host, values)
        forget_given(host, node, values[:1])
    elif called in ("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync") and values:
        host.symbols.append(host.of(values[0]).strip("& "))
    elif called in ("cudaFree", "cudaFreeAsync") and values:
        if (array := array_of(host, values[0])) is not None:
            array.freed = True
    elif called in _OF_THE_GPU:
        for value in values:
            if host.of(value).startswith("&"):
                text = host.of(value)[1:].strip()
                fixed = host.answers.get(f"value.{text}")
                unknown = Unread(
                    f"'{text}' is what {called} says of the GPU, which the source doesn't fix", span_of(node)
                )
                host.env[text] = host.answer_size(fixed) if fixed else unknown
    elif called in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel") and len(values) >= 4:
        launch_by_call(host, node, values)
    elif _CHECKS.match(called) and values:
        keep_check(host, values[0], True)
        return False
    elif called in ("zero_", "fill_") and function.type == "field_expression":
        tensor = read_value(host, function.child_by_field_name("argument"))
        if isinstance(tensor, Tensor) and (called == "zero_" or host.of(arguments) in ("(0)", "(0.0f)", "(0.0)")):
            host.arrays[tensor.array].zeroed = not is_used(host, tensor.array)
    elif changes_record(host, node, function):
        return False
    elif any(launches_within(host, lambda_) for lambda_ in _lambdas(node)):
        dispatch(host, node, values)
    elif called == "swap" and swap(host, function, values):
        pass
    elif called == "memset" and isinstance(record := read_value(host, values[0]) if values else None, Record):
        host.env[split_path(host.of(values[0]).lstrip("& "))[0]] = zeros(host, record)
    elif definition := launching(host, called, len(values)) or filling(host, called, values):
        follow_function(host, definition, function, values)
    else:
        forget_given(host, node, values)
        if host.steps and WORKS.match("".join(host.of(function).split())):
            note_between(host, node, called, [inner for value in values for inner in walk(value)])
        return False
    return True


def swap(host: HostCode, function: Node, values: Sequence[Node]) -> bool:
    """Follow ``std::swap(a, b)`` or ``a.swap(b)``; return whether a call is that."""
    own = function.child_by_field_name("argument") if function.type == "field_expression" else None
    sides = [own, *values] if own is not None else list(values)
    if len(sides) != 2:
        return False
    names = ["".join(host.of(side).split()) for side in sides]
    for text, found in zip(names, [read_value(host, side) for side in reversed(sides)], strict=True):
        if not set_field(host, text, found):
            host.env[text] = found
    return True


def forget_given(host: HostCode, node: Node, values: Sequence[Node]) -> None:
    """Drop the values of variables that a call is given by address, or by reference, and may change."""
    name = shorten(host.of(node.child_by_field_name("function")), 40)
    definition = next((d for d in host.definitions.functions.get(last_name(name), []) if d.host), None)
    for at, value in enumerate(values):
        text = "".join(host.of(value).split())
        parameter = definition.parameters[at] if definition is not None and at < len(definition.parameters) else None
        changed = text.startswith("&")
        if parameter is not None:
            type_text, own = parameter_of(host.source, parameter)
            by_reference = "&" in type_text and "const" not in type_text
            written = re.compile(rf"(?<![\w.])\*?{own}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\bswap\s*\([^()]*\b{own}\b")
            body = host.source.text[definition.body.start_byte : definition.body.end_byte] if definition else ""
            changed = (changed or by_reference) and bool(written.search(body))
        target = text.lstrip("&")
        held = host.env.get(target)
        if not changed or not isinstance(held, Size | Real | Pointer):
            continue
        if isinstance(held, Real):
            host.env[target] = Real(target, f"{target} after {name} at {len(host.steps)}", held.type)
        elif isinstance(held, Size) or definition is not None:
            host.env[target] = Unread(f"'{target}' is changed by '{name}', which isn't followed", span_of(node))


def changes_record(host: HostCode, node: Node, function: Node) -> bool:
    """Follow ``p.set(3);``, a statement of its own, which may change the struct; return whether a call is that."""
    if function.type != "field_expression" or node.parent is None or node.parent.type != "expression_statement":
        return False
    name = split_path(host.of(function.child_by_field_name("argument")))[0]
    record = host.env.get(name)
    if isinstance(record, Record):
        host.env[name] = unknown_record(host, record, f"'{shorten(host.of(node), 40)}' may change '{name}'")
    return isinstance(record, Record)


def dispatch(host: HostCode, node: Node, values: Sequence[Node]) -> None:
    """Follow a macro such as ``AT_DISPATCH_…(type, name, [&] {…})`` or ``BOOL_SWITCH(condition, NAME, [&] {…})``."""
    lambda_ = next(inner for inner in _lambdas(node) if launches_within(host, inner))
    body = lambda_.child_by_field_name("body")
    inside = host.of(body)
    identifiers = [value for value in values if value.type in ("identifier", "type_identifier")]
    for at, value in enumerate(values):
        text = host.of(value)
        if value not in identifiers or at == 0 or text in host.env or not re.search(rf"\b{re.escape(text)}\b", inside):
            continue
        if key := host.answers.get(f"value.{text}"):
            host.env[text] = host.answer_size(key)
            continue
        if _is_condition(host, node, values[0]):
            host.env[text] = number(int(host.following.way(host, node, values[0])))
            continue
        found = read_value(host, values[0])
        if isinstance(found, Size) and found.constant is None:
            found = Unread(f"'{text}' is a number that the macro chooses by {found}", span_of(node))
        host.env[text] = found
    for inner in walk(body) if body is not None else ():
        text = host.of(inner)
        if inner.type == "type_identifier" and text.endswith("_t") and not is_known_type(host, text):
            host.types[text] = host.answers.get(f"type.{text}", "float")
            if f"type.{text}" not in host.answers:
                said = f"the host takes {text} from a tensor; float is taken here: answer type.{text} for another"
                host.choices.append(Question(text, said, span_of(node), f"type.{text}"))
    host.run(body)


def _is_condition(host: HostCode, call: Node, first: Node) -> bool:
    """Whether a macro branches by its first argument: it is a comparison, or the macro's name says so."""
    while first.type == "parenthesized_expression" and first.named_child_count == 1:
        first = first.named_children[0]
    logical = first.type in ("binary_expression", "unary_expression") and first.child_by_field_name("operator")
    return bool(logical and host.of(logical) in _LOGICAL) or "BOOL" in host.of(call.child_by_field_name("function"))


def launching(host: HostCode, called: str, count: int) -> Definition | None:
    for definition in host.definitions.functions.get(called, []):
        if definition.host and len(definition.parameters) >= count and launches_within(host, definition.body):
            return definition
    return None


def follow_function(host: HostCode, definition: Definition, function: Node, values: Sequence[Node]) -> None:
    """Follow a call of a host function that launches."""
    host.nested += 1
    if host.nested > MOST_NESTED + 30:
        host.nested -= 1
        return
    given = template_arguments(host.text, function)
    env, types, declared, loose = host.env, host.types, host.declared, host.loose
    inner: dict[str, Value] = {}
    inner_types = dict(types)
    for at, parameter in enumerate(definition.parameters):
        type_text, text = parameter_of(host.source, parameter)
        if at < len(values):
            found = read_value(host, values[at])
            inner[text] = replace(found, name=found.name or text) if isinstance(found, Real) else found
        elif (default := parameter.child_by_field_name("default_value")) is not None:
            inner[text] = read_value(host, default)
        held, plain = inner.get(text), plain_type(type_text)
        if isinstance(held, Pointer) and plain in definition.template:
            inner_types.setdefault(plain, plain_type(held.type))
        elif isinstance(held, Record) and plain in definition.template:
            inner_types[plain] = held.type
    for at, text in enumerate(definition.template):
        argument = given[at] if at < len(given) else definition.template_defaults[at]
        if definition.template_types[at]:
            inner_types[text] = host.resolved(argument) if argument else inner_types.get(text, text)
        elif argument:
            inner[text] = text_size(host, argument, function)
    host.env, host.types, host.declared, host.loose = inner, inner_types, {}, frozenset()
    host.run(definition.body)
    fixed = dict(host.equal)
    after = host.env
    host.env = {text: replaced(value, fixed) for text, value in env.items()}
    for at, parameter in enumerate(definition.parameters[: len(values)]):
        type_text, text = parameter_of(host.source, parameter)
        target = host.of(values[at]).strip("&*() ")
        record = after.get(text)
        whole = isinstance(env.get(target), Record) and re.search(r"[&*]", type_text)
        by_reference = target in env and "&" in type_text and "const" not in type_text
        if record is not None and (whole or by_reference):
            host.env[target] = record
    host.types, host.declared, host.loose = types, declared, loose
    host.nested -= 1


def filling(host: HostCode, called: str, values: Sequence[Node]) -> Definition | None:
    """Return the host function that is called with a struct that it may fill, or with a pointer that it may change."""
    for definition in host.definitions.functions.get(called, []):
        if not definition.host or len(definition.parameters) < len(values):
            continue
        for parameter, value in zip(definition.parameters, values, strict=False):
            type_text, _ = parameter_of(host.source, parameter)
            held = host.env.get(host.of(value).strip("&*() "))
            if isinstance(held, Record) and re.search(r"[&*]", type_text):
                return definition
            if isinstance(held, Pointer) and "&" in type_text and "const" not in type_text:
                return definition
    return None


def call_record(host: HostCode, node: Node) -> Value | None:
    """Return the struct that ``Params{…}``, ``Params(…)`` or a function of the source gives, None for other calls."""
    function = node.child_by_field_name("function") or node.child_by_field_name("type")
    arguments = node.child_by_field_name("arguments") or node.child_by_field_name("value")
    if function is None or arguments is None:
        return None
    if (part := part_of(host, host.of(function))) is not None:
        return filled(host, part, arguments)
    for definition in host.definitions.functions.get(last_name(host.of(function)), []):
        returned = definition.node.child_by_field_name("type")
        if not definition.host or returned is None or part_of(host, host.of(returned)) is None:
            continue
        held, host.returns, host.returned = (host.returns, host.returned), host.of(returned), None
        follow_function(host, definition, function, [c for c in arguments.named_children if c.type != "comment"])
        found = host.returned
        host.returns, host.returned = held
        return found
    return None


def function_result(host: HostCode, definition: Definition, arguments: Sequence[Node]) -> Size:
    """Return what a function of the source gives: its declarations and its one return."""
    if host.nested > MOST_NESTED:
        raise UnreadableSize(f"'{definition.name}' calls itself")
    scope = host.within(host.source.text)
    scope.nested = host.nested + 1
    scope.env, scope.declared = {}, {}
    scope.choices, scope.questions, scope.requires = [], [], []
    for at, parameter in enumerate(definition.parameters):
        type_text, text = parameter_of(host.source, parameter)
        default = parameter.child_by_field_name("default_value")
        given = arguments[at] if at < len(arguments) else default
        if given is None:
            raise UnreadableSize(f"'{definition.name}' is given too few arguments")
        if not (
            is_integer(type_text)
            or type_text.split()[-1] in ("T", "auto")
            or plain_type(type_text) in definition.template
        ):
            raise UnreadableSize(f"what '{definition.name}' gives isn't known")
        scope.env[text] = read_size(given, host)
    return returned_size(scope, definition.body)


def returned_size(host: HostCode, body: Node) -> Size:
    for child in body.named_children:
        if child.type == "return_statement" and child.named_child_count:
            return read_size(child.named_children[0], host)
        if child.type == "if_statement":
            condition = child.child_by_field_name("condition")
            chosen = truth(condition, host)
            branch = child.child_by_field_name("consequence" if chosen else "alternative")
            if chosen is None:
                raise UnreadableSize("which way a function goes isn't known")
            if branch is not None and "return" in host.of(branch):
                block = branch if branch.type == "compound_statement" else None
                if block is not None:
                    return returned_size(host, block)
                found = next((n for n in walk(branch) if n.type == "return_statement"), None)
                if found is not None and found.named_child_count:
                    return read_size(found.named_children[0], host)
            if branch is not None:
                host.run(branch)
        elif child.type != "comment":
            host.run(child)
    raise UnreadableSize("a function returns nothing that can be read")


def _lambdas(node: Node) -> list[Node]:
    return [inner for inner in walk(node) if inner.type == "lambda_expression"]


def call_size(host: HostCode, called: str, arguments: Sequence[Node]) -> Size:
    """Return what a call in an expression gives; raise `UnreadableSize` when that isn't known."""
    object_, _, method = called.rpartition(".")
    if object_ and isinstance(host.env.get(object_), Tensor):
        return tensor_size(host, object_, method, arguments)
    for definition in host.definitions.functions.get(last_name(called), []):
        if len(definition.parameters) >= len(arguments) and not launches_within(host, definition.body):
            return function_result(host, definition, arguments)
    raise UnreadableSize(f"what '{shorten(called, 40)}' gives isn't known")
