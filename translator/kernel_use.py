"""What a kernel does with its arrays: each access with its kind and how far into the array it can reach.

The kernel's body is followed once, statement by statement, with sizes over axes and index variables for values. Guards
and loop conditions are facts while what they guard is read; device functions are followed where they are called.
"""

from __future__ import annotations

from dataclasses import replace

from translator.cuda_source import CudaSource
from translator.definitions import Definition, Definitions, parameter_of
from translator.kernel_accesses import read_access, read_reference, record, record_escapes
from translator.kernel_calls import call_size, call_statement
from translator.kernel_code import KernelCode, KernelFollowing
from translator.kernel_loops import loop
from translator.kernel_pointers import size_of_element
from translator.kernel_statements import (
    alias,
    assignment,
    binary,
    block_statement,
    conditional,
    declaration,
    if_statement,
    return_statement,
    switch_statement,
    update,
)
from translator.kernel_values import ArrayPointer, Binding, KernelUse, Use

_FOLLOWING = KernelFollowing(
    {
        "compound_statement": block_statement,
        "if_statement": if_statement,
        "switch_statement": switch_statement,
        "for_statement": loop,
        "while_statement": loop,
        "do_statement": loop,
        "declaration": declaration,
        "assignment_expression": assignment,
        "update_expression": update,
        "identifier": read_reference,
        "subscript_expression": read_access,
        "pointer_expression": read_access,
        "conditional_expression": conditional,
        "binary_expression": binary,
        "call_expression": call_statement,
        "return_statement": return_statement,
        "gnu_asm_expression": record_escapes,
        "alias_declaration": alias,
        "type_definition": alias,
        "comment": lambda code, node: None,
    },
    call_size,
    size_of_element,
)


def read_kernel(source: CudaSource, definitions: Definitions, kernel: Definition, binding: Binding) -> KernelUse:
    """Return what a kernel does with the arrays that a launch binds to its parameters."""
    code = KernelCode(
        source, definitions, binding.types, binding.grid, binding.block, binding.below, _FOLLOWING
    )  # fmt: skip
    pointers: dict[str, ArrayPointer] = {}
    for parameter in kernel.parameters:
        type_text, text = parameter_of(source, parameter)
        code.declared[text] = type_text
        if text in binding.arrays:
            array, element, offset = binding.arrays[text]
            code.items[array] = code.bytes_or_none(element)
            code.env[text] = pointers[text] = ArrayPointer(array, code.resolved(type_text).replace("*", ""), offset)
        elif text in binding.values:
            code.env[text] = binding.values[text]
        elif "*" in type_text:
            code.env[text] = ArrayPointer("", type_text.replace("*", ""))
    for text, (array, element, offset) in binding.arrays.items():
        if text not in pointers and text not in code.env:  # a member of a struct
            code.items[array] = code.bytes_or_none(element)
            code.env[text] = pointers[text] = ArrayPointer(array, element, offset)
    for text, size in binding.values.items():
        code.env.setdefault(text, size)
    code.visit(kernel.body)
    if code.cut:
        # what comes after the limit may reach any array
        for pointer in pointers.values():
            record(code, replace(pointer, offset=None), Use.UPDATE, kernel.node)
    met = {array: tuple(values) for array, values in code.met.items()}
    return KernelUse(tuple(code.accesses), code.guarded, tuple(code.aligned), met, frozenset(code.indexing))
