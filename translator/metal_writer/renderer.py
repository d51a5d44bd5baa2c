"""The text of one function in Metal: what CUDA wrote, with only those words changed that Metal says otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from tree_sitter import Node

from translator.metal_writer.atomics import swapped_elements
from translator.metal_writer.lines import is_primary, mark
from translator.metal_writer.passes import IN_FUNCTIONS, Pass, SharedParameter
from translator.metal_writer.program import Origin, Routine, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.syntax import node_text


class Renderer:
    """Writes one function; ``names`` are those of its variables, ``attributes`` what it turned out to need.

    ``fields`` are the members that a member function can name, ``methods`` the member functions, ``template`` the
    parameters of the struct's template.
    """

    fields: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    template: tuple[Node, ...] = ()

    def __init__(self, shared: Pass, routine: Routine, names: dict[Variable, str]) -> None:
        self.shared, self.routine, self.names = shared, routine, names
        self.reader = shared.readers[routine]
        self.program = shared.program
        self.source = shared.program.source
        self.attributes: dict[str, None] = {}
        self.threadgroup: list[SharedParameter] = []
        self.writing = False
        self.flagging = False
        self.replacements: dict[int, Callable[[Node], str]] = {}
        self.taken = {name for name in names.values()}

    @cached_property
    def swapped(self) -> dict[str, Node]:
        """The elements that an ``atomicCAS`` of the function works on, see `swapped_elements`."""
        return swapped_elements(self.program, self.routine)

    def text(self, node: Node) -> str:
        """Return a node's text with single blanks."""
        return self.program.text(node)

    def render(self, node: Node) -> str:
        """Return the Metal text of a node, each token marked with its line; raise `Refused` where there is none."""
        if (replace := self.replacements.pop(node.id, None)) is not None:
            return replace(node)
        return node_text(self, node)

    def joined(self, node: Node, begin: int | None = None, end: int | None = None) -> str:
        """Return the children's texts with what stands between them; a refused statement is noted and left out."""
        out, at = [], node.start_byte if begin is None else begin
        statements = node.type in ("compound_statement", "case_statement")
        for child in node.children:
            if begin is not None and child.start_byte < begin:
                continue
            if end is not None and child.start_byte >= end:
                break
            out.append(self.gap(at, child.start_byte))
            at = child.end_byte
            if not statements:
                out.append(self.render(child))
                continue
            try:
                out.append(self.render(child))
            except Refused as refused:
                self.shared.refuse(refused.node, refused.reason, refused.advice)
        return "".join(out)

    def gap(self, begin: int, end: int) -> str:
        """Return the blanks between two tokens, and a pragma that was hidden from the parser.

        Macros of attributes that stand there mean nothing to Metal.
        """
        text = self.source.text[begin:end]
        if text.isspace() or not text:
            return text
        lines = (
            line if re.match(r"\s*#\s*pragma unroll\b", line) else re.sub(r"\S+", "", line) for line in text.split("\n")
        )
        return "\n".join(lines)

    def new_line(self, node: Node) -> str:
        """Return a line break and the blanks that the line of a node begins with."""
        begin = self.source.text.rfind("\n", 0, node.start_byte) + 1
        indent = self.source.text[begin : node.start_byte]
        return "\n" + indent if not indent.strip() else " "

    def leaf(self, node: Node, text: str | None = None) -> str:
        """Return a token's text, or another one in its place, marked with its line."""
        return mark(self.source.text_of(node) if text is None else text, node.start_point[0] + 1)

    def attribute(self, name: str) -> str:
        """Return the name by which the function has one of the kernel's attributes, and note that it needs it."""
        self.attributes[name] = None
        if self.routine.kernel:
            return name
        own = IN_FUNCTIONS[name].split()[1]
        while any(variable.name == own for variable in self.routine.all_variables()):
            own += "_"
        return own

    def name_of(self, variable: Variable) -> str:
        """Return a variable's name where it is read, or written when it stands for an array that is taken apart."""
        name = self.names[variable]
        if self.flagging and (flags := self.flags_of(variable)):
            return flags
        return self.out_name(variable) if self.writing and self.is_split(variable.origins) else name

    def flags_of(self, variable: Variable) -> str:
        """Return the name of the flags beside a pointer's array, "" where it has none."""
        for space, array in variable.origins:
            if space == "array" and array in self.shared.flags and self.has_halves(array):
                use = self.shared.arrays[array]
                given = self.routine.kernel and variable.home == "parameter"
                own = given and self.names[variable] in (use.read, use.write)
                return self.shared.flags[array] if own else f"{self.names[variable]}_written"
        return ""

    def out_name(self, variable: Variable) -> str:
        """Return the name of the written half of a pointer into a split array."""
        arrays = [self.shared.arrays[a] for space, a in variable.origins if space == "array"]
        if self.routine.kernel and variable.home == "parameter" and self.names[variable] == arrays[0].read:
            return arrays[0].write
        return f"{self.names[variable]}_out"

    def is_split(self, origins: set[Origin]) -> bool:
        """Whether a pointer leads into an array that is read and written under two names."""
        return any(
            space == "array" and self.shared.arrays[name].split and self.has_halves(name) for space, name in origins
        )

    def has_halves(self, array: str) -> bool:
        """Whether the function works on both parts of an array that is changed in place."""
        split = self.shared.splits.get(array)
        return self.routine.kernel or (split is not None and self.routine in split.halves)

    def written(self, node: Node) -> str:
        """Return the text of an expression whose pointers are written through."""
        return self.in_mode(self.render, node, True, False)

    def flagged(self, node: Node) -> str:
        """Return the text of an element's flag."""
        return self.in_mode(self.render, node, True, True)

    def as_read(self, node: Node) -> str:
        """Return the text of an expression that is read within one that is written."""
        return self.in_mode(self.render, node, False, False)

    def in_mode(self, write: Callable[[Node], str], node: Node, writing: bool, flagging: bool) -> str:
        """Return what ``write`` makes of a node whose pointers are read, written, or stand for their flags."""
        before = self.writing, self.flagging
        self.writing, self.flagging = writing, flagging
        try:
            return write(node)
        finally:
            self.writing, self.flagging = before

    def spaces(self, origins: set[Origin]) -> set[str]:
        """Return the address spaces that a pointer leads to; ``input`` is device or, for small inputs, constant."""
        spaces = set()
        for space, name in origins:
            if space == "array":
                use = self.shared.arrays[name]
                spaces.add("device" if not use.read or use.read == use.write or self.writing else "input")
            else:
                spaces.add({"shared": "threadgroup"}.get(space, space))
        return spaces

    def space(self, origins: set[Origin], node: Node) -> str:
        """Return the one address space that a pointer leads to."""
        spaces = self.spaces(origins)
        if spaces == {"device", "input"}:
            return "device"
        if len(spaces) != 1:
            shown = f"'{self.text(node)[:40]}'"
            if not spaces:
                raise Refused(node, f"where {shown} points to is not known", "point it at one array or variable")
            found = " and ".join(sorted(spaces))
            raise Refused(node, f"{shown} points to {found} memory", "write one function for each kind of memory")
        return spaces.pop()

    def global_array(self, name: str) -> str:
        """Return the name of an array that the source has at file scope and MLX as an input."""
        if self.flagging and name in self.shared.flags:
            return self.shared.flags[name]
        return self.shared.arrays[name].write if self.writing else self.shared.arrays[name].read

    def share(self, variables: list[Variable]) -> None:
        """Take threadgroup memory that the function declares."""
        raise NotImplementedError

    def pass_on(self, shared: SharedParameter) -> str:
        """Return the name of a callee's threadgroup memory here."""
        raise NotImplementedError

    def vote_slots(self) -> None:
        """Have the kernel declare slots for votes."""
        raise NotImplementedError

    def dynamic(self, variable: Variable) -> str:
        """Return name and extent of the shared memory that the launch sizes."""
        raise NotImplementedError

    def parenthesised(self, node: Node) -> str:
        """Return an expression's text such that an operator or member can follow it."""
        text = self.render(node)
        return text if is_primary(node, text) else f"({text})"

    def as_type(self, node: Node, wanted: str) -> str:
        """Return an expression's text, made that type unless it is one already."""
        found = self.reader.type_of(node)
        if found.name == wanted and not found.points:
            return self.render(node)
        if node.type == "number_literal" and found.name == "int" and wanted == "float":
            return self.leaf(node, f"{self.text(node)}.0f")
        if node.type == "number_literal" and found.name == "int" and wanted == "uint":
            return self.leaf(node, f"{self.text(node)}u")
        return f"{wanted}({self.render(node)})"
