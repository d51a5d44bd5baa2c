"""A kernel's parameters as MLX gives them: arrays by name, numbers as template constants, scalars as references."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tree_sitter import Node

from translator.launch_plan import (
    ArrayArgument,
    LaunchStep,
    ScalarArgument,
    SizeArgument,
)
from translator.metal_writer.constants import integer
from translator.metal_writer.names import local_names, renamed, reserved_words
from translator.metal_writer.passes import Pass
from translator.metal_writer.program import Routine, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_members import struct_of
from translator.metal_writer.types import DTYPES, SCALARS, canonical, spelled, vector_parts

SHARED_BYTES = "shared_bytes"


@dataclass
class Binding:
    """What the kernel's parameters are in the pass: names, template pairs, and lines before the body."""

    names: dict[Variable, str] = field(default_factory=dict)
    template: list[tuple[str, str]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)


def template_arguments(kernel: Routine, step: LaunchStep, text: Callable[[Node], str]) -> dict[str, str]:
    """Return the kernel's template arguments by the names of its parameters, defaults put in."""
    given: dict[str, str] = {}
    for position, parameter in enumerate(kernel.template):
        words = text(parameter).replace("=", " = ").split()
        default = words[words.index("=") + 1 :] if "=" in words else []
        name = words[words.index("=") - 1] if "=" in words else words[-1]
        if position < len(step.template):
            given[name] = step.template[position]
        elif default:
            given[name] = " ".join(default)
    return given


def bind_parameters(shared: Pass, step: LaunchStep, kernel: Routine, given: dict[str, str]) -> Binding:
    """Return how the kernel's parameters and locals are called, and what stands before its body."""
    if len(step.arguments) != len(kernel.parameters):
        raise Refused(kernel.node, f"'{kernel.name}' has {len(kernel.parameters)} parameters and is launched with "
                      f"{len(step.arguments)} arguments", "launch it with all of them")  # fmt: skip
    binding = Binding()
    arrays = [name for use in shared.arrays.values() for name in (use.read, use.write) if name]
    taken = set(reserved_words(arrays)) | set(arrays) | set(shared.scalars) | {SHARED_BYTES, "votes"}
    # Names that parameters may get when theirs are taken.
    bases = taken | {parameter.name for parameter in kernel.parameters}
    taken |= {v.name for v in kernel.all_variables() if v.name[-1:] == "_" and v.name.rstrip("_") in bases}
    set_again = _assigned(shared, kernel)
    for parameter, argument in zip(kernel.parameters, step.arguments, strict=True):
        if isinstance(argument, ArrayArgument):
            _bind_array(shared, kernel, binding, parameter, argument, taken)
        elif isinstance(argument, ScalarArgument):
            _bind_scalar(shared, binding, parameter, argument, taken, set_again)
        elif isinstance(argument, SizeArgument):
            _bind_size(shared, kernel, binding, parameter, argument, taken, set_again)
    _bind_template(shared, binding, kernel, given)
    taken |= {name for name, _ in binding.template}
    called = local_names((variable.name for variable in kernel.all_variables()), taken)
    for variable in kernel.all_variables():
        binding.names.setdefault(variable, called[variable.name])
    return binding


def _assigned(shared: Pass, kernel: Routine) -> set[str]:
    reader = shared.readers[kernel]
    found = set()
    for node in shared.program.source.nodes_of("assignment_expression", "update_expression"):
        inside = kernel.body.start_byte <= node.start_byte and node.end_byte <= kernel.body.end_byte
        if inside and node.named_children:
            variable = reader.variable(node.named_children[0]) if node.named_children[0].type == "identifier" else None
            if variable is not None and variable.home == "parameter":
                found.add(variable.name)
    return found


def _bind_array(
    shared: Pass, kernel: Routine, binding: Binding, parameter: Variable, argument: ArrayArgument, taken: set[str]
) -> None:
    if not parameter.type.points:
        kind = parameter.type.name
        raise Refused(
            parameter.node, f"'{parameter.name}' is a '{kind}' and is given an array", "pass arrays by themselves"
        )
    use = shared.arrays[argument.array]
    name = use.read or use.write
    kind = shared.readers[kernel].bound(parameter.type).name
    if DTYPES.get(kind, kind) != shared.dtypes.get(argument.array, "") and parameter.type.pointers == 1:
        _bind_cast(shared, binding, parameter, argument, kind, taken)
        return
    if argument.offset in ("", "0"):
        binding.names[parameter] = name
        return
    own = renamed(parameter.name, taken)
    taken.add(own)
    offset = f"{own}_offset"
    binding.template.append((offset, argument.offset))
    binding.before.append(f"auto {own} = {name} + {offset};")
    binding.names[parameter] = own
    if use.split:
        taken.add(f"{own}_out")
        binding.before.append(f"auto {own}_out = {use.write} + {offset};")
    if flags := shared.flags.get(argument.array):
        taken.add(f"{own}_written")
        binding.before.append(f"auto {own}_written = {flags} + {offset};")


def _bind_null(shared: Pass, kernel: Routine, binding: Binding, parameter: Variable, taken: set[str]) -> None:
    """A null pointer is one in Metal too: what a kernel does with it stands under a condition, which is never met."""
    kind = shared.readers[kernel].bound(parameter.type).name
    struct = struct_of(shared.program, kind)
    if struct is not None:
        shared.used[struct.name] = None
    if parameter.type.pointers != 1 or (kind not in SCALARS and not vector_parts(kind) and struct is None):
        raise Refused(parameter.node, f"'{parameter.name}' is given a null pointer", "give it an array")
    own = renamed(parameter.name, taken)
    taken.add(own)
    const = "const " if parameter.type.const else ""
    binding.before.append(f"{const}device {spelled(kind)}* {own} = nullptr;")
    binding.names[parameter] = own


def _bind_cast(
    shared: Pass, binding: Binding, parameter: Variable, argument: ArrayArgument, kind: str, taken: set[str]
) -> None:
    """A parameter such as ``float4*`` is a pointer into an array of floats."""
    known = vector_parts(kind) or struct_of(shared.program, kind) is not None
    if argument.offset not in ("", "0") or argument.array in shared.flags or not known:
        raise Refused(parameter.node, f"'{parameter.name}' points to '{kind}' and is given another type",
                      "cast the pointer within the kernel")  # fmt: skip
    if (struct := struct_of(shared.program, kind)) is not None:
        shared.used[struct.name] = None
    use = shared.arrays[argument.array]
    own = renamed(parameter.name, taken)
    taken |= {own, f"{own}_out"}
    halves = [(own, use.read or use.write, "const " if use.read and use.read != use.write else "")]
    if use.split:
        halves.append((f"{own}_out", use.write, ""))
    for name, array, const in halves:
        item = f"{const}device {spelled(kind)}*"
        binding.before.append(f"{item} {name} = reinterpret_cast<{item}>({array});")
    binding.names[parameter] = own


def _bind_scalar(
    shared: Pass, binding: Binding, parameter: Variable, argument: ScalarArgument, taken: set[str], again: set[str]
) -> None:
    """A scalar comes as an array of no dimensions, which is a constant reference."""
    scalar = shared.scalars[argument.scalar]
    name = renamed(scalar.name, reserved_words(()))
    kind = parameter.type.name
    if parameter.name not in again and DTYPES.get(kind) == scalar.dtype:
        binding.names[parameter] = name
        return
    own = renamed(f"{parameter.name}", taken | {name})
    taken.add(own)
    const = "" if parameter.name in again else "const "
    binding.before.append(f"{const}{kind} {own} = {kind}({name});")
    binding.names[parameter] = own


def _bind_size(
    shared: Pass,
    kernel: Routine,
    binding: Binding,
    parameter: Variable,
    argument: SizeArgument,
    taken: set[str],
    again: set[str],
) -> None:
    """Integers are template constants, of which MLX makes ints: others get their own type back."""
    if parameter.type.points and argument.size == "0":
        if parameter.name in again:
            raise Refused(parameter.node, f"'{parameter.name}' is given a null pointer, and is set to another one",
                          "use a pointer of its own in the kernel")  # fmt: skip
        return _bind_null(shared, kernel, binding, parameter, taken)
    if parameter.type.points:
        raise Refused(parameter.node, f"'{parameter.name}' is a pointer and is given a number", "give it an array")
    own = renamed(parameter.name, taken)
    taken.add(own)
    binding.names[parameter] = own
    kind = parameter.type.name.rpartition("::")[2]
    item = shared.program.items.get(kind)
    if item is not None and item.kind == "enum":
        shared.used[kind] = None
        binding.template.append((f"{own}_", argument.size))
        const = "" if parameter.name in again else "const "
        binding.before.append(f"{const}{kind} {own} = {kind}({own}_);")
        return
    if kind not in SCALARS:
        raise Refused(
            parameter.node, f"'{parameter.name}' is a '{kind}'", "pass plain numbers and arrays to the kernel"
        )
    if kind == "int" and parameter.name not in again:
        binding.template.append((own, argument.size))
        return
    binding.template.append((f"{own}_", argument.size))
    const = "" if parameter.name in again else "const "
    binding.before.append(f"{const}{kind} {own} = {own}_;")


def _bind_template(shared: Pass, binding: Binding, kernel: Routine, given: dict[str, str]) -> None:
    reader = shared.readers[kernel]
    for parameter in kernel.template:
        words = reader.text(parameter).replace("=", " = ").split()
        name = words[words.index("=") - 1] if "=" in words else words[-1]
        if name not in given:
            raise Refused(parameter, f"the template argument '{name}' is not given", "write it at the launch")
        value = given[name]
        if parameter.type in ("type_parameter_declaration", "optional_type_parameter_declaration"):
            kind = canonical(value)
            if kind in DTYPES:
                binding.template.append((name, DTYPES[kind]))
            elif vector_parts(kind) or kind in shared.program.items or struct_of(shared.program, kind) is not None:
                spelling = re.sub(r"\w+", lambda match: spelled(match[0]), kind)
                binding.before.append(f"using {name} = {spelling};")
                shared.used[kind.partition("<")[0].strip()] = None
            else:
                raise Refused(parameter, f"the template argument '{value}' is not known", "use a built-in type")
            continue
        kind = canonical(" ".join(words[: words.index(name)]).rpartition("::")[2])
        number = integer(shared.program, value, {})
        if kind == "bool" and value in ("true", "false"):
            binding.template.append((name, value))
        elif kind == "int" and number is not None:
            binding.template.append((name, str(number)))
        elif number is not None and kind in SCALARS:
            binding.before.append(f"constexpr {kind} {name} = {number};")
        elif value in ("true", "false"):
            binding.before.append(f"constexpr {kind} {name} = {value};")
        elif kind in shared.program.items:
            shared.used[kind] = None
            binding.before.append(f"constexpr {kind} {name} = {f'{kind}({value})' if number is not None else value};")
        else:
            binding.template.append((name, value))
