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
from translator.host_records import filled, part_of, zeros
from translator.host_tensors import tensor_size
from translator.host_values import (
    MOST_NESTED,
    HostArray,
    Pointer,
    Real,
    Record,
    Tensor,
    Unread,
    Value,
    pointers_in,
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
    elif any(launches_within(host, lambda_) for lambda_ in _lambdas(node)):
        dispatch(host, node, values)
    elif called == "memset" and isinstance(record := read_value(host, values[0]) if values else None, Record):
        host.env[split_path(host.of(values[0]).lstrip("& "))[0]] = zeros(host, record)
    elif definition := launching(host, called, len(values)) or filling(host, called, values):
        follow_function(host, definition, function, values)
    else:
        return False
    return True


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
    if array is not None and truth(values[1], host) is False and not is_used(host, array.name):
        array.zeroed = True
        note_bytes(host, array, values[2])


def note_bytes(host: HostCode, array: HostArray, node: Node) -> None:
    """Keep how many bytes the host clears or copies: what an array has when nothing else says."""
    found = read_value(host, node)
    if isinstance(found, Size) and array.moved is None:
        array.moved = found


def copy(host: HostCode, values: Sequence[Node]) -> None:
    kind = host.of(values[3])
    if kind.endswith("HostToDevice") and (array := array_of(host, values[0])) is not None:
        array.copied_in = True
        note_bytes(host, array, values[2])
    elif kind.endswith("DeviceToHost") and (array := array_of(host, values[1])) is not None:
        array.copied_out = True
        note_bytes(host, array, values[2])
    elif kind.endswith("DeviceToDevice") and any(array_of(host, value) is not None for value in values[:2]):
        host.ask(host.of(values[0]), "the host copies one device array into another here, which a plan has no step "
                  "for: do it in a kernel", values[0].parent or values[0])  # fmt: skip


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
        if isinstance(inner.get(text), Pointer) and plain_type(type_text) in definition.template:
            inner_types.setdefault(plain_type(type_text), inner[text].type)  # type: ignore[union-attr]
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
        if isinstance(record, Record) and re.search(r"[&*]", type_text) and target in env:
            host.env[target] = record
    host.types, host.declared, host.loose = types, declared, loose
    host.nested -= 1


def filling(host: HostCode, called: str, values: Sequence[Node]) -> Definition | None:
    """Return the host function that is called with a struct that it may fill."""
    for definition in host.definitions.functions.get(called, []):
        if not definition.host or len(definition.parameters) < len(values):
            continue
        for parameter, value in zip(definition.parameters, values, strict=False):
            type_text, _ = parameter_of(host.source, parameter)
            if re.search(r"[&*]", type_text) and isinstance(host.env.get(host.of(value).strip("&*() ")), Record):
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
