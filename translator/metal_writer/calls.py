"""Calls in Metal: the table's own words, and the primitives whose arguments must change with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.metal_writer import atomics, declarations, elements, lanes
from translator.metal_writer.cub_calls import cub_call
from translator.metal_writer.emits import Emit, emits
from translator.metal_writer.expressions import CASTS, SHUFFLES, call_arguments, plain_name
from translator.metal_writer.flow import called
from translator.metal_writer.groups import group_call, size_of_group
from translator.metal_writer.lines import is_primary, unmark
from translator.metal_writer.literals import limit_type
from translator.metal_writer.names import KEYWORDS, renamed, template_name
from translator.metal_writer.passes import DROPPED
from translator.metal_writer.program import Item, Routine, read_type
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import fitting_methods, methods, parameters_of, struct_of
from translator.metal_writer.types import SCALARS, bytes_of, canonical, common, spelled, vector_parts

if TYPE_CHECKING:
    from translator.metal_writer.renderer import Renderer

_DROPPED = ("assert", "__builtin_assume", "__pipeline_commit", "__pipeline_wait_prior", "__nanosleep", "printf")
_IDIOM_CALLS = {
    "erff": ("error_function", 1), "erf": ("error_function", 1), "log1pf": ("log_one_plus", 1),
    "log1p": ("log_one_plus", 1), "expm1f": ("exp_minus_one", 1), "expm1": ("exp_minus_one", 1),
}  # fmt: skip
_WORD_CALLS = {
    "__byte_perm": "byte_permute", "__funnelshift_l": "funnel_shift_left", "__funnelshift_r": "funnel_shift_right",
}  # fmt: skip
_ROUNDED_OPERATIONS = {"__fadd_rn": "+", "__fsub_rn": "-", "__fmul_rn": "*"}
_ROUNDED = {"rn": "rint(%s)", "rz": "%s", "ru": "ceil(%s)", "rd": "floor(%s)"}
_ADVICE = {
    "malloc": "use an array of fixed size", "free": "use an array of fixed size",
    "this_grid": "launch two kernels: Metal has no barrier over the grid",
    "load_matrix_sync": "use simdgroup_matrix on 8x8 tiles by hand",
    "mma_sync": "use simdgroup_matrix on 8x8 tiles by hand",
    "tex2D": "index the array and interpolate by hand: MLX binds buffers only",
    "tex1Dfetch": "index the array: MLX binds buffers only",
    "curand_uniform": "draw the numbers with mx.random and pass them in",
}  # fmt: skip


def call(renderer: Renderer, node: Node) -> str:
    """Return a call in Metal; refuse one whose meaning isn't known."""
    function, arguments = node.child_by_field_name("function"), call_arguments(node)
    if function is None or any(child.type == "kernel_call_syntax" for child in node.children):
        raise Refused(node, "a kernel is launched from within a kernel", "launch it from the host")
    if function.type in ("primitive_type", "sized_type_specifier"):
        return renderer.joined(node)
    if (cast := renderer.reader.cast_type(function)) is not None:
        return _plain_cast(renderer, node, function, cast)
    functor = renderer.reader.functor(function)
    if functor is not None and "operator()" in methods(renderer.program, functor):
        renderer.shared.used[functor.name] = None
        _check_given(renderer, node, functor, "operator()")
        return renderer.render(function) + renderer.joined(arguments_of(node))
    if limit_type(renderer.text(function)) is not None:
        return renderer.leaf(node, re.sub(r"^\w+::(?=numeric)", "", renderer.text(function)) + "()")
    name = plain_name(renderer.program, function)
    if name in CASTS and function.type == "template_function" and arguments:
        return _cast(renderer, node, function, arguments[0])
    if (text := group_call(renderer, node, function)) is not None:
        return text
    if function.type == "field_expression":
        return _method(renderer, node, function)
    if function.type == "qualified_identifier" and (text := _scoped(renderer, node, function, arguments)) is not None:
        return text
    if function.type == "identifier" and _is_member_of_template(renderer, name):
        return renderer.joined(node)
    if variable_called(renderer, function):
        raise Refused(node, f"'{name}' is a lambda or a pointer to a function", "write it as a __device__ function")
    if routines := called(renderer.program, node):
        return _own(renderer, node, function, routines)
    if len(arguments) < least_arguments(name):
        raise Refused(node, f"'{name}' lacks arguments", "write it with the arguments that CUDA documents")
    for handler in (cub_call, lanes.lane_call, lanes.barrier_call, atomics.atomic_call, _special):
        if (text := handler(renderer, node, name, arguments)) is not None:
            return text
    if (emit := emits().calls.get(name)) is not None:
        return emitted(renderer, node, emit, arguments)
    if name in renderer.methods:
        return renderer.leaf(function, renamed(name, KEYWORDS)) + renderer.joined(node, begin=function.end_byte)
    if function.type == "template_function" and struct_of(renderer.program, name) is not None:
        renderer.shared.used[name] = None
        given = function.child_by_field_name("arguments")
        kind = name + (renderer.render(given) if given is not None else "")
        return renderer.leaf(function, kind) + renderer.joined(node, begin=function.end_byte)
    named = name in renderer.program.items or name in renderer.routine.aliases
    if named or canonical(name) in SCALARS or vector_parts(canonical(name)):
        kind = declarations.type_name(renderer, function)
        return renderer.leaf(function, kind) + renderer.joined(node, begin=function.end_byte)
    for parameter in renderer.routine.template:
        if name in renderer.text(parameter).split():
            return renderer.leaf(function) + renderer.joined(node, begin=function.end_byte)
    if name in renderer.program.macros and name in renderer.shared.macros:
        renderer.shared.used[name] = None
        return renderer.leaf(function) + renderer.joined(node, begin=function.end_byte)
    raise Refused(node, f"'{name}' is not known", _ADVICE.get(name, "write out what it does as a __device__ function"))


def _is_member_of_template(renderer: Renderer, name: str) -> bool:
    """Whether a name is that of a member whose type is a parameter of its struct's template: what it is C++ knows."""
    field = renderer.reader.fields.get(name)
    return field is not None and field.name in {template_name(renderer.text(each)) for each in renderer.template}


def least_arguments(name: str) -> int:
    """Return how many arguments a primitive that is handled by itself must have."""
    if name in SHUFFLES:
        return 3 if name.endswith("_sync") else 2
    if name.startswith("atomic"):
        return 3 if name.startswith("atomicCAS") else 2
    return {"__dp4a": 3, "__mul24": 2, "__umul24": 2}.get(name, int(name.startswith("__") and "sync" in name[6:]))


def variable_called(renderer: Renderer, function: Node) -> bool:
    """Whether what is called is a local."""
    return function.type == "identifier" and renderer.reader.variable(function) is not None


def emitted(renderer: Renderer, node: Node, emit: Emit, arguments: list[Node]) -> str:
    """Return what the table makes of a call, its arguments put in place."""
    if len(arguments) != emit.arguments:
        raise Refused(node, f"'{renderer.text(node)[:40]}' should have {emit.arguments} arguments",
                      "write it with the arguments that CUDA documents")  # fmt: skip
    out, at = "", 0
    for sign, wanted, argument, start, end in emit.places():
        out += emit.text[at:start]
        if wanted:
            text = renderer.as_type(arguments[argument], wanted)
            converted = renderer.reader.type_of(arguments[argument]).name != wanted
            out += text if sign == "$" or converted or is_primary(arguments[argument], text) else f"({text})"
        else:
            out += renderer.render(arguments[argument]) if sign == "$" else renderer.parenthesised(arguments[argument])
        at = end
    text = renderer.leaf(node, out + emit.text[at:])
    within = node.parent.type if node.parent is not None else ""
    if within in ("field_expression", "subscript_expression") and not is_primary(node, text):
        return f"({text})"
    return text[:-1].replace("(", "", 1) if _bare(renderer, node) and _wrapped(emit.text) else text


def _wrapped(text: str) -> bool:
    return text.startswith("(") and text.endswith(")")


def _bare(renderer: Renderer, node: Node) -> bool:
    """Whether nothing binds tighter around an expression: it is a whole value, or argument of a function."""
    above = node.parent
    if above is not None and above.type == "argument_list" and above.parent is not None:
        function = above.parent.child_by_field_name("function")
        if function is None or renderer.text(function) in renderer.program.macros:
            return False
    return above is not None and above.type in (
        "init_declarator", "argument_list", "return_statement", "initializer_list", "assignment_expression"
    )  # fmt: skip


def _cast(renderer: Renderer, node: Node, function: Node, argument: Node) -> str:
    arguments = function.child_by_field_name("arguments")
    described = arguments.named_children[0] if arguments is not None else function
    name = plain_name(renderer.program, function)
    type_ = renderer.reader.described(described)
    if type_.pointers:
        origins = renderer.reader.origins_of(argument)
        spelled = declarations.pointer_type(renderer, described, origins, argument)
        cast = "reinterpret_cast" if name == "static_cast" else name
        return renderer.leaf(function, f"{cast}<{spelled}>") + f"({renderer.render(argument)})"
    if name != "static_cast" or type_.reference:
        raise Refused(node, f"'{renderer.text(node)[:40]}' has no translation", "cast a pointer, or use __float_as_int")
    spelled = renderer.render(described)
    return f"{renderer.leaf(function, 'static_cast')}<{spelled}>({renderer.render(argument)})"


def _plain_cast(renderer: Renderer, node: Node, function: Node, cast: str) -> str:
    """Return a cast such as ``(T)(x)``."""
    if any(renderer.reader.type_of(argument).points for argument in call_arguments(node)):
        raise Refused(node, f"'{renderer.text(node)[:40]}' makes a pointer something else", "keep it a pointer")
    kind = declarations.type_name(renderer, function.named_children[0])
    return renderer.leaf(function, f"({kind})") + renderer.joined(arguments_of(node))


def _method(renderer: Renderer, node: Node, function: Node) -> str:
    of, member = function.named_children[0], function.child_by_field_name("field")
    item = struct_of(renderer.program, renderer.reader.type_of(of).name)
    name = renderer.text(member) if member is not None else ""
    if item is not None and member is not None:
        if renderer.reader.lvalue_origins(of) - {o for o in renderer.reader.lvalue_origins(of) if o[0] == "thread"}:
            raise Refused(node, f"'{name}' is called on a '{item.name}' that is not local", "copy it to a local first")
        renderer.shared.used[item.name] = None
        _check_given(renderer, node, item, name)
        sign = renderer.leaf(member, function.children[1].type + renamed(name, KEYWORDS))
        return renderer.render(of) + sign + renderer.joined(arguments_of(node))
    raise Refused(node, f"'{renderer.text(function)[:40]}' is not known", "write it without the object")


def _check_given(renderer: Renderer, node: Node, item: Item, name: str) -> None:
    """Have a method get structs as values, and refuse one that changes what is no local: it works on thread memory."""
    arguments = call_arguments(node)
    for method in fitting_methods(renderer.program, item, name, len(arguments)):
        for parameter, argument in zip(parameters_of(method), arguments, strict=False):
            type_ = read_type(renderer.program, parameter, parameter.child_by_field_name("declarator"))
            if not type_.reference or type_.const:
                continue
            if any(space != "thread" for space, _ in renderer.reader.lvalue_origins(argument)):
                raise Refused(argument, f"'{name}' of '{item.name}' changes '{renderer.text(argument)[:40]}', which is "
                              "not local", "give it a local, and store that")  # fmt: skip
    for argument in arguments:
        if elements.lies_elsewhere(renderer, argument):
            renderer.replacements[argument.id] = lambda each: elements.copied(renderer, each)


def _scoped(renderer: Renderer, node: Node, function: Node, arguments: list[Node]) -> str | None:
    """Return a call of a struct's static function; None for functions of the source's own namespaces and std."""
    scope, name = function.child_by_field_name("scope"), function.child_by_field_name("name")
    base = renderer.text(scope) if scope is not None else ""
    if scope is None or name is None or base in ("std", "cuda") or base in renderer.program.namespaces:
        return None
    if struct_of(renderer.program, renderer.reader.described(scope).name) is None:
        raise Refused(node, f"'{renderer.text(function)[:40]}' is not known", "write out what it does")
    if any(renderer.reader.type_of(argument).points for argument in arguments):
        raise Refused(node, f"'{renderer.text(function)[:40]}' is given a pointer", "write it as a __device__ function")
    owner = struct_of(renderer.program, renderer.reader.described(scope).name)
    if owner is not None:
        _check_given(renderer, node, owner, renderer.text(name))
    kind = declarations.type_name(renderer, scope)
    method = renamed(renderer.text(name), KEYWORDS)
    return renderer.leaf(function, f"{kind}::{method}") + renderer.joined(arguments_of(node))


def _own(renderer: Renderer, node: Node, function: Node, routines: list[Routine]) -> str:
    """Return a call of a function of the source, with the attributes and threadgroup arrays that it needs."""
    done = [renderer.shared.functions[routine] for routine in routines if routine in renderer.shared.functions]
    if not done:
        raise Refused(node, f"'{renderer.text(function)}' could not be translated", "see its own refusal")
    plain = [tuple(p.type for p in each.parameters) for each in routines if not each.template and each.special is None]
    if len(set(plain)) < len(plain):
        raise Refused(node, f"several namespaces have a '{routines[0].name}'", "give them different names")
    extra: dict[str, None] = {}
    for rendered in done:
        for attribute in rendered.attributes:
            extra[renderer.attribute(attribute)] = None
        for shared in rendered.shared:
            extra[renderer.pass_on(shared)] = None
    arguments = node.child_by_field_name("arguments")
    assert arguments is not None
    name = renderer.leaf(function, done[0].name)
    if function.type == "template_function" and (given := function.child_by_field_name("arguments")) is not None:
        name += renderer.render(given)
    elif done[0].explicit:
        name += f"<{', '.join(_deduced(renderer, node, routines[0]))}>"
    passed = [each for each in call_arguments(node) if size_of_group(renderer, each) is None]
    defaults = _defaults(renderer, node, routines[0])
    more = {argument.id: done[0].halves[at] for at, argument in enumerate(call_arguments(node)) if at in done[0].halves}
    for each in call_arguments(node):
        if each.id in more:
            elements.check_repeats(renderer, each)
    if len(passed) < len(call_arguments(node)) or more or defaults:  # groups are no objects here
        texts = [renderer.in_mode(renderer.render, each, *mode) for each in passed
                 for mode in [(False, False), *more.get(each.id, [])]]  # fmt: skip
        texts += defaults
        inner = "(" + ", ".join(texts)
    else:
        inner = renderer.joined(arguments, end=arguments.end_byte - 1)
    listed = ", ".join(extra)
    between = ", " if listed and (passed or defaults) else ""
    return f"{name}{inner}{between}{listed})"


def _defaults(renderer: Renderer, node: Node, routine: Routine) -> list[str]:
    """Return what a call leaves to the defaults of a function's parameters."""
    texts = []
    for parameter in routine.parameters[len(call_arguments(node)) :]:
        value = parameter.declaration.child_by_field_name("default_value")
        if value is None:
            raise Refused(node, f"'{routine.name}' is given too few arguments", "give it all of them")
        texts.append(renderer.leaf(node, unmark(renderer.render(value))))
    return texts


def _deduced(renderer: Renderer, node: Node, routine: Routine) -> list[str]:
    """Return the template arguments that C++ deduces from those of a call."""
    found = []
    for parameter in routine.template:
        name = template_name(renderer.text(parameter))
        given = (argument for own, argument in zip(routine.parameters, call_arguments(node), strict=False)
                 if own.type.name == name)  # fmt: skip
        kind = next((kind for argument in given if (kind := renderer.reader.type_of(argument).name)), "")
        if not kind and "=" in renderer.text(parameter):
            break  # the rest have defaults
        if not kind:
            raise Refused(node, f"what '{name}' of '{routine.name}' is can't be told", "give the template arguments")
        found.append(kind)
    return found


def _special(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str | None:
    if name in _DROPPED:
        return DROPPED
    if name.startswith("__ld") and len(arguments) == 1 and arguments[0].type == "pointer_expression":
        return renderer.render(arguments[0].named_children[-1])
    if (match := re.fullmatch(r"make_(\w+?)([234])", name)) and canonical(match[1]) in SCALARS:
        return renderer.leaf(node, spelled(match[1] + match[2])) + renderer.joined(arguments_of(node))
    if name in ("max", "min") and len(arguments) == 2:
        return _extremum(renderer, node, name, arguments)
    if name in _IDIOM_CALLS and len(arguments) == 1:
        idiom = _IDIOM_CALLS[name][0]
        renderer.shared.idioms.add(idiom)
        return renderer.leaf(node, f"{idiom}({renderer.as_type(arguments[0], 'float')})")
    if arguments and (match := re.fullmatch(r"__float2(int|uint)_(rn|rz|ru|rd)", name)):
        renderer.shared.idioms.add(f"saturating_{match[1]}")
        value = _ROUNDED[match[2]] % renderer.as_type(arguments[0], "float")
        return renderer.leaf(node, f"saturating_{match[1]}({value})")
    if name in _WORD_CALLS and len(arguments) == 3:
        renderer.shared.idioms.add(_WORD_CALLS[name])
        words = ", ".join(renderer.as_type(argument, "uint") for argument in arguments)
        return renderer.leaf(node, f"{_WORD_CALLS[name]}({words})")
    if name == "__ffs" and len(arguments) == 1:
        return _find_first(renderer, node, arguments[0])
    if name in ("sincosf", "__sincosf", "sincos") and len(arguments) == 3:
        return _sincos(renderer, node, arguments)
    if name == "__pipeline_memcpy_async" and len(arguments) >= 3:
        return _copy(renderer, node, arguments)
    if name == "memcpy" and len(arguments) == 3:
        return _copy_bytes(renderer, node, arguments)
    if name == "__dp4a":
        renderer.shared.idioms.add("dot_bytes")
        return renderer.leaf(node, "dot_bytes") + renderer.joined(arguments_of(node))
    if name in ("__mul24", "__umul24"):
        kind, idiom = ("int", "multiply_24") if name == "__mul24" else ("uint", "multiply_24_unsigned")
        renderer.shared.idioms.add(idiom)
        factors = ", ".join(renderer.as_type(argument, kind) for argument in arguments[:2])
        return renderer.leaf(node, f"{idiom}({factors})")
    if name in _ROUNDED_OPERATIONS and len(arguments) == 2:
        sign = _ROUNDED_OPERATIONS[name]
        return f"({renderer.parenthesised(arguments[0])} {sign} {renderer.parenthesised(arguments[1])})"
    return None


def arguments_of(node: Node) -> Node:
    """Return the list of a call's arguments, parentheses included."""
    arguments = node.child_by_field_name("arguments")
    assert arguments is not None
    return arguments


def _copy_bytes(renderer: Renderer, node: Node, arguments: list[Node]) -> str:
    """Return a copy of the bytes of one variable into another."""
    renderer.shared.idioms.add("copy_bytes")
    texts = []
    for argument, const in ((arguments[0], ""), (arguments[1], "const ")):
        space = renderer.space(renderer.reader.origins_of(argument), argument)
        if space != "thread":
            raise Refused(node, f"a 'memcpy' in {space} memory", "copy the elements by assignments")
        texts.append(f"({const}thread uchar*){renderer.parenthesised(argument)}")
    return renderer.leaf(node, f"copy_bytes({', '.join(texts)}, {renderer.render(arguments[2])})")


def _find_first(renderer: Renderer, node: Node, argument: Node) -> str:
    """CUDA counts from 1 and gives 0 for 0, where ctz gives 32."""
    value = renderer.as_type(argument, "uint")
    if not is_primary(argument, value):
        return renderer.leaf(node, f"int((ctz({value}) + 1) % 33)")
    return renderer.leaf(node, f"({value} ? int(ctz({value})) + 1 : 0)")


def _extremum(renderer: Renderer, node: Node, name: str, arguments: list[Node]) -> str:
    """Metal's max and min want two arguments of one type, where CUDA converts them."""
    left, right = (renderer.reader.type_of(argument) for argument in arguments)
    if left.name == right.name or not left.name or not right.name:
        return renderer.leaf(node, name) + renderer.joined(arguments_of(node))
    wanted = common(left.name, right.name)
    if wanted is None:
        return renderer.leaf(node, name) + renderer.joined(arguments_of(node))
    one, other = (renderer.as_type(argument, wanted) for argument in arguments)
    return renderer.leaf(node, f"{name}({one}, {other})")


def _sincos(renderer: Renderer, node: Node, arguments: list[Node]) -> str:
    """Metal gives back the sine and puts the cosine into a reference."""
    places = []
    for argument in arguments[1:]:
        if argument.type != "pointer_expression" or argument.children[0].type != "&":
            raise Refused(node, "sincosf writes through pointers", "give it the addresses of two locals")
        places.append(renderer.render(argument.named_children[-1]))
    value = renderer.as_type(arguments[0], "float")
    return renderer.leaf(node, f"{places[0]} = sincos({value}, {places[1]})")


def _copy(renderer: Renderer, node: Node, arguments: list[Node]) -> str:
    """A copy that runs in the background becomes one that is done at once: it is there before anyone waits for it."""
    size = re.sub(r"\s", "", renderer.text(arguments[2]))
    match = re.fullmatch(r"sizeof\((\w+)\)", size)
    nbytes = int(size) if size.isdigit() else bytes_of(canonical(match[1])) if match else None
    if nbytes not in (4, 8, 16):
        raise Refused(node, f"an asynchronous copy of {size} bytes", "copy 4, 8 or 16 bytes, or write the plain loads")
    kind = match[1] if match else {4: "uint", 8: "uint2", 16: "uint4"}[nbytes]
    texts = []
    for argument, const in ((arguments[0], ""), (arguments[1], "const ")):
        space = renderer.space(renderer.reader.origins_of(argument), argument)
        place = "device" if space == "input" else space
        texts.append(f"*reinterpret_cast<{const}{place} {kind}*>({renderer.render(argument)})")
    return renderer.leaf(node, f"{texts[0]} = {texts[1]}")
