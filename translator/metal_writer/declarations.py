"""Declarations in Metal: types respelled, and the memory that each pointer, reference and shared array lies in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer import elements
from translator.metal_writer.cub_source import refuse_rest
from translator.metal_writer.flow import calls_in
from translator.metal_writer.groups import group_size
from translator.metal_writer.lines import unmark
from translator.metal_writer.passes import DROPPED
from translator.metal_writer.program import TYPES, Item, Origin, Program, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import methods, struct_of
from translator.metal_writer.types import SCALARS, canonical, spelled, vector_parts

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

_DROPPED = frozenset({"static", "extern", "inline", "register", "__shared__", "__restrict__", "__constant__",
                      "__device__", "__forceinline__", "__host__"})  # fmt: skip
_NO_DOUBLE = "Metal has no double: use float, with a compensated sum where it matters"
_PLAIN = frozenset((*SCALARS, "void", "size_t", "auto"))


def type_name(renderer: Renderer, node: Node) -> str:
    """Return the Metal name of a type; refuse one that Metal doesn't have or that isn't known."""
    text = renderer.text(node)
    name = canonical(text)
    if "double" in text:
        raise Refused(node, "'double' has no counterpart", _NO_DOUBLE)
    if name in ("long3", "ulong3"):
        raise Refused(node, f"'{name}' takes 32 bytes in Metal and 24 in CUDA", "use three scalars")
    for parameter in (*renderer.routine.template, *renderer.template):
        if text in renderer.text(parameter).split():
            return text
    if text in renderer.routine.aliases:
        return text
    if node.type in ("dependent_type", "qualified_identifier") and renderer.reader.described(node).name != name:
        inner = node.named_children[0] if node.type == "dependent_type" else node
        scope, last = inner.child_by_field_name("scope"), inner.child_by_field_name("name")
        if scope is not None and last is not None:
            before = "typename " if node.type == "dependent_type" else ""
            return f"{before}{type_name(renderer, scope)}::{renderer.text(last)}"
    if node.type == "template_type" and struct_of(renderer.program, text) is not None:
        base, given = node.named_children[0], node.child_by_field_name("arguments")
        renderer.shared.used[renderer.text(base)] = None
        return renderer.text(base) + (unmark(renderer.render(given)) if given is not None else "")
    if text in renderer.program.items:
        item = renderer.program.items[text]
        if item.kind in ("struct", "enum", "alias"):
            renderer.shared.used[text] = None
            return text
    if name in _PLAIN or vector_parts(name) or name in ("half2", "bfloat2", "dim3"):
        return spelled(text)
    refuse_rest(renderer.program, node)
    raise Refused(node, f"the type '{text}' is not known", "define it in this file, or use a built-in one")


def is_table(program: Program, item: Item) -> bool:
    """Whether a variable of the device is constant and filled where it is declared."""
    words = {program.text(child) for child in item.node.children}
    filled = any(child.type == "init_declarator" for child in item.node.children)
    return bool(words & {"__constant__", "const", "constexpr"}) and filled


def specifiers(renderer: Renderer, node: Node) -> tuple[list[str], bool, str]:
    """Return a declaration's words before the declarators (without address space), whether const, its alignment."""
    words, const, alignment = [], False, ""
    for child in node.children:
        if child.type in TYPES:
            words.append(renderer.leaf(child, type_name(renderer, child)))
            break
        text = renderer.text(child)
        if text.startswith("alignas"):
            alignment = text
        elif text == "volatile":
            words.append("volatile")
        elif text in ("const", "constexpr"):
            const = True
            words.append(renderer.leaf(child))
        elif text not in _DROPPED and child.type != "comment":
            raise Refused(child, f"'{text}' is not known in a declaration", "declare the variable plainly")
    first = next(iter(node.children_by_field_name("declarator")), None)
    end = first.start_byte if first is not None else node.end_byte
    written = renderer.source.text[node.start_byte : end]
    if match := re.search(r"__(?:builtin_)?align__\s*\(([^()]*)\)", written):
        alignment = f"alignas({match[1].strip()})"
    return words, const, alignment


def declaration(renderer: Renderer, node: Node) -> str:
    """Return a declaration of locals or shared arrays."""
    declarators = node.children_by_field_name("declarator")
    if not declarators:
        raise Refused(node, f"'{renderer.text(node)[:40]}' is not known in a function", "define it at file scope")
    variables = [_variable(renderer, node, declarator) for declarator in declarators]
    if all(group_size(renderer.program, variable) is not None for variable in variables):
        return DROPPED
    if variables[0].home in ("shared", "dynamic"):
        return _shared(renderer, node, variables)
    words, _, alignment = specifiers(renderer, node)
    if "volatile" in words:
        raise Refused(node, "'volatile' counts on lanes that run in step", "use __syncwarp or a shuffle between steps")
    words = [alignment, *words] if alignment else words
    pointing = [v for v in variables if v.type.pointers or v.type.reference or _auto_pointer(renderer, v)]
    if not pointing:
        return _plain(renderer, node, " ".join(words))
    parts = [_pointing(renderer, node, declarator, variable, words)
             for declarator, variable in zip(declarators, variables, strict=True)]  # fmt: skip
    if node.parent is not None and node.parent.type == "for_statement" and len(parts) > 1:
        raise Refused(node, "a for declares several pointers", "declare them before the loop")
    return " ".join(f"{part};" for part in parts)


def _variable(renderer: Renderer, node: Node, declarator: Node) -> Variable:
    for variable in renderer.routine.all_variables():
        if (
            variable.declaration.id == node.id
            and declarator.start_byte <= variable.node.start_byte < declarator.end_byte
        ):
            return variable
    raise Refused(declarator, f"'{renderer.text(declarator)[:40]}' is not understood", "declare the variable plainly")


def _auto_pointer(renderer: Renderer, variable: Variable) -> bool:
    if variable.type.name != "auto" or variable.value is None:
        return False
    return renderer.reader.type_of(variable.value).points


def _plain(renderer: Renderer, node: Node, words: str) -> str:
    first = node.children_by_field_name("declarator")[0]
    return words + " " + rest(renderer, node, first)


def rest(renderer: Renderer, node: Node, first: Node) -> str:
    """Return declarators, commas and the semicolon as they stand."""
    out, at = [], first.start_byte
    for child in node.children:
        if child.start_byte < first.start_byte:
            continue
        out.append(renderer.gap(at, child.start_byte))
        at = child.end_byte
        out.append(declarator_text(renderer, child))
    return "".join(out)


def declarator_text(renderer: Renderer, node: Node) -> str:
    """Return a declarator: name, extents and initial value rendered, ``__restrict__`` left out."""
    if node.type == "init_declarator":
        out: list[str] = []
        at = node.start_byte
        for child in node.children:
            out += [renderer.gap(at, child.start_byte), declarator_text(renderer, child)
                    if child.type.endswith("declarator") or (child.type == "identifier" and not out)
                    else renderer.render(child)]  # fmt: skip
            at = child.end_byte
        return "".join(out)
    if node.type in ("array_declarator", "parenthesized_declarator", "pointer_declarator", "reference_declarator"):
        out, at = [], node.start_byte
        for child in node.children:
            if child.type == "type_qualifier" and renderer.text(child) in ("__restrict__", "__restrict", "restrict"):
                at = child.end_byte
                continue
            inner = child.type.endswith("declarator")
            write = renderer.leaf if child.type == "type_qualifier" else renderer.render
            text = declarator_text(renderer, child) if inner else write(child)
            out += [renderer.gap(at, child.start_byte), text]
            at = child.end_byte
        return "".join(out)
    return renderer.render(node)


def _pointing(renderer: Renderer, node: Node, declarator: Node, variable: Variable, words: list[str]) -> str:
    """Return the declaration of one pointer or reference, twice where it leads into an array that is taken apart."""
    text = _one_pointing(renderer, node, declarator, variable, words)
    split, flags = renderer.is_split(variable.origins), bool(renderer.flags_of(variable))
    if split or flags:
        if variable.value is None or len({name for space, name in variable.origins if space == "array"}) > 1:
            raise Refused(node, f"'{variable.name}' points into an array that is changed in place and is set later",
                          "set it where it is declared")  # fmt: skip
        elements.check_repeats(renderer, variable.value)
        for flagging in [False] * split + [True] * flags:
            renderer.writing, renderer.flagging = True, flagging
            try:
                text += f";{renderer.new_line(node)}" + _one_pointing(renderer, node, declarator, variable, words)
            finally:
                renderer.writing = renderer.flagging = False
    return text


def _one_pointing(renderer: Renderer, node: Node, declarator: Node, variable: Variable, words: list[str]) -> str:
    if not variable.type.pointers and not variable.type.reference and variable.type.name != "auto":
        return " ".join(words) + " " + declarator_text(renderer, declarator)
    if variable.type.pointers > 1:
        raise Refused(node, f"'{variable.name}' is a pointer to pointers", "use one array and offsets into it")
    spaces = renderer.spaces(variable.origins)
    name = renderer.leaf(variable.node, renderer.name_of(variable))
    simple = variable.value is not None and not _mentions_cast(renderer, variable.value)
    if ("input" in spaces or len(spaces) > 1) and simple and not variable.type.reference \
            and not _set_again(renderer, variable):  # fmt: skip
        return f"auto {name} = {_value(renderer, variable)}"
    space = renderer.space(variable.origins, variable.node)
    if variable.type.name == "auto":
        return f"auto {name} = {_value(renderer, variable)}"
    place = "device" if space == "input" else space
    kind = flag_type(node, unmark(words[-1])) if renderer.flagging else words[-1]
    const = "const " if space in ("input", "constant") and place != "constant" else ""
    if any("const" in word for word in words[:-1]) and place != "constant" and not renderer.flagging:
        const = "const "
    before = f"{place} {kind}" if place == "constant" else f"{const}{place} {kind}"
    return f"{before}{_star(renderer, declarator)}"


def flag_type(node: Node, name: str) -> str:
    """Return the type of the flags beside elements of a type: a bool for each component."""
    parts = vector_parts(canonical(name))
    if parts is None and canonical(name) not in SCALARS:
        raise Refused(node, f"elements of an array that is changed in place are written as '{name}'",
                      "write them one by one, or give the kernel an input array and another output array")  # fmt: skip
    return f"bool{parts[1]}" if parts is not None else "bool"


def _star(renderer: Renderer, declarator: Node) -> str:
    text = declarator_text(renderer, declarator)
    sign = unmark(text)[:1]
    if sign not in ("*", "&"):
        return " " + text
    return text if unmark(text)[1:2] == " " else text.replace(sign, f"{sign} ", 1)


def _value(renderer: Renderer, variable: Variable) -> str:
    assert variable.value is not None
    return renderer.render(variable.value)


def _mentions_cast(renderer: Renderer, node: Node) -> bool:
    text = renderer.text(node)
    return "reinterpret_cast" in text or node.type in ("cast_expression", "conditional_expression")


def _set_again(renderer: Renderer, variable: Variable) -> bool:
    arrays = {name for space, name in variable.origins if space == "array"}
    return len(arrays) > 1


def pointer_type(renderer: Renderer, described: Node, origins: set[Origin], value: Node) -> str:
    """Return the type of a cast to a pointer, with the address space of what is cast."""
    kind = next((child for child in described.children if child.type in TYPES), None)
    declarator = described.child_by_field_name("declarator")
    if kind is None or declarator is None:
        raise Refused(described, f"the type '{renderer.text(described)}' is not known", "write it more plainly")
    const = any(renderer.text(child) == "const" for child in described.children)
    volatile = any(renderer.text(child) == "volatile" for child in described.children)
    if volatile:
        check_volatile(renderer, described)
    space = renderer.space(origins, value)
    place = "device" if space == "input" else space
    if space == "input":
        const = True
        _note_small(renderer, origins)
    name = type_name(renderer, kind)
    if renderer.flagging:
        const, name = False, flag_type(described, name)
    words = [*(["const"] if const and place != "constant" else []), place, name]
    return " ".join(words) + renderer.text(declarator).replace(" ", "").replace("__restrict__", "")


def _note_small(renderer: Renderer, origins: set[Origin]) -> None:
    for space, name in sorted(origins):
        note = f"'{name}' must have at least 8 elements: MLX passes smaller inputs in constant memory"
        if space == "array" and note not in renderer.shared.notes:
            renderer.shared.notes.append(note)


def check_volatile(renderer: Renderer, node: Node) -> None:
    """Refuse ``volatile`` memory, unless the function orders its lanes: then the barriers do what the word did."""
    if not any(renderer.text(call).startswith("__syncwarp") for call in calls_in(renderer.routine.body)):
        raise Refused(node, "'volatile' counts on lanes that run in step", "use __syncwarp or a shuffle between steps")


def _shared(renderer: Renderer, node: Node, variables: list[Variable]) -> str:
    """Return a declaration in threadgroup memory; a function of the header leaves it to the kernel."""
    item = struct_of(renderer.program, renderer.reader.bound(variables[0].type).name)
    if item is not None and item.name in methods(renderer.program, item):
        raise Refused(node, f"'{item.name}' has constructors, which threadgroup memory can't run",
                      "leave them out, and set its members one by one")  # fmt: skip
    if not renderer.routine.kernel:
        renderer.share(variables)
        return DROPPED
    words, _, alignment = specifiers(renderer, node)
    if "volatile" in words:
        check_volatile(renderer, node)
    words = [word for word in words if word != "volatile"]
    dynamic = variables[0].home == "dynamic"
    if dynamic and not alignment and variables[0].type.name in ("char", "uchar"):
        alignment = "alignas(16)"
    before = f"{alignment} threadgroup" if alignment else "threadgroup"
    if dynamic:
        return f"{before} {words[-1]} {renderer.dynamic(variables[0])};"
    return f"{before} {' '.join(words)} {rest(renderer, node, node.children_by_field_name('declarator')[0])}"
