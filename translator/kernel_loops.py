"""Loops of a kernel: a counter is a multiple of a fresh variable; what else the loop changes is unknown in it."""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from translator.c_facts import Fact, read_facts
from translator.c_integers import read_text
from translator.cuda_source import walk
from translator.extents import content
from translator.kernel_code import KernelCode
from translator.kernel_values import ArrayPointer
from translator.sizes import ONE, ZERO, Size, UnreadableSize, ceildiv, floordiv, name


def loop(code: KernelCode, node: Node) -> None:
    initializer, condition = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
    update, body = node.child_by_field_name("update"), node.child_by_field_name("body")
    before = dict(code.env)
    code.visit(initializer)
    counter = _counter(code, update)
    stepped = stepped_counter(code, counter, update)
    changed = changed_names(code, node, counter if stepped is not None else "")
    header = "".join(f"{code.of(initializer)};{code.of(condition)};{code.of(update)}".split())
    held = len(code.bounds.facts)
    if stepped is not None:
        code.env[counter] = stepped
    for text in changed:
        forget(code, text, node)
    code.visit(condition)
    facts = read_facts(condition, code) if node.type != "do_statement" else []
    with code.where(facts, header or node.type):
        code.visit(body)
        code.visit(update)
    for text in changed:
        forget(code, text, node)
    if initializer is not None and initializer.type == "declaration" and counter:
        code.env.pop(counter, None)
        if counter in before:
            code.env[counter] = before[counter]
    elif counter:
        code.env[counter] = name(code.fresh(counter))
    del code.bounds.facts[held:]


def stepped_counter(code: KernelCode, counter: str, update: Node | None) -> Size | None:
    """Return the counter of a ``for`` as a multiple of a fresh variable, None when it isn't simply counted."""
    start = code.env.get(counter) if counter else None
    if not isinstance(start, Size) or update is None:
        return None
    text = "".join(code.of(update).split())
    step: Size | None = None
    up = True
    escaped = re.escape(counter)
    try:
        if re.fullmatch(rf"\+\+{escaped}|{escaped}\+\+", text):
            step = ONE
        elif re.fullmatch(rf"--{escaped}|{escaped}--", text):
            step, up = ONE, False
        elif match := re.fullmatch(rf"{escaped}(\+|-)=(.+)", text):
            step, up = read_text(match[2], code), match[1] == "+"
        elif re.fullmatch(rf"{escaped}(?:>>=|/=).+", text):
            up = False
        elif not re.fullmatch(rf"{escaped}(?:<<=|\*=).+|{escaped}={escaped}[+*].*", text):
            return None
    except UnreadableSize:
        step = None
    if step is not None and step.constant is not None and step.constant < 0:
        up = not up
    common = content([start, step]) if step is not None and up else ONE
    variable = code.fresh(counter)
    counted = name(variable) * common
    try:
        if up:
            code.bounds.low[variable] = ZERO
            code.learn([Fact(counted, start, None)])
            if (lowest := code.bounds.upper(ZERO - start)) is not None:
                code.bounds.low[variable] = ceildiv(ZERO - lowest, common)
        elif (highest := code.bounds.upper(start)) is not None:
            code.bounds.high[variable] = floordiv(highest, common)
            code.bounds.low[variable] = ZERO
    except UnreadableSize:
        pass
    return counted


def changed_names(code: KernelCode, node: Node, counter: str) -> list[str]:
    """Return the outer variables that a loop assigns."""
    found: dict[str, None] = {}
    for inner in walk(node):
        if inner.type in ("assignment_expression", "update_expression"):
            target = inner.child_by_field_name("left") or inner.child_by_field_name("argument")
            text = code.of(target)
            if text in code.env and text != counter:
                found[text] = None
    return list(found)


def forget(code: KernelCode, text: str, node: Node) -> None:
    value = code.env.get(text)
    if isinstance(value, Size):
        variable = code.fresh(text)
        start = code.bounds.upper(ZERO - value)
        if start is not None:
            # counted up only: it stays at or over what it starts with
            code.bounds.low[variable] = ZERO - start if only_grows(code, text, node) else ZERO
        code.env[text] = name(variable)
    elif isinstance(value, ArrayPointer):
        code.env[text] = replace(value, offset=None) if value.array else value
    else:
        code.env[text] = None


def only_grows(code: KernelCode, text: str, node: Node) -> bool:
    changes = re.findall(rf"(?<![\w.]){re.escape(text)}\s*([-+*/%&|^<>]*=(?!=)|\+\+|--)", code.of(node))
    return all(change in ("+=", "++", "*=", "<<=") for change in changes)


def _counter(code: KernelCode, update: Node | None) -> str:
    """Return the variable that a ``for`` counts with."""
    if update is None:
        return ""
    target = update.child_by_field_name("left") or update.child_by_field_name("argument")
    return code.of(target) if target is not None and target.type == "identifier" else ""
