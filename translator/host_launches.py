"""Launches of kernels by host code, with ``<<<>>>`` or ``cudaLaunchKernel``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import read_text
from translator.c_types import DTYPES, ITEM_BYTES, is_integer, is_real, plain_type, split_types
from translator.cuda_source import span_of, walk
from translator.definitions import Definition, last_name, parameter_of, template_arguments
from translator.host_expressions import as_grid, read_value, real_text
from translator.host_values import (
    MOST_NESTED,
    Grid,
    HostStep,
    KernelName,
    Real,
    Unread,
    Value,
    open_grid,
    pointers_in,
)
from translator.launch_plan import Question
from translator.sizes import ONE, ZERO, Size, UnreadableSize

if TYPE_CHECKING:
    from translator.host_code import HostCode


MOST_STEPS = 256


def follow_launch(host: HostCode, node: Node, function: Node, values: Sequence[Node]) -> None:
    kernel_text = "".join(host.of(function).split()) if function.type == "identifier" else host.of(function)
    held = host.env.get(kernel_text)
    template = template_arguments(host.text, function)
    if isinstance(held, KernelName):
        kernel_text = held.text
        template = tuple(split_arguments(kernel_text))
    elif isinstance(held, Unread):
        host.ask(kernel_text, f"which kernel '{kernel_text}' is can't be read: {held.reason}", node)
        return
    configuration = next(child for child in node.children if child.type == "kernel_call_syntax")
    sizes = [child for child in configuration.named_children if child.type != "comment"]
    add_step(host, node, kernel_text, template, sizes, values)


def add_step(
    host: HostCode,
    node: Node,
    kernel_text: str,
    template: tuple[str, ...],
    sizes: Sequence[Node],
    values: Sequence[Node],
) -> None:
    kernels = [d for d in host.definitions.functions.get(last_name(kernel_text), []) if not d.host]
    kernel = next((d for d in kernels if len(d.parameters) >= len(values)), None)
    if kernel is None:
        host.ask(last_name(kernel_text), f"the kernel '{last_name(kernel_text)}' that is launched here isn't in this "
                  "source: put its definition into the file", node)  # fmt: skip
        return
    grid, block = (
        grid_or_question(
            host, as_grid(host, read_value(host, sizes[at]) if at < len(sizes) else ONE, node), kernel, what
        )
        for at, what in enumerate(("grid", "block"))
    )
    shared = read_value(host, sizes[2]) if len(sizes) > 2 else ZERO
    if answer := host.answers.get("shared"):
        shared = host.answer_size(answer)
    if isinstance(shared, Unread):
        host.ask("shared", f"how much dynamic shared memory '{kernel.name}' gets: {shared.reason}. Answer shared in "
                  "bytes", node, "shared")  # fmt: skip
    defaults = (p.child_by_field_name("default_value") for p in kernel.parameters[len(values) :])
    given = [*values, *(default for default in defaults if default is not None)]
    arguments = tuple(
        _argument(host, kernel, parameter, value) for parameter, value in zip(kernel.parameters, given, strict=False)
    )
    if len(host.steps) >= MOST_STEPS:
        host.ask("launch", f"the host launches more than {MOST_STEPS} times: the first ones are taken", node)
        return
    for array in [pointer.array for pointer in pointers_in(arguments) if pointer.array in host.between]:
        called, where = host.between.pop(array)
        said = f"'{called}' changes or reads '{array}' between two launches, which a plan has no step for"
        advice = "do it in a kernel, or put the launches before and after it into functions of their own"
        host.ask(array, f"{said}: {advice}", where)
    host.steps.append(
        HostStep(kernel, template, dict(host.types), grid, block, shared if isinstance(shared, Size) else ZERO,
                 arguments, span_of(node))
    )  # fmt: skip
    texts = [template_text(host, argument) for argument in template]
    host.steps[-1] = replace(host.steps[-1], template=tuple(texts))


def _argument(host: HostCode, kernel: Definition, parameter: Node, value: Node) -> Value:
    """Return what a kernel is given; a floating-point expression that isn't known keeps its text."""
    found = read_value(host, value)
    type_text, _ = parameter_of(host.source, parameter)
    plain = plain_type(host.resolved(type_text))
    if isinstance(found, Unread) and "*" not in type_text and is_real(plain):
        return Real("", real_text(host, value), plain)
    return found


def launch_by_call(host: HostCode, node: Node, values: Sequence[Node]) -> None:
    """Follow ``cudaLaunchKernel(kernel, grid, block, pointers to the arguments, shared, stream)``."""
    kernel = read_value(host, values[0])
    pointers = host.pointers.get(host.of(values[3]))
    if not isinstance(kernel, KernelName) or pointers is None:
        host.ask("launch", "which kernel is launched with what can't be read here: write it with <<<grid, block>>>",
                  node)  # fmt: skip
        return
    add_step(host, node, kernel.text, tuple(split_arguments(kernel.text)), [*values[1:3], *values[4:5]], pointers)


def template_text(host: HostCode, argument: str) -> str:
    if is_known_type(host, argument) or is_integer(argument) or is_real(argument):
        return with_values(host, host.resolved(argument))
    try:
        size = read_text(argument, host)
    except UnreadableSize:
        return with_values(host, host.resolved(argument))
    if argument in ("true", "false"):
        return argument
    return str(size)


def with_values(host: HostCode, type_text: str) -> str:
    """Return a type with numbers for the names that hold one: ``Traits<128>`` for ``Traits<kThreads>``."""

    def value(match: re.Match[str]) -> str:
        held = host.env.get(match[0])
        return str(held) if isinstance(held, Size) and held.constant is not None else match[0]

    return re.sub(r"(?<![\w:.])[A-Za-z_]\w*(?!\s*[<:(])", value, type_text)


def grid_or_question(host: HostCode, found: Grid | Unread, kernel: Definition, what: str) -> Grid:
    if answer := host.answers.get(what):
        return parse_grid(answer, host)
    if isinstance(found, Grid):
        return found
    said = f"how many {'blocks' if what == 'grid' else 'threads a block'} '{kernel.name}' is launched with"
    host.questions.append(Question(what, f"{said}: {found.reason}. Answer {what}", found.span, what))
    return open_grid(what)


def launches_within(host: HostCode, node: Node | None) -> bool:
    """Whether launches are made within a node, by itself or by what it calls; those of the kernel wanted, if any."""
    return bool(launched_kernels(host, node, frozenset()))


def launched_kernels(host: HostCode, node: Node | None, seen: frozenset[str]) -> frozenset[str]:
    """Return the names of the kernels that are launched within a node."""
    if node is None:
        return frozenset()
    key = (node.start_byte, node.end_byte)
    if not seen and key in host.launched:
        return host.launched[key]
    found: set[str] = set()
    for inner in walk(node):
        if inner.type != "call_expression":
            continue
        function = inner.child_by_field_name("function")
        called = last_name(host.source.text[function.start_byte : function.end_byte]) if function is not None else ""
        if any(child.type == "kernel_call_syntax" for child in inner.children):
            found.add(called)
        elif called in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel"):
            match = re.search(r"\w+(?=\s*(?:<[^<>]*>)?\s*,)", host.source.text[inner.start_byte : inner.end_byte])
            found.add(match[0] if match else "")
        elif called not in seen and len(seen) < MOST_NESTED:
            for definition in host.definitions.functions.get(called, []):
                if definition.host:
                    found |= launched_kernels(host, definition.body, seen | {called})
    if not seen:
        host.launched[key] = frozenset(found)
    return frozenset(found)


def parse_grid(text: str, host: HostCode) -> Grid:
    """Return a launch size from a text such as ``ceildiv(n, 256), heads``; raise `UnreadableSize` when it is none."""
    parts = [part for part in re.split(r",(?![^()]*\))", text) if part.strip()]
    if not 1 <= len(parts) <= 3:
        raise UnreadableSize(f"'{text}' is no launch size: give one to three sizes with commas between them")
    return Grid(*(host.answer_size(part) for part in parts))


def split_arguments(text: str) -> Iterable[str]:
    match = re.search(r"<(.*)>", text, re.DOTALL)
    return split_types(match[1]) if match else []


def is_known_type(host: HostCode, text: str) -> bool:
    return text in host.types or text in ITEM_BYTES or text in DTYPES or text in host.definitions.aliases
