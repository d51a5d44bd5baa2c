"""Each kind of node of the syntax tree in Metal: names, types, casts, statements; arrays are in `elements`."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer import calls, declarations, elements
from translator.metal_writer.cub_source import refuse_rest
from translator.metal_writer.emits import emits
from translator.metal_writer.expressions import INDICES
from translator.metal_writer.lines import unmark
from translator.metal_writer.names import KEYWORDS, renamed
from translator.metal_writer.passes import ATTRIBUTE_OF, DROPPED
from translator.metal_writer.program import alias_of
from translator.metal_writer.refused import Refused
from translator.metal_writer.types import SCALARS, canonical, spelled, vector_parts

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

_JOINED = frozenset((
    "parenthesized_expression", "condition_clause", "unary_expression", "comma_expression",
    "argument_list", "subscript_argument_list", "initializer_list", "if_statement", "else_clause", "for_statement",
    "while_statement", "do_statement", "break_statement", "continue_statement", "return_statement",
    "switch_statement", "case_statement", "compound_statement", "sizeof_expression", "initializer_pair",
    "field_designator", "template_argument_list", "binary_expression", "abstract_pointer_declarator",
    "abstract_array_declarator", "abstract_reference_declarator", "init_statement", "compound_literal_expression",
    "field_expression",
))  # fmt: skip
_VERBATIM = frozenset((
    "true", "false", "char_literal", "field_identifier", "namespace_identifier", "statement_identifier",
    "placeholder_type_specifier", "this",
))  # fmt: skip
_REASONS = {
    "lambda_expression": ("a lambda", "write it as a __device__ function"),
    "new_expression": ("'new'", "use an array of fixed size"),
    "delete_expression": ("'delete'", "use an array of fixed size"),
    "goto_statement": ("'goto'", "use a loop or a condition"),
    "labeled_statement": ("a label", "use a loop or a condition"),
    "try_statement": ("'try'", "Metal has no exceptions"),
    "throw_statement": ("'throw'", "Metal has no exceptions"),
    "gnu_asm_expression": ("inline PTX", "write out in C++ what the instruction does"),
    "preproc_if": ("an #if within a function", "keep the branch that is meant"),
    "preproc_ifdef": ("an #if within a function", "keep the branch that is meant"),
    "string_literal": ("a string", "a kernel can't print: write what you want to see into an output"),
    "raw_string_literal": ("a string", "a kernel can't print: write what you want to see into an output"),
    "for_range_loop": ("a range-based for", "write the loop with an index"),
    "structured_binding_declarator": ("a structured binding", "declare the variables one by one"),
    "ERROR": ("text that is not understood", "write it in plain CUDA C++"),
}


def node_text(renderer: Renderer, node: Node) -> str:
    """Return the Metal text of a node; raise `Refused` for a kind that isn't known."""
    kind = node.type
    if (handler := _HANDLERS.get(kind)) is not None:
        return handler(renderer, node)
    if kind in _JOINED:
        return renderer.joined(node)
    if not node.is_named or kind in _VERBATIM:
        return renderer.leaf(node)
    if kind in _REASONS:
        reason, advice = _REASONS[kind]
        raise Refused(node, f"{reason} has no translation", advice)
    shown = renderer.text(node)[:40]
    raise Refused(node, f"'{shown}' ({kind}) is not known to the translator", "write it more plainly")


def _number(renderer: Renderer, node: Node) -> str:
    text = renderer.source.text_of(node)
    lower = text.lower()
    if not lower.startswith("0x") and re.search(r"[.e]", lower) and not lower.endswith("f"):
        _note_double(renderer, node, lower.rstrip("l"))
        text = (text.rstrip("lL") if lower.endswith("l") else text) + "f"
    elif re.search(r"ll", lower):
        text = re.sub(r"ll", "l", text, flags=re.IGNORECASE)
    return renderer.leaf(node, text)


_FLT_MAX = 3.4e38


def _note_double(renderer: Renderer, node: Node, text: str) -> None:
    """Note the first constant of type double that makes arithmetic with floats one of doubles in CUDA."""
    value = float(text)
    inexact = value < _FLT_MAX and struct.unpack("f", struct.pack("f", value))[0] != value
    if inexact and node.parent is not None and node.parent.type == "binary_expression":
        note = "constants of type double are floats here; CUDA computes with doubles where they stand"
        if not any(held.startswith(note) for held in renderer.shared.notes):
            renderer.shared.notes.append(f"{note} ({text} in line {node.start_point[0] + 1}, for one)")


def _identifier(renderer: Renderer, node: Node) -> str:
    name = renderer.text(node)
    variable = renderer.reader.variable(node)
    if variable is not None:
        if variable.type.reference and variable.node.id != node.id:
            return elements.referred(renderer, node, variable)
        return renderer.leaf(node, renderer.name_of(variable))
    if name in INDICES:
        return renderer.leaf(node, renderer.attribute(ATTRIBUTE_OF[name]))
    return renderer.leaf(node, named(renderer, node, name))


def named(renderer: Renderer, node: Node, name: str) -> str:
    """Return what a name that is no variable becomes, and note that the header needs it."""
    if name in renderer.fields:
        return renamed(name, KEYWORDS)
    if canonical(name) in SCALARS or vector_parts(canonical(name)) or name in renderer.routine.aliases:
        return declarations.type_name(renderer, node)
    for parameter in (*renderer.routine.template, *renderer.template):
        if name in renderer.text(parameter).replace("=", " ").split():
            return name
    program = renderer.program
    if name in program.enumerators:
        renderer.shared.used[program.enumerators[name].name] = None
        return name
    if name in renderer.reader.globals:
        if name not in renderer.shared.arrays:
            raise Refused(node, f"'{name}' is a variable of the device that the host fills, and no array",
                          "pass its value to the kernel as an argument")  # fmt: skip
        if not renderer.routine.kernel:
            said = f"'{renderer.routine.name}' reads '{name}', a variable of the device that the host fills"
            raise Refused(node, said, "have the kernel pass it a pointer")
        return renderer.global_array(name)
    if name in program.items:
        item = program.items[name]
        if item.kind == "memory" and not declarations.is_table(program, item):
            raise Refused(
                node, f"'{name}' is a variable of the device, filled by the host or other kernels",
                "pass it to the kernel as an array",
            )  # fmt: skip
        renderer.shared.used[name] = None
        return name
    if name in program.macros and name in renderer.shared.macros:
        renderer.shared.used[name] = None
        return name
    if name == "warpSize":
        return "32"
    if name in emits().names:
        return emits().names[name].text
    raise Refused(node, f"'{name}' is not known", "define it in this file")


def _index(renderer: Renderer, node: Node) -> str:
    """``blockIdx.x * blockDim.x + threadIdx.x`` and ``gridDim.x * blockDim.x`` have names of their own in Metal."""
    text = re.sub(r"[\s()]", "", renderer.source.text_of(node))
    for pattern, attribute in _INDEX_FORMS:
        if match := pattern.fullmatch(text):
            return renderer.leaf(node, f"{renderer.attribute(attribute)}.{match[1]}")
    for operand in (node.named_children[0], node.named_children[-1]):
        if elements.lies_elsewhere(renderer, operand):
            renderer.replacements[operand.id] = lambda each: elements.copied(renderer, each)
    return renderer.joined(node)


def _parenthesised(renderer: Renderer, node: Node) -> str:
    """``(blockIdx.x * blockDim.x + threadIdx.x) / 32`` needs no parentheses any more."""
    inner = node.named_children[0] if node.named_child_count == 1 else node
    if inner.type == "binary_expression" and not _operand_of_member(node):
        text = renderer.render(inner)
        return text if _INDEX.fullmatch(unmark(text)) else "(" + text + ")"
    return renderer.joined(node)


def _operand_of_member(node: Node) -> bool:
    """Whether the parentheses belong to something else than an expression: a call, a condition, a cast."""
    return node.parent is None or node.parent.type not in (
        "binary_expression",
        "init_declarator",
        "assignment_expression",
    )


_INDEX = re.compile(r"thread\w+_in_grid\.[xyz]|threads_per_grid\.[xyz]")
_INDEX_FORMS = tuple(
    (re.compile(form), attribute)
    for form, attribute in (
        (r"blockIdx\.([xyz])\*blockDim\.\1\+threadIdx\.\1", "thread_position_in_grid"),
        (r"blockDim\.([xyz])\*blockIdx\.\1\+threadIdx\.\1", "thread_position_in_grid"),
        (r"threadIdx\.([xyz])\+blockIdx\.\1\*blockDim\.\1", "thread_position_in_grid"),
        (r"threadIdx\.([xyz])\+blockDim\.\1\*blockIdx\.\1", "thread_position_in_grid"),
        (r"gridDim\.([xyz])\*blockDim\.\1", "threads_per_grid"),
        (r"blockDim\.([xyz])\*gridDim\.\1", "threads_per_grid"),
    )
)


def _cast(renderer: Renderer, node: Node) -> str:
    described, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if described is None or value is None:
        raise Refused(node, f"'{renderer.text(node)[:40]}' is not known", "write it more plainly")
    type_ = renderer.reader.described(described)
    if type_.pointers:
        origins = renderer.reader.origins_of(value)
        return f"({declarations.pointer_type(renderer, described, origins, value)}){renderer.render(value)}"
    if renderer.reader.type_of(value).points:
        raise Refused(node, "a pointer is made a number", "keep it a pointer, or compute with indices")
    if renderer.text(described) == "void":
        return f"({renderer.leaf(described)}){renderer.render(value)}"
    return f"{renderer.gap(node.start_byte, node.start_byte)}({renderer.render(described)}){renderer.render(value)}"


def _described(renderer: Renderer, node: Node) -> str:
    if node.child_by_field_name("declarator") is not None:
        raise Refused(node, f"the type '{renderer.text(node)}' is not known here", "name the memory it points to")
    return renderer.joined(node)


def _type(renderer: Renderer, node: Node) -> str:
    above = node.parent.parent if node.parent is not None else None
    if above is not None and above.type == "template_argument_list" and node.type == "type_identifier":
        name = renderer.text(node)  # a constant among template arguments reads like a type
        if (variable := renderer.reader.variable(node)) is not None:
            return renderer.leaf(node, renderer.name_of(variable))
        item = renderer.program.items.get(name)
        constant = item is not None and item.kind == "constant"
        if constant or name in renderer.program.macros or name in renderer.program.enumerators:
            return renderer.leaf(node, named(renderer, node, name))
    return renderer.leaf(node, declarations.type_name(renderer, node))


def _statement(renderer: Renderer, node: Node) -> str:
    """A statement whose call is dropped goes with its semicolon."""
    inner = node.named_children[0] if node.named_children else None
    if inner is not None and inner.type == "call_expression":
        text = renderer.render(inner)
        if text == DROPPED:
            within = node.parent.type if node.parent is not None else ""
            return DROPPED if within in ("compound_statement", "case_statement") else renderer.leaf(node, "{}")
        return text + renderer.gap(inner.end_byte, node.children[-1].start_byte) + renderer.leaf(node.children[-1])
    return renderer.joined(node)


def _pragma(renderer: Renderer, node: Node) -> str:
    text = renderer.source.text_of(node).rstrip()
    if re.match(r"#\s*pragma\s+(unroll|nounroll)\b", text):
        count = re.match(r"#\s*pragma\s+unroll\s*\(?\s*(\w+)?", text)
        if count is not None and count[1] and not count[1].isdigit():
            named(renderer, node, count[1])
        return renderer.leaf(node, text) + renderer.source.text_of(node)[len(text) :]
    return DROPPED + renderer.source.text_of(node)[len(text) :]


def _comment(renderer: Renderer, node: Node) -> str:
    text = renderer.source.text_of(node).encode("ascii", "replace").decode()
    return renderer.leaf(node, text)


def _static_assert(renderer: Renderer, node: Node) -> str:
    condition = node.child_by_field_name("condition")
    message = node.child_by_field_name("message")
    text = f"static_assert({renderer.render(condition)}" if condition is not None else "static_assert(true"
    text += f", {renderer.leaf(message)}" if message is not None else ""
    return renderer.leaf(node.children[0], "") + text + ");"


def _asm(renderer: Renderer, node: Node) -> str:
    code = node.child_by_field_name("assembly_code")
    text = " ".join(renderer.text(code).replace('"', " ").split()) if code is not None else ""
    outputs = node.child_by_field_name("output_operands")
    if re.fullmatch(r"mov\.u32 %0, %+laneid;?", text) and outputs is not None:
        operand = outputs.named_children[0].child_by_field_name("value")
        if operand is not None:
            lane = renderer.attribute("thread_index_in_simdgroup")
            return f"{renderer.render(operand)} = {renderer.leaf(node, lane)}"
    advice = "write out in C++ what the instruction does"
    if re.search(r"cp\.async", text):
        advice = "load the tile with plain loads and a barrier: Metal has no asynchronous copy"
    elif re.search(r"\bmma\.|ldmatrix|wgmma", text):
        advice = "use simdgroup_matrix on 8x8 tiles, or plain fma: registers are laid out differently"
    raise Refused(node, f"inline PTX ('{text[:40]}') has no translation", advice)


def _qualified(renderer: Renderer, node: Node) -> str:
    refuse_rest(renderer.program, node)
    name = node.child_by_field_name("name")
    scope = node.child_by_field_name("scope")
    item = renderer.program.items.get(renderer.text(scope)) if scope is not None else None
    if name is not None and scope is not None and item is not None and item.kind == "enum":
        renderer.shared.used[item.name] = None
        return renderer.leaf(node, f"{item.name}::{renderer.text(name)}")
    if name is not None and scope is not None and name.type == "identifier" and renderer.reader.type_of(node).name:
        return f"{renderer.leaf(scope, declarations.type_name(renderer, scope))}::{renderer.text(name)}"
    raise Refused(node, f"'{renderer.text(node)}' is not known", "use what is defined in this file")


def _conditional(renderer: Renderer, node: Node) -> str:
    """Return ``a ? b : c``; of pointers into two memories only the one that a template argument chooses."""
    branch = renderer.reader.known_branch(node)
    if branch is not None and renderer.reader.type_of(node).points:
        return renderer.render(branch)
    kind = renderer.reader.type_of(node)
    if not kind.points and spelled(kind.name).startswith("packed_"):  # a sum of packed vectors is a plain one
        for side in ("consequence", "alternative"):
            if (value := node.child_by_field_name(side)) is not None:
                renderer.replacements[value.id] = lambda each: f"{spelled(kind.name)}({renderer.render(each)})"
    return renderer.joined(node)


def _alias(renderer: Renderer, node: Node) -> str:
    """Return a ``using`` or ``typedef`` of a function; one for a pointer names no memory."""
    name, type_ = alias_of(node)
    described = node.child_by_field_name("type")
    pointing = type_ is not None and any(inner.type.endswith("pointer_declarator") for inner in walk(node))
    if name is None or described is None or type_ is None or pointing or name.type != "type_identifier":
        raise Refused(node, f"'{renderer.text(node)[:40]}' is not known in a function", "write out the type")
    return f"{renderer.leaf(node, f'using {renderer.text(name)} =')} {renderer.render(described)};"


_HANDLERS: dict[str, Callable[[Renderer, Node], str]] = {
    "number_literal": _number,
    "null": lambda renderer, node: renderer.leaf(node, "nullptr"),
    "identifier": _identifier,
    "binary_expression": _index,
    "parenthesized_expression": _parenthesised,
    "cast_expression": _cast,
    "type_descriptor": _described,
    "type_identifier": _type,
    "sized_type_specifier": _type,
    "template_type": _type,
    "dependent_type": _type,
    "alias_declaration": _alias,
    "type_definition": _alias,
    "primitive_type": _type,
    "subscript_expression": elements.element,
    "pointer_expression": elements.element,
    "assignment_expression": elements.assignment,
    "update_expression": elements.update,
    "expression_statement": _statement,
    "preproc_call": _pragma,
    "conditional_expression": _conditional,
    "static_assert_declaration": _static_assert,
    "comment": _comment,
    "gnu_asm_expression": _asm,
    "qualified_identifier": _qualified,
    "declaration": declarations.declaration,
    "call_expression": calls.call,
}
