"""Structs in host code: made, filled member by member, copied, joined after branches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import read_text
from translator.c_types import is_integer, is_real, plain_type, split_types
from translator.cuda_source import parse_expression, span_of, walk
from translator.definitions import parameter_of
from translator.host_expressions import read_value
from translator.host_values import HostArray, Null, Pointer, Real, Record, Unread, Value, split_path
from translator.sizes import ZERO, UnreadableSize
from translator.struct_types import Part, Struct, joined, open_type

if TYPE_CHECKING:
    from translator.host_code import HostCode


def part_of(host: HostCode, type_text: str) -> Part | None:
    """Return what a value of a type holds, None when it is no struct of the source."""
    if "*" in type_text or "[" in type_text:
        return None
    definitions = host.definitions

    def extent(text: str) -> int | None:
        try:
            return read_text(text, host).constant
        except UnreadableSize:
            return None

    return open_type(host.resolved(type_text), definitions.structs, definitions.aliases, extent)


def new_record(host: HostCode, type_text: str, value: Node | None, node: Node) -> Record | Unread | None:
    """Return a struct as a declaration leaves it; None when the type is no struct of the source."""
    part = part_of(host, type_text)
    if part is None:
        return None
    if value is not None and value.type in ("argument_list", "initializer_list") and value.named_child_count == 1:
        held = read_value(host, value.named_children[0])  # a copy in parentheses or braces
        if isinstance(held, Record):
            return held
    if value is not None and value.type not in ("initializer_list", "argument_list"):
        found = read_value(host, value)
        return (
            found if isinstance(found, Record) else _empty(host, part, node, f"'{host.of(value)[:40]}' isn't followed")
        )
    if value is None:
        made = _constructed(host, part, [], node) if _struct_of(host, part).methods else None
        return made or _empty(host, part, node, "the host gives it no value")
    return filled(host, part, value)


def _struct_of(host: HostCode, part: Part) -> Struct:
    return host.definitions.structs[re.sub(r"<.*", "", part.type, flags=re.DOTALL).rpartition("::")[2].strip()]


def filled(host: HostCode, part: Part, braces: Node) -> Record | Unread:
    """Return a struct that is made of values in braces; members that get none are 0."""
    struct = _struct_of(host, part)
    if "<" not in part.type and set(struct.template) - set(struct.defaults):
        return Unread(f"the template arguments of '{part.type}' aren't written", span_of(braces))
    if struct.made:
        given = [read_value(host, child) for child in braces.named_children if child.type != "comment"]
        made = _constructed(host, part, given, braces)
        return made or _empty(host, part, braces, f"'{part.type}' has a constructor, which isn't followed")
    values: dict[str, Value] = {path: _zero(leaf.type) for path, leaf in part.leaves()}
    for path, leaf in part.leaves():
        if leaf.default is not None:
            values[path] = read_value(host, leaf.default)
    _fill(host, part, "", [child for child in braces.named_children if child.type != "comment"], values)
    return Record(part.type, tuple(values.items()))


def _constructed(host: HostCode, part: Part, given: Sequence[Value], node: Node) -> Record | None:
    """Return what a constructor makes of its arguments, for kernels to run it; None where it isn't known which one."""
    struct, fitting = _struct_of(host, part), []
    for constructor in struct.constructors:
        parameters = [each for each in walk(constructor.child_by_field_name("declarator") or constructor)
                      if each.type in ("parameter_declaration", "optional_parameter_declaration")]  # fmt: skip
        needed = [each for each in parameters if each.child_by_field_name("default_value") is None]
        if len(needed) <= len(given) <= len(parameters):
            fitting.append(parameters)
    if len(fitting) != 1 or not struct.methods:
        return None
    types = dict(zip(struct.template, split_types(part.type.partition("<")[2].rpartition(">")[0]), strict=False))
    parts: list[tuple[str, Part]] = []
    values: list[tuple[str, Value]] = []
    for at, parameter in enumerate(fitting[0]):
        type_text, name = parameter_of(host.source, parameter)
        type_text = re.sub(r"(?<![\w:])[A-Za-z_]\w*", lambda match: types.get(match[0], match[0]), type_text)
        default = parameter.child_by_field_name("default_value")
        parts.append((name, Part(type_text if "*" in type_text else plain_type(type_text))))
        values.append((name, _named(given[at] if at < len(given) else read_value(host, default), name)))
    return Record(part.type, tuple(values), Part(part.type, tuple(parts), whole=False))


def _fill(host: HostCode, part: Part, path: str, given: Sequence[Node], values: dict[str, Value]) -> None:
    queue = list(given)
    for name, inner in part.parts:
        if not queue:
            return
        here = joined(path, name)
        if queue[0].type == "initializer_pair":
            named = next((pair for pair in queue if host.of(pair.named_children[0]).lstrip(". ") == name), None)
            if named is None:
                continue
            node = named.child_by_field_name("value") or named.named_children[-1]
        else:
            node = queue.pop(0)
        if inner.whole:
            values[here] = _named(read_value(host, node), name)
        elif node.type == "initializer_list":
            _fill(host, inner, here, [child for child in node.named_children if child.type != "comment"], values)
        elif isinstance(held := read_value(host, node), Record) and held.made is not None:
            unread = Unread(f"'{name}' of a {part.type} is what a constructor makes", span_of(node))
            values.update({path: unread for path, _ in inner.leaves(here)})
        elif isinstance(held, Record):
            values.update({joined(here, member): value for member, value in held.members})
        elif inner.parts and (queue or inner.type.endswith("]")):  # braces left out
            leaves = list(inner.leaves(here))
            taken = [node, *queue[: len(leaves) - 1]]
            del queue[: len(taken) - 1]
            for (place, _), each in zip(leaves, taken, strict=False):
                values[place] = read_value(host, each)


def _named(value: Value, name: str) -> Value:
    return replace(value, name=name) if isinstance(value, Real) and not value.name else value


def _zero(type_text: str) -> Value:
    return Null() if "*" in type_text else Real("", "0.0", plain_type(type_text)) if is_real(type_text) else ZERO


def zeros(host: HostCode, record: Record) -> Record:
    """Return a struct with every member 0, as ``memset`` leaves it."""
    part = part_of(host, record.type)
    assert part is not None
    return Record(record.type, tuple((path, _zero(leaf.type)) for path, leaf in part.leaves()))


def _empty(host: HostCode, part: Part, node: Node, reason: str) -> Record:
    def held(path: str, leaf: Part) -> Value:
        if leaf.default is not None:
            return read_value(host, leaf.default)
        return Unread(f"'{path}' of a {part.type}: {reason}", span_of(node))

    return Record(part.type, tuple((path, held(path, leaf)) for path, leaf in part.leaves()))


def parameter_record(host: HostCode, text: str, type_text: str) -> Record | None:
    """Return a struct that the host function is given: its members become axes, arrays and numbers."""
    part = part_of(host, re.sub(r"[&]", "", type_text))
    if part is None:
        return None
    values: dict[str, Value] = {}
    for path, leaf in part.leaves():
        last = re.sub(r"\W+", "_", path.rpartition(".")[2]).strip("_")
        taken = last in host.axes or last in host.env or last in host.arrays
        name = "_".join(filter(None, re.split(r"\W+", f"{text}.{path}"))) if taken else last
        values[path] = _parameter(host, name, leaf.type)
    return Record(part.type, tuple(values.items()))


def _parameter(host: HostCode, name: str, type_text: str) -> Value:
    resolved = host.resolved(type_text)
    plain = plain_type(resolved)
    if answer := host.answers.get(f"value.{name}"):
        return host.answer_size(answer)
    if "*" in resolved:
        pointee = resolved.replace("*", "").strip()
        host.arrays.setdefault(name, HostArray(name, "" if plain == "void" else pointee))
        return Pointer(name, pointee)
    if is_real(plain):
        return Real(name, "", plain)
    if is_integer(plain):
        return host.axis(name)
    return Unread(f"'{name}' is a {plain[:40]}, which isn't followed", span_of(host.source.root))


def assign_record(host: HostCode, target: str, right: Node) -> bool:
    """Follow an assignment to a struct or to a member of one; return whether ``target`` names that."""
    name, path = split_path(target)
    record = host.env.get(name)
    if not isinstance(record, Record):
        return False
    part = part_of(host, record.type)
    while part is not None and path and (match := re.match(r"\[\d+\]|\w+", path)):
        part = _inner(part, match[0])
        path = path[match.end() :].lstrip(".")
    if part is not None and not part.whole and right.type == "initializer_list":
        return set_field(host, target, filled(host, part, right))
    return set_field(host, target, read_value(host, right))


def _inner(part: Part, name: str) -> Part | None:
    for member, inner in part.parts:
        found = inner if member == name else _inner(inner, name) if not member else None
        if found is not None:
            return found
    return None


def set_field(host: HostCode, target: str, value: Value) -> bool:
    """Give a struct, or a member of one, a value; return whether ``target`` names that."""
    name, path = split_path(target)
    record = host.env.get(name)
    if not isinstance(record, Record):
        return False
    if record.made is not None or (isinstance(value, Record) and value.made is not None):
        whole = not path and isinstance(value, Record)
        host.env[name] = value if whole else unknown_record(host, record, f"'{target}' is changed later")
        return True
    members = dict(value.members) if isinstance(value, Record) else {}
    for held, _ in record.members:
        if held == path:
            record = record.with_member(held, _named(value, path.rpartition(".")[2]))
        elif not path or (held.startswith(path) and held[len(path)] in ".["):
            unknown = Unread(f"'{held}' is given a value that isn't followed", span_of(host.source.root))
            record = record.with_member(held, members.get(held[len(path) :].lstrip("."), unknown))
    host.env[name] = record
    return True


def unknown_record(host: HostCode, record: Record, reason: str) -> Record | Unread:
    """Return a struct of which no member is known any more; nothing stands for one that no constructor makes."""
    unread = Unread(reason, span_of(host.source.root))
    if record.made is not None:
        return unread
    return replace(record, members=tuple((path, unread) for path, _ in record.members))


def record_from_function(host: HostCode, type_text: str, arguments: list[str], node: Node) -> Record | None:
    """Return a struct whose declaration reads like that of a function: ``Params p(other);``."""
    part = part_of(host, type_text)
    if part is None:
        return None
    other = host.env.get(arguments[0]) if len(arguments) == 1 else None
    if isinstance(other, Record):
        return other
    given: list[Value] = []
    for text in arguments:
        parsed = parse_expression(text)
        unread = Unread(f"'{text[:40]}' isn't understood", span_of(node))
        given.append(read_value(host.within(parsed[1]), parsed[0]) if parsed is not None else unread)
    made = _constructed(host, part, given, node)
    return made or _empty(host, part, node, f"'{part.type}' has a constructor, which isn't followed")


def joined_records(a: Record, b: Record, join: Callable[[str, Value, Value | None], Value]) -> Record:
    """Return a struct as two branches leave it; ``join`` says what a member is that they leave differently."""
    other = dict(b.members)
    members = ((path, v if other.get(path) == v else join(path, v, other.get(path))) for path, v in a.members)
    return replace(a, members=tuple(members))
