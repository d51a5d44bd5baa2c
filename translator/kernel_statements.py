"""The statements and expressions of a kernel, followed with guards as facts while what they guard is read."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from translator.c_facts import read_facts
from translator.c_integers import choose, read_text
from translator.c_types import is_integer, plain_type
from translator.kernel_accesses import record, record_escapes, refer_to, visit_inside
from translator.kernel_code import KernelCode
from translator.kernel_pointers import copy_members, declared_in, member_key, moved, pointer_of, read_value, target_of
from translator.kernel_values import ArrayPointer, Condition, KernelValue, Reference, Use
from translator.size_order import maximum
from translator.sizes import ONE, Operation, Size, UnreadableSize, name, number
from translator.struct_types import aliases_of

_LOOPS = ("for_statement", "while_statement", "do_statement")
_LEAVES = ("return_statement", "continue_statement", "break_statement")


def block_statement(code: KernelCode, node: Node) -> None:
    held, env = len(code.bounds.facts), dict(code.env)
    around = len(code.context)
    inner: set[str] = set()
    for child in node.named_children:
        if child.type == "declaration":
            inner.update(code.of(n) for d in child.children_by_field_name("declarator") if (n := declared_in(d)))
        code.visit(child)
        if child.type == "if_statement" and _may_skip(child):
            code.context.append(f"past:{child.end_byte}")
    del code.context[around:]
    for text in inner:
        if text in env:
            code.env[text] = env[text]
    if node.parent is None or node.parent.type != "function_definition":
        del code.bounds.facts[held:]


def alias(code: KernelCode, node: Node) -> None:
    """Note what the name of a type means from here on."""
    for text, type_text in aliases_of(code.of, node).items():
        code.types[text] = code.resolved(type_text)


def if_statement(code: KernelCode, node: Node) -> None:
    condition = node.child_by_field_name("condition")
    yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    code.visit(condition)
    text = "".join(code.of(condition).split())
    before = dict(code.env)
    with code.where(read_facts(condition, code), text):
        code.visit(yes)
    after_yes, code.env = code.env, dict(before)
    against = read_facts(condition, code, False)
    if no is not None:
        with code.where(against, "!" + text):
            code.visit(no)
    if _leaves(yes):
        code.learn(against)
        return
    if no is not None and _leaves(no):
        code.env = after_yes
        code.learn(read_facts(condition, code))
        return
    for name_, value in after_yes.items():
        if name_ in before and value != code.env.get(name_):
            code.env[name_] = joined(code, condition, value, code.env.get(name_), name_)


def switch_statement(code: KernelCode, node: Node) -> None:
    """Follow each case as a branch of its own; afterwards a variable may have the value of any."""
    code.visit(node.child_by_field_name("condition"))
    body = node.child_by_field_name("body")
    before, after = dict(code.env), [dict(code.env)]
    for case in body.named_children if body is not None else ():
        code.env = dict(before)
        with code.where([], f"case:{case.start_byte}"):
            for child in case.named_children:
                code.visit(child)
        after.append(code.env)
    code.env = before
    for env in after:
        for text, value in env.items():
            if text in before and value != code.env.get(text):
                code.env[text] = _either(code, code.env[text], value, text)


def _may_skip(node: Node) -> bool:
    """Whether a statement may leave the round of a loop that it stands in."""
    return any(
        child.type in ("break_statement", "continue_statement")
        or (child.type not in (*_LOOPS, "switch_statement") and _may_skip(child))
        for child in node.named_children
    )


def joined(code: KernelCode, condition: Node | None, a: KernelValue, b: KernelValue, text: str) -> KernelValue:
    if isinstance(a, Size) and isinstance(b, Size):
        try:
            return choose(condition, a, b, code)
        except UnreadableSize:
            pass
    return _either(code, a, b, text)


def _either(code: KernelCode, a: KernelValue, b: KernelValue, text: str) -> KernelValue:
    """Return what may be one value or another."""
    if isinstance(a, Size) and isinstance(b, Size):
        variable = code.fresh(text)
        ends = [code.bounds.upper(value) for value in (a, b)]
        if ends[0] is not None and ends[1] is not None:
            code.bounds.high[variable] = maximum(*(end for end in ends if end is not None))
        return name(variable)
    if isinstance(a, ArrayPointer) and isinstance(b, ArrayPointer) and a.array == b.array:
        return replace(a, offset=None)
    return None


def declaration(code: KernelCode, node: Node) -> None:
    shared = any(code.of(child) == "__shared__" for child in node.children)
    qualifiers = " ".join(code.of(child) for child in node.children if child.type == "type_qualifier")
    base = f"{qualifiers} {code.of(node.child_by_field_name('type'))}"
    for declarator in node.children_by_field_name("declarator"):
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        named = declared_in(declarator)
        if named is None:
            continue
        text = code.of(named)
        if not text:
            continue
        written = code.of(inner).split(text)[0]
        code.declared[text] = base + ("*" if "*" in written else "")
        if (reference := refer_to(code, value, base + written)) is not None:
            visit_inside(code, value)
            code.env[text] = reference
            continue
        code.visit(value)
        if "[" in code.of(inner) or (
            value is not None and value.type == "initializer_list" and value.named_child_count > 1
        ):
            record_escapes(code, value)
        if shared or "[" in code.of(inner):
            code.env[text] = ArrayPointer("", base)
        else:
            code.env[text] = held_value(code, text, value)
            copy_members(code, value, text, code.env)


def held_value(code: KernelCode, text: str, value: Node | None) -> KernelValue:
    """Return what a variable holds after it is given a value; an unknown integer is a variable of its own."""
    if value is None:
        return None
    while value.type in ("initializer_list", "argument_list") and value.named_child_count == 1:
        value = value.named_children[0]
    type_text = code.resolved(code.declared.get(text, ""))
    if "*" not in type_text and plain_type(type_text) == "bool":
        facts = read_facts(value, code), read_facts(value, code, False)
        if facts[0] or facts[1]:
            return Condition(tuple(facts[0]), tuple(facts[1]))
    found = read_value(code, value)
    if isinstance(found, Size):
        note_cap(code, found)
    if found is None and (is_integer(type_text) or plain_type(type_text) == "auto") and "*" not in type_text:
        return name(code.fresh(text))
    return found


def note_cap(code: KernelCode, size: Size) -> None:
    """Take ``min(lengths[i], most)`` as a guard on ``lengths``: larger elements mean no more."""
    atom = next(iter(size.atoms), "") if len(size.terms) == 1 else ""
    if not isinstance(atom, Operation) or atom.kind != "min":
        return
    marks = [operand for operand in atom.operands if str(operand)[:1] == "@" and operand == name(str(operand))]
    others = [limit for operand in atom.operands if operand not in marks and (limit := code.bounds.upper(operand))]
    if marks and others:
        code.guarded.setdefault(str(marks[0])[1:], others[0] + ONE)


def assignment(code: KernelCode, node: Node) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = code.of(node.child_by_field_name("operator"))
    code.visit(right)
    if left is None:
        return
    text = member_key(code, left)
    if (left.type != "identifier" and text not in code.env) or isinstance(code.env.get(text), Reference):
        use = Use.WRITE if operator == "=" else Use.UPDATE
        record(code, target_of(code, left), use, left)
        visit_inside(code, left)
        if right is not None and pointer_of(code, right) is not None:
            record_escapes(code, right)
        return
    held = code.env.get(text)
    if operator == "=":
        code.env[text] = held_value(code, text, right)
    elif isinstance(held, ArrayPointer):
        if right is not None and operator in ("+=", "-="):
            code.env[text] = moved(code, held, right, 1 if operator == "+=" else -1)
    elif isinstance(held, Size):
        try:
            code.env[text] = read_text(f"({text}) {operator[:-1]} ({code.of(right)})", code)
        except UnreadableSize:
            code.env[text] = name(code.fresh(text))


def update(code: KernelCode, node: Node) -> None:
    argument = node.child_by_field_name("argument")
    if argument is None:
        return
    text = member_key(code, argument)
    if (argument.type != "identifier" and text not in code.env) or isinstance(code.env.get(text), Reference):
        record(code, target_of(code, argument), Use.UPDATE, argument)
        visit_inside(code, argument)
        return
    held = code.env.get(text)
    sign = number(1 if "++" in code.of(node) else -1)
    if isinstance(held, Size):
        code.env[text] = held + sign
    elif isinstance(held, ArrayPointer) and held.offset is not None:
        size = code.bytes_or_none(held.type)
        code.env[text] = replace(held, offset=held.offset + size * sign if size is not None else None)


def conditional(code: KernelCode, node: Node) -> None:
    condition = node.child_by_field_name("condition")
    code.visit(condition)
    text = "".join(code.of(condition).split())
    with code.where(read_facts(condition, code), text):
        code.visit(node.child_by_field_name("consequence"))
    with code.where(read_facts(condition, code, False), "!" + text):
        code.visit(node.child_by_field_name("alternative"))


def binary(code: KernelCode, node: Node) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    code.visit(left)
    operator = node.children[1].type
    if operator in ("&&", "||"):
        with code.where(read_facts(left, code, operator == "&&"), "".join(code.of(left).split())):
            code.visit(right)
    else:
        code.visit(right)


def return_statement(code: KernelCode, node: Node) -> None:
    for child in node.named_children:
        code.visit(child)
        found = read_value(code, child) if code.calls else None
        code.returned = found if code.returned is None or code.returned == found else None


def _leaves(node: Node | None) -> bool:
    """Whether a branch always ends with ``return``, ``continue`` or ``break``."""
    while node is not None and node.type in ("compound_statement", "else_clause"):
        node = node.named_children[-1] if node.named_child_count else None
    return node is not None and node.type in _LEAVES
