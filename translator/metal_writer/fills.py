"""Kernels that do nothing but fill an array with one number: MLX can begin an output so, and needs no pass for it."""

from __future__ import annotations

from dataclasses import dataclass

from translator.launch_plan import LaunchPlan, LaunchStep, ScalarArgument, SizeArgument
from translator.metal_writer.accesses import WRITE, Access, conditions_around, loops_around
from translator.metal_writer.expressions import Expressions
from translator.size_text import parse_size
from translator.sizes import UnreadableSize


@dataclass(frozen=True)
class Fill:
    """An array and the number that every element of it gets."""

    array: str
    value: float


def fill_of(plan: LaunchPlan, step: LaunchStep, reader: Expressions, accesses: list[Access]) -> Fill | None:
    """Return what a launch fills, None when it does anything else or may leave elements out."""
    if len(accesses) != 1 or accesses[0].kind != WRITE or accesses[0].routine is not reader.routine:
        return None
    write = accesses[0]
    body = reader.routine.body
    conditions = conditions_around(write.node, body)
    above = write.node.parent
    if len(conditions) != 1 or loops_around(write.node, body) or above is None or above.type != "assignment_expression":
        return None
    index = write.node.child_by_field_name("indices")
    value = _number(plan, step, reader, reader.text(above.named_children[-1]))
    name = reader.text(index)[1:-1].strip() if index is not None else ""
    variable = reader.routine.variable(name, write.node.start_byte)
    if variable is None or variable.value is None or value is None:
        return None
    if reader.text(variable.value) not in (
        "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + blockIdx.x * blockDim.x",
        "blockDim.x * blockIdx.x + threadIdx.x", "threadIdx.x + blockDim.x * blockIdx.x",
    ):  # fmt: skip
        return None
    left, _, right = reader.text(conditions[0][1]).strip("()").partition("<")
    if left.strip() != name or not _is_extent(plan, step, reader, right.strip(), write.array):
        return None
    return Fill(write.array, value)


def _argument(step: LaunchStep, reader: Expressions, name: str) -> object:
    for parameter, argument in zip(reader.routine.parameters, step.arguments, strict=False):
        if parameter.name == name:
            return argument
    return None


def _is_extent(plan: LaunchPlan, step: LaunchStep, reader: Expressions, name: str, array: str) -> bool:
    argument = _argument(step, reader, name)
    extent = next((entry.extent for entry in plan.arrays if entry.name == array), "")
    if not isinstance(argument, SizeArgument) or not extent:
        return False
    try:
        return parse_size(argument.size) == parse_size(extent)
    except UnreadableSize:
        return False


def _number(plan: LaunchPlan, step: LaunchStep, reader: Expressions, text: str) -> float | None:
    argument = _argument(step, reader, text)
    if isinstance(argument, ScalarArgument):
        text = next((scalar.value for scalar in plan.scalars if scalar.name == argument.scalar), "")
    elif isinstance(argument, SizeArgument):
        text = argument.size
    try:
        return float(text.rstrip("fFuUlL"))
    except ValueError:
        return None
