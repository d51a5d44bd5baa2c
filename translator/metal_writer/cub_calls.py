"""CUB's reductions and scans in Metal: a simdgroup's own functions, and one value a simdgroup in threadgroup memory.

What `cub_source` made calls of functions becomes calls of functions of the header (`cub_idioms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer import declarations
from translator.metal_writer.cub_idioms import PREFIX, ScanFunction
from translator.metal_writer.cub_source import METHODS, OPERATIONS, PAIR
from translator.metal_writer.lanes import number
from translator.metal_writer.lines import unmark
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import members, methods, struct_of, template_names
from translator.metal_writer.types import SCALARS, vector_parts

if TYPE_CHECKING:
    from translator.metal_writer.passes import Pass
    from translator.metal_writer.renderer import Renderer

_COMBINED = ("char", "uchar", "short", "ushort", "int", "uint", "half", "bfloat", "float")
"""The types that a simdgroup adds up and compares by itself."""
_LANES = "lanes of "
_WIDTHS = (1, 2, 4, 8, 16, 32)


def cub_call(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str | None:
    """Return what a reduction or scan becomes; None for other calls."""
    if not name.startswith(PREFIX):
        return _pair(renderer, node, arguments)
    collective, _, method = name.removeprefix(PREFIX).partition("_")
    if method not in METHODS.get(collective, ()) or (collective.startswith("Block") and not arguments):
        raise Refused(node, f"'{name}' is not known", "call the reductions and scans of CUB by their own names")
    call = _Call(renderer, node, collective)
    passed = arguments[1:] if call.block else arguments
    text = call.reduction(method, passed) if collective.endswith("Reduce") else call.scan(method, passed)
    return renderer.leaf(node, text)


def _pair(renderer: Renderer, node: Node, arguments: list[Node]) -> str | None:
    """Return a pair that is made of its key and value: braces, since it has no constructor."""
    function = node.child_by_field_name("function")
    if function is None or len(arguments) != 2 or renderer.reader.type_of(node).name.partition("<")[0] != PAIR:
        return None
    kind = declarations.type_name(renderer, function)
    return renderer.leaf(node, f"{kind}{{{', '.join(map(renderer.render, arguments))}}}")


class _Call:
    """One call: its template arguments read, and what the header needs for its type noted."""

    def __init__(self, renderer: Renderer, node: Node, collective: str) -> None:
        self.renderer, self.node, self.collective = renderer, node, collective
        self.block = collective.startswith("Block")
        function = node.child_by_field_name("function")
        given = function.child_by_field_name("arguments") if function is not None else None
        self.given = [child for child in given.named_children if child.type != "comment"] if given is not None else []
        if not self.given:
            raise Refused(node, f"'cub::{collective}' has no type", "give its template arguments")
        type_ = self.given[0].child_by_field_name("type") or self.given[0]
        self.element = renderer.reader.described(self.given[0]).name
        self.spelled = unmark(declarations.type_name(renderer, type_))
        self._lanes_of_struct(self.element)
        self.width = 32 if self.block else self._width()

    def _width(self) -> int:
        width = number(self.renderer, self.given[1]) if len(self.given) > 1 else 32
        if width not in _WIDTHS:
            raise Refused(self.node, f"'cub::{self.collective}' of {self.renderer.text(self.given[1])} threads",
                          "give it 32, 16, 8, 4 or 2 threads as a number")  # fmt: skip
        return width

    def _lanes_of_struct(self, name: str) -> None:
        """Have the header move values of a struct between lanes, member by member."""
        program, shared = self.renderer.program, self.renderer.shared
        item = struct_of(program, name)
        if item is None:
            own = any(name in self.renderer.text(each).split() for each in self.renderer.routine.template)
            if not own and name not in SCALARS and not vector_parts(name):
                raise Refused(self.node, f"'cub::{self.collective}' of '{name}'", "use a built-in type or a struct")
            return
        for member in members(program, item).values():
            if member.points or member.reference:
                raise Refused(self.node, f"'{item.name}' holds an array or a pointer, which lanes can't exchange",
                              "make its members plain values")  # fmt: skip
            if struct_of(program, member.name) is not None:
                self._lanes_of_struct(member.name)
        shared.idioms.add(_LANES + item.name)

    def _places(self) -> str:
        """Return the storage, and where the thread stands."""
        arguments = self.node.child_by_field_name("arguments")
        assert arguments is not None
        storage = next(child for child in arguments.named_children if child.type != "comment")
        if {space for space, _ in self.renderer.reader.origins_of(storage)} != {"shared"}:
            raise Refused(storage, f"'{self.renderer.text(storage)[:40]}' is not shared memory of its own",
                          "declare it as __shared__ and of the type's TempStorage, alone or in a union")  # fmt: skip
        simdgroup = self.renderer.attribute("simdgroup_index_in_threadgroup")
        return f"{self.renderer.render(storage)}, {simdgroup}, {self._lane()}"

    def _lane(self) -> str:
        return self.renderer.attribute("thread_index_in_simdgroup")

    def _threads(self) -> str:
        extent = self.renderer.attribute("threads_per_threadgroup")
        return f"{extent}.x" if len(self.given) <= 3 else f"{extent}.x * {extent}.y * {extent}.z"

    def _value(self, node: Node) -> tuple[str, bool]:
        """Return a value that takes part, and whether it is several items."""
        type_ = self.renderer.reader.type_of(node)
        if type_.extents and not type_.pointers:
            if self.renderer.reader.bound(type_).name != self.element:
                raise Refused(node, f"'{self.renderer.text(node)[:40]}' are no '{self.element}'", "declare them so")
            return self.renderer.render(node), True
        if struct_of(self.renderer.program, self.element) is not None or type_.name == self.element:
            return self.renderer.render(node), False
        return f"{self.spelled}({self.renderer.render(node)})", False

    def _is_operation(self, node: Node) -> bool:
        return self._built_in(node) is not None or self._functor(node)

    def _functor(self, node: Node) -> bool:
        item = struct_of(self.renderer.program, self.renderer.reader.type_of(node).name)
        return item is not None and "operator()" in methods(self.renderer.program, item)

    def _built_in(self, node: Node) -> str | None:
        name = self.renderer.text(node).removeprefix(PREFIX)
        return name if name in OPERATIONS and self.renderer.text(node).startswith(PREFIX) else None

    def _operation(self, node: Node | None) -> str:
        """Return an operation as an object; None is addition."""
        name = "Sum" if node is None else self._built_in(node)
        if name is not None:
            self.renderer.shared.idioms.add(f"Cub{name}")
            return f"Cub{name}()"
        assert node is not None
        if not self._functor(node):
            raise Refused(node, f"'{self.renderer.text(node)[:40]}' is not known as an operation on two values",
                          "write a struct with an operator() of two parameters, and give an object of it")  # fmt: skip
        return self.renderer.render(node)

    def reduction(self, method: str, arguments: list[Node]) -> str:
        """Return a reduction's value."""
        given = 1 if method == "Sum" else 2
        if len(arguments) not in (given, given + 1):
            raise Refused(self.node, f"'{method}' of '{self.collective}' should have {given} or {given + 1} arguments",
                          "write it with the arguments that CUB documents")  # fmt: skip
        operation = arguments[1] if method == "Reduce" else None
        value, several = self._value(arguments[0])
        if several:
            self.renderer.shared.idioms.add("items_together")
            value = f"items_together({value}, {self._operation(operation)})"
        valid = self.renderer.as_type(arguments[given], "uint") if len(arguments) > given else ""
        built_in = "Sum" if operation is None else self._built_in(operation)
        word = built_in.lower() if built_in is not None and self.element in _COMBINED else ""
        if self.block:
            function = f"threadgroup_{word or 'reduce'}"
            self.renderer.shared.idioms |= {function} if word else {"from_lane", "simd_reduce", function}
            combined = "" if word else f"{self._operation(operation)}, "
            return f"{function}({value}, {combined}{self._places()}, {valid or self._threads()})"
        if word and not valid and self.width == 32:
            return f"simd_{word}({value})"
        if word and not valid:
            self.renderer.shared.idioms.add(f"tile_{word}")
            return f"tile_{word}({value}, {self.width})"
        self.renderer.shared.idioms |= {"from_lane", "simd_reduce"}
        width = f"{self.width}"
        return f"simd_reduce({value}, {self._operation(operation)}, {self._lane()}, {width}, {valid or width})"

    def scan(self, method: str, arguments: list[Node]) -> str:
        """Return a scan as a statement without its semicolon."""
        kind = "inclusive" if method.startswith("Inclusive") else "exclusive"
        if len(arguments) < 2 + method.endswith("Scan"):
            raise Refused(self.node, f"'{method}' of '{self.collective}' lacks arguments",
                          "write it with the arguments that CUB documents")  # fmt: skip
        rest = arguments[2:]
        begins = method == "ExclusiveScan" and len(rest) > 1 and not self._is_operation(rest[0])
        initial = rest.pop(0) if begins else None
        operation = rest.pop(0) if method.endswith("Scan") else None
        if len(rest) > 1:
            raise Refused(self.node, f"'{method}' of '{self.collective}' has arguments that are not known",
                          "write it with the arguments that CUB documents")  # fmt: skip
        tail = rest[0] if rest else None
        callback = tail is not None and self._functor(tail) and self.renderer.reader.type_of(tail).name != self.element
        for place in (arguments[1], *rest):
            self._check_local(place)
        value, several = self._value(arguments[0])
        shape = self.renderer.reader.type_of(arguments[1])
        if several != bool(shape.extents and not shape.pointers):
            raise Refused(arguments[1], f"'{self.renderer.text(arguments[1])[:40]}' is no result for what is scanned",
                          "scan a value into a value, and an array into an array of the same size")  # fmt: skip
        result = self.renderer.render(arguments[1])
        built_in = "Sum" if operation is None else self._built_in(operation)
        plain = built_in == "Sum" and self.element in _COMBINED and self.width == 32
        if plain and not self.block and tail is None and initial is None and not several and method.endswith("Sum"):
            return f"{result} = simd_prefix_{kind}_sum({value})"
        sums_alone = kind == "exclusive" and operation is None and not callback
        begin = "callback" if callback else "initial" if initial is not None or sums_alone else ""
        if callback and not self.block:
            raise Refused(self.node, f"'{self.collective}' has no callbacks", "use BlockScan")
        function = ScanFunction("threadgroup" if self.block else "simd", kind, several, begin)
        combined = "SimdSum()" if plain else self._operation(operation)
        self.renderer.shared.scans.add(function)
        self.renderer.shared.idioms |= {*function.needs, *(("SimdSum",) if plain else ())}
        given = [value, result]
        if begin == "initial":
            given.append(self._value(initial)[0] if initial is not None else f"{self.spelled}(0)")
        given.append(combined)
        if callback and tail is not None:
            given.append(self.renderer.render(tail))
        places = f"{self._places()}, {self._threads()}" if self.block else f"{self._lane()}, {self.width}"
        before = f"{self.renderer.render(tail)} = " if tail is not None and not callback else ""
        return f"{before}{function.name}({', '.join(given)}, {places})"

    def _check_local(self, node: Node) -> None:
        """Results go through references, which name their memory."""
        reader = self.renderer.reader
        origins = reader.origins_of(node) if reader.type_of(node).points else reader.lvalue_origins(node)
        if {space for space, _ in origins} - {"thread"}:
            raise Refused(node, f"a scan writes '{self.renderer.text(node)[:40]}', which is not a local",
                          "let it write a local, and store that")  # fmt: skip


def lanes_of_structs(shared: Pass) -> list[str]:
    """Return the functions that take a struct's value from another lane."""
    texts = []
    for name in sorted(idiom.removeprefix(_LANES) for idiom in shared.idioms if idiom.startswith(_LANES)):
        item = shared.program.items[name]
        parameters = template_names(shared.program, item)
        outer = item.outer.child_by_field_name("parameters") if item.outer is not None else None
        template = f"template {shared.program.text(outer)}\n" if parameters and outer is not None else ""
        type_ = f"{name}<{', '.join(parameters)}>" if parameters else name
        lines = "".join(
            f"    result.{member} = from_lane(value.{member}, lane);\n" for member in members(shared.program, item)
        )
        texts.append(
            f"{template}inline {type_} from_lane({type_} value, uint lane) {{\n"
            f"    {type_} result = value;\n{lines}    return result;\n}}"
        )
    return texts
