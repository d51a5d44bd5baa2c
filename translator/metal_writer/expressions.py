"""What the expressions of a function are: their types, and the memory that pointers among them lead to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from translator.metal_writer.cub_idioms import PREFIX
from translator.metal_writer.emits import Emit, emits
from translator.metal_writer.literals import limit_type, literal_type, macro_type
from translator.metal_writer.program import Item, Origin, Program, Routine, Variable, read_type
from translator.metal_writer.struct_members import member_type, method_type, nested_type, struct_of
from translator.metal_writer.types import SCALARS, CType, canonical, common, vector_parts

INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
CASTS = ("reinterpret_cast", "static_cast", "const_cast")
SHUFFLES = ("__shfl_sync", "__shfl_xor_sync", "__shfl_up_sync", "__shfl_down_sync",
            "__shfl", "__shfl_xor", "__shfl_up", "__shfl_down")  # fmt: skip
LANE_RESULTS = {
    "__ballot_sync": "uint", "__ballot": "uint", "__activemask": "uint", "__match_any_sync": "uint",
    "__any_sync": "int", "__all_sync": "int", "__any": "int", "__all": "int", "__ffs": "int",
    "__syncthreads_count": "int", "__syncthreads_and": "int", "__syncthreads_or": "int", "erff": "float",
    "log1pf": "float", "expm1f": "float", "__byte_perm": "uint", "__funnelshift_l": "uint", "__funnelshift_r": "uint",
}  # fmt: skip
"""What calls give that the table has no word for."""
_VECTOR_MAKER = re.compile(r"make_(\w+[234])\Z")
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=", "&&", "||")
_MOST_ALIASES = 8
UNKNOWN = CType("")


@dataclass(frozen=True)
class Expressions:
    """Reads the expressions of one routine; ``types`` gives template parameters their arguments.

    ``globals`` are the variables of the device that the launch has as arrays, ``fields`` the members of the struct
    whose method it is.
    """

    program: Program
    routine: Routine
    types: Mapping[str, str]
    globals: set[str] = field(default_factory=set)
    fields: Mapping[str, CType] = field(default_factory=dict)

    def text(self, node: Node) -> str:
        """Return a node's text with single blanks."""
        return self.program.text(node)

    def variable(self, node: Node) -> Variable | None:
        """Return the variable that an identifier names."""
        return self.routine.variable(self.text(node), node.start_byte)

    def bound(self, type_: CType) -> CType:
        """Return the type with a template parameter or alias replaced by what it stands for."""
        name = canonical(self.types.get(type_.name, type_.name))
        for _ in range(_MOST_ALIASES):
            item = self.program.items.get(name)
            written = self.routine.aliases.get(name)
            if "::" in name:
                put_in = re.sub(r"[A-Za-z_]\w*", lambda match: self.types.get(match[0], match[0]), name)
                name = nested_type(self.program, put_in) or name
                break
            if written is None and item is not None and item.kind == "alias":
                written = item.node.child_by_field_name("type")
            if written is None:
                break
            name = canonical(self.text(written))
            name = canonical(self.types.get(name, name))
        return replace(type_, name=name) if name != type_.name else type_

    def type_of(self, node: Node) -> CType:
        """Return an expression's type; its name is "" when it isn't known."""
        return self.bound(self._type_of(node))

    def _type_of(self, node: Node) -> CType:
        kind = node.type
        if kind == "number_literal":
            return CType(literal_type(self.text(node)))
        if kind in ("true", "false"):
            return CType("bool")
        if kind == "char_literal":
            return CType("char")
        if kind == "identifier":
            return self._identifier(node)
        if kind in ("parenthesized_expression", "condition_clause"):
            return self.type_of(node.named_children[-1]) if node.named_children else UNKNOWN
        if kind == "unary_expression":
            inner = self.type_of(node.named_children[-1])
            return CType("bool") if node.children[0].type == "!" else _promoted(inner)
        if kind == "pointer_expression":
            inner = self.type_of(node.named_children[-1])
            if node.children[0].type == "*":
                return inner.element()
            return replace(inner, pointers=inner.pointers + 1, reference=False)
        if kind == "binary_expression":
            return self._binary(node)
        if kind == "assignment_expression":
            return self.type_of(node.named_children[0])
        if kind == "update_expression":
            return self.type_of(node.named_children[0])
        if kind == "conditional_expression":
            one, other = self._field(node, "consequence"), self._field(node, "alternative")
            if one.points or one.name == other.name or one.name not in SCALARS:
                return one
            return CType(common(one.name, other.name) or "")
        if kind == "comma_expression":
            return self.type_of(node.named_children[-1])
        if kind == "subscript_expression":
            inner = self._field(node, "argument")
            if not inner.points and (parts := vector_parts(inner.name)):
                return CType(parts[0])
            if not inner.points and (item := struct_of(self.program, inner.name)) is not None:
                return method_type(self.program, item, inner.name, "operator[]") or UNKNOWN
            return inner.element()
        if kind == "field_expression":
            return self._member(node)
        if kind in ("cast_expression", "compound_literal_expression"):
            return self.described(node.child_by_field_name("type"))
        if kind == "sizeof_expression":
            return CType("ulong")
        if kind == "call_expression":
            return self._call(node)
        if kind == "qualified_identifier":
            scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
            return self._of_struct(self.described(scope).name, self.text(name)) if scope and name else UNKNOWN
        return UNKNOWN

    def _field(self, node: Node, name: str) -> CType:
        inner = node.child_by_field_name(name)
        return self.type_of(inner) if inner is not None else UNKNOWN

    def described(self, node: Node | None) -> CType:
        """Return the type that a type descriptor, or a plain type name, gives."""
        if node is None:
            return UNKNOWN
        if node.type == "type_descriptor":
            return self.bound(read_type(self.program, node, node.child_by_field_name("declarator")))
        return self.bound(CType(canonical(self.text(node))))

    def _identifier(self, node: Node) -> CType:
        name = self.text(node)
        if (variable := self.variable(node)) is not None:
            if variable.type.name == "auto" and variable.value is not None:
                found = self.type_of(variable.value)
                if found.extents and not found.pointers:
                    return CType(found.name, 1, found.extents[1:])
                return found
            return variable.type
        if name in self.fields:
            return self.fields[name]
        if name in INDICES:
            return CType("uint3")
        if name == "warpSize":
            return CType("int")
        if name in self.program.enumerators:
            return CType("int")
        item = self.program.items.get(name)
        if item is not None and item.type is not None:
            return item.type
        for parameter in self.routine.template:
            if parameter.type.endswith("parameter_declaration") and name in self.text(parameter).split():
                return read_type(self.program, parameter, None)
        if name in self.program.macros:
            value = self.program.macros[name].child_by_field_name("value")
            return CType(macro_type(self.program.source.text_of(value)) if value is not None else "")
        emit = emits().names.get(name)
        return CType(emit.result) if emit is not None else UNKNOWN

    def _binary(self, node: Node) -> CType:
        left, right = self._field(node, "left"), self._field(node, "right")
        sign = node.children[1].type
        if sign in _COMPARISONS:
            parts = vector_parts(left.name)
            return CType(f"bool{parts[1]}" if parts and not left.points else "bool")
        if left.points or right.points:
            if left.points and right.points:
                return CType("long")
            pointer = left if left.points else right
            return CType(pointer.name, 1, pointer.extents[1:]) if not pointer.pointers else pointer
        if sign in ("<<", ">>"):
            return _promoted(left)
        return CType(common(left.name, right.name) or "")

    def _member(self, node: Node) -> CType:
        of, member = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if of is None or member is None:
            return UNKNOWN
        inner, name = self.type_of(of), self.text(member)
        if parts := vector_parts(inner.name):
            return CType(parts[0] if len(name) == 1 else f"{parts[0]}{len(name)}")
        return self._of_struct(inner.name, name)

    def _of_struct(self, struct: str, member: str) -> CType:
        item = struct_of(self.program, struct)
        return (member_type(self.program, item, struct, member) if item is not None else None) or UNKNOWN

    def _call(self, node: Node) -> CType:
        function, arguments = node.child_by_field_name("function"), call_arguments(node)
        if function is None:
            return UNKNOWN
        if function.type == "template_function":
            called = function.child_by_field_name("name")
            if called is not None and self.text(called) in CASTS:
                return self.described(_template_argument(function))
            if called is not None and self.text(called).startswith(PREFIX):
                return self.described(_template_argument(function))
        if function.type in ("primitive_type", "sized_type_specifier"):
            return CType(canonical(self.text(function)))
        if (cast := self.cast_type(function)) is not None:
            return CType(cast)
        if function.type == "field_expression":
            of = self.type_of(function.named_children[0]).name
            if (item := struct_of(self.program, of)) is not None:
                types = [self.type_of(argument) for argument in arguments]
                return method_type(self.program, item, of, self.text(function.named_children[-1]), types) or UNKNOWN
            return self._of_group(function, arguments)
        if (functor := self.functor(function)) is not None:
            types = [self.type_of(argument) for argument in arguments]
            return method_type(self.program, functor, self.type_of(function).name, "operator()", types) or UNKNOWN
        name = plain_name(self.program, function)
        if (limit := limit_type(self.text(function))) is not None:
            return CType(canonical(self.types.get(limit, limit)))
        if function.type == "qualified_identifier" and (found := self._static(function, name)) is not None:
            return found
        if name in SHUFFLES and len(arguments) > 1:
            return self.type_of(arguments[0 if not name.endswith("_sync") else 1])
        if name.startswith("atomic") and arguments:
            return self.type_of(arguments[0]).element()
        if match := _VECTOR_MAKER.match(name):
            return CType(canonical(match[1]) if match[1] != "half2" else "half2")
        if function.type == "template_function" and struct_of(self.program, name) is not None:
            return CType(canonical(self.text(function)))
        named = name in self.program.items or name in self.routine.aliases or name in self.types
        if canonical(name) in SCALARS or vector_parts(canonical(name)) or named:
            return CType(canonical(name))
        if name in LANE_RESULTS:
            return CType(LANE_RESULTS[name])
        if name in ("max", "min") and len(arguments) == 2:
            return CType(common(self.type_of(arguments[0]).name, self.type_of(arguments[1]).name) or "")
        if (emit := emits().calls.get(name)) is not None:
            return self._emitted(emit, arguments)
        for routine in self.program.routines_of(name):
            return self._returned(routine, arguments, function)
        return UNKNOWN

    def cast_type(self, function: Node) -> str | None:
        """Return the type of a cast such as ``(T)(x)``, which reads like a call; None for calls."""
        inner = function.named_children[0] if function.named_child_count == 1 else function
        if function.type != "parenthesized_expression" or inner.type not in ("identifier", "qualified_identifier"):
            return None
        text = self.text(inner)
        if inner.type == "identifier" and self.variable(inner) is not None:
            return None
        template = any(
            text in self.text(p).split() for p in self.routine.template if p.type.endswith("type_parameter_declaration")
        )
        item = self.program.items.get(text)
        known = template or text in self.routine.aliases or (item is not None and item.kind in ("struct", "alias"))
        return canonical(text) if known or canonical(text) in SCALARS or vector_parts(canonical(text)) else None

    def functor(self, function: Node) -> Item | None:
        """Return the struct whose ``operator()`` is called: of a local, or of a value as in ``Op()(x)``."""
        local = function.type == "identifier" and (
            self.variable(function) is not None or self.text(function) in self.fields
        )
        if not local and function.type not in ("call_expression", "compound_literal_expression"):
            return None
        return struct_of(self.program, self.type_of(function).name)

    def _of_group(self, function: Node, arguments: list[Node]) -> CType:
        """Return what a member of a cooperative group gives."""
        member = function.child_by_field_name("field")
        name = self.text(member) if member is not None else ""
        if name.startswith("shfl") and arguments:
            return self.type_of(arguments[0])
        if name in ("any", "all"):
            return CType("int")
        words = ("thread_rank", "size", "num_threads", "ballot", "meta_group_rank", "meta_group_size")
        return CType("uint") if name in words else UNKNOWN

    def _static(self, function: Node, name: str) -> CType | None:
        """Return what a struct's static function gives, None when it is none."""
        scope = function.child_by_field_name("scope")
        owner = self.described(scope).name
        item = struct_of(self.program, owner)
        if scope is None or item is None:
            return None
        return method_type(self.program, item, owner, name) or UNKNOWN

    def _emitted(self, emit: Emit, arguments: list[Node]) -> CType:
        if emit.result.startswith("="):
            at = int(emit.result[1:])
            found = self.type_of(arguments[at]) if at < len(arguments) else UNKNOWN
            return found
        if emit.result == "*":
            return self.type_of(arguments[0]).element() if arguments else UNKNOWN
        return CType(emit.result)

    def _returned(self, routine: Routine, arguments: list[Node], function: Node) -> CType:
        declared = read_type(self.program, routine.node, routine.node.child_by_field_name("declarator"))
        declared = CType(declared.name, declared.pointers)
        names = [self.text(p.named_children[-1]) for p in routine.template if p.type == "type_parameter_declaration"]
        if declared.name in names:
            if function.type == "template_function":
                given = function.child_by_field_name("arguments")
                position = [self.text(p.named_children[-1]) for p in routine.template].index(declared.name)
                if given is not None and position < given.named_child_count:
                    return self.described(given.named_children[position])
            for parameter, argument in zip(routine.parameters, arguments, strict=False):
                if parameter.type.name == declared.name:
                    found = self.type_of(argument)
                    return CType(found.name, max(0, found.pointers - parameter.type.pointers))
        return declared

    def known_branch(self, node: Node) -> Node | None:
        """Return the branch of ``a ? b : c`` that a template argument chooses, None where that isn't known."""
        condition = node.child_by_field_name("condition")
        given = self.types.get(self.text(condition)) if condition is not None else None
        if given not in ("true", "false"):
            return None
        return node.child_by_field_name("consequence" if given == "true" else "alternative")

    def origins_of(self, node: Node) -> set[Origin]:
        """Return where the pointer that an expression gives can lead."""
        kind = node.type
        if kind == "identifier":
            variable = self.variable(node)
            if variable is None:
                item = self.program.items.get(self.text(node))
                if self.text(node) in self.globals:
                    return {("array", self.text(node))}
                if self.text(node) in self.fields:
                    return {("thread", "")}
                return {("constant", item.name)} if item is not None and item.type and item.type.extents else set()
            return storage_of(variable) if _is_array(variable) else set(variable.origins)
        if kind == "parenthesized_expression":
            return self.origins_of(node.named_children[-1]) if node.named_children else set()
        if kind == "cast_expression":
            value = node.child_by_field_name("value")
            return self.origins_of(value) if value is not None else set()
        if kind == "binary_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is None or right is None:
                return set()
            return self.origins_of(left if self.type_of(left).points else right)
        if kind == "pointer_expression":
            inner = node.named_children[-1]
            return self.lvalue_origins(inner) if node.children[0].type == "&" else set()
        if kind == "subscript_expression":
            base = node.child_by_field_name("argument")
            return self.origins_of(base) if base is not None and self.type_of(node).points else set()
        if kind == "conditional_expression":
            if (branch := self.known_branch(node)) is not None:
                return self.origins_of(branch)
            one, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
            return (self.origins_of(one) if one else set()) | (self.origins_of(other) if other else set())
        if kind in ("assignment_expression", "update_expression"):
            return self.origins_of(node.named_children[0])
        if kind == "comma_expression":
            return self.origins_of(node.named_children[-1])
        if kind == "call_expression":
            function, arguments = node.child_by_field_name("function"), call_arguments(node)
            if function is not None and arguments and plain_name(self.program, function) in CASTS:
                return self.origins_of(arguments[0])
        return set()

    def lvalue_origins(self, node: Node) -> set[Origin]:
        """Return the memory that an expression names, as its address would lead to."""
        kind = node.type
        if kind == "identifier":
            variable = self.variable(node)
            if variable is None and self.text(node) in self.globals:
                return {("array", self.text(node))}
            if variable is None and self.text(node) in self.fields:
                return {("thread", "")}
            if variable is None:
                return {("constant", self.text(node))} if self.text(node) in self.program.items else set()
            return set(variable.origins) if variable.type.reference else storage_of(variable)
        if kind == "parenthesized_expression":
            return self.lvalue_origins(node.named_children[-1]) if node.named_children else set()
        if kind == "subscript_expression":
            base = node.child_by_field_name("argument")
            if base is None:
                return set()
            return self.origins_of(base) if self.type_of(base).points else self.lvalue_origins(base)
        if kind == "field_expression":
            base = node.child_by_field_name("argument")
            if base is None:
                return set()
            return self.origins_of(base) if node.children[1].type == "->" else self.lvalue_origins(base)
        if kind == "pointer_expression" and node.children[0].type == "*":
            return self.origins_of(node.named_children[-1])
        if kind == "call_expression":
            function, arguments = node.child_by_field_name("function"), call_arguments(node)
            if function is not None and arguments and plain_name(self.program, function) in CASTS:
                return self.lvalue_origins(arguments[0])
        return {("thread", "")}


def storage_of(variable: Variable) -> set[Origin]:
    """Return the memory that a variable itself lies in."""
    if variable.home in ("shared", "dynamic"):
        return {("shared", variable.name)}
    return {("thread", variable.name)}


def _is_array(variable: Variable) -> bool:
    return bool(variable.type.extents) and not variable.type.pointers and variable.home != "parameter"


def call_arguments(node: Node) -> list[Node]:
    """Return the arguments of a call, comments left out."""
    arguments = node.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []


def plain_name(program: Program, function: Node) -> str:
    """Return the name of what is called, without namespaces and template arguments."""
    node: Node | None = function
    while node is not None and node.type in ("qualified_identifier", "template_function", "dependent_name"):
        node = node.child_by_field_name("name")
    return program.text(node) if node is not None else ""


def _template_argument(function: Node) -> Node | None:
    arguments = function.child_by_field_name("arguments")
    return arguments.named_children[0] if arguments is not None and arguments.named_children else None


def _promoted(type_: CType) -> CType:
    return CType("int") if not type_.points and type_.name in ("bool", "char", "uchar", "short", "ushort") else type_
