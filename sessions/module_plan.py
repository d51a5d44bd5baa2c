"""What the exported module calls things, and where it finds each axis and element type when it is called."""

from __future__ import annotations

from dataclasses import dataclass

from search.kernels.dtypes import DTYPES
from search.kernels.expressions import names
from search.kernels.program import Buffer, Pass, Program, TemplateValue
from search.problems.definition import Problem, Tensor
from sessions.python_text import expression, identifier, string, tuple_of

# What the template uses inside the functions whose parameters and variables are named here, and at its top.
_NAMES_OF_THE_MODULE = frozenset(
    {"mx", "axes", "int", "min", "max", "ceildiv", "dict", "str", "float", "tuple", "bool", "CHECKS", "candidate"}
    | {"_", "_axes", "_extents", "_expect", "_expect_type", "_random", "_excess", "self_check"}
)


@dataclass(frozen=True)
class Plan:
    """Python names by the problem's names, and for each variable axis and dtype variable the input that shows it.

    ``extents`` maps a variable axis to (input, dimension), ``types`` a dtype variable to an input; those in neither are
    keyword arguments.
    """

    problem: Problem
    program: Program
    function: str
    arrays: dict[str, str]
    axes: dict[str, str]
    dtypes: dict[str, str]
    kernels: tuple[str, ...]
    extents: dict[str, tuple[str, int]]
    types: dict[str, str]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs that have a shape."""
        return tuple(tensor for tensor in self.problem.inputs if tensor.shape)

    @property
    def scalars(self) -> tuple[Tensor, ...]:
        """The inputs that are single numbers."""
        return tuple(tensor for tensor in self.problem.inputs if not tensor.shape)

    @property
    def untold_axes(self) -> list[str]:
        """The variable axes that no input's shape tells."""
        return [axis for axis, value in self.problem.axes.items() if value is None and axis not in self.extents]

    @property
    def untold_dtypes(self) -> list[str]:
        """The dtype variables that no input's type tells."""
        return [variable for variable in self.dtypes if variable not in self.types]

    @property
    def keywords(self) -> dict[str, str]:
        """The keyword arguments by Python name, each with its annotation."""
        axes = {self.axes[axis]: "int" for axis in self.untold_axes}
        return axes | {self.dtypes[variable]: "mx.Dtype" for variable in self.untold_dtypes}

    @property
    def written(self) -> dict[str, Tensor | Buffer]:
        """What a pass can write, by name: the problem's outputs and the program's buffers."""
        return {tensor.name: tensor for tensor in self.problem.outputs} | {b.name: b for b in self.program.buffers}

    @property
    def launched_axes(self) -> list[str]:
        """The axes that some launch expression names."""
        shapes = {name: array.shape for name, array in self.written.items()}
        texts: list[str | int] = []
        for step in self.program.passes:
            texts += [*step.grid, *step.threadgroup, *(text for name in step.outputs for text in shapes[name])]
            texts += [value for _, value in step.template if not self.is_dtype(value)]
        named = frozenset[str]().union(*map(names, texts))
        return [axis for axis in self.axes if axis in named]

    @property
    def launched_dtypes(self) -> list[str]:
        """The dtype variables that a launch needs."""
        needed = {tensor.dtype for tensor in self.scalars}
        for step in self.program.passes:
            needed |= {self.written[name].dtype for name in step.outputs}
            needed |= {str(value) for _, value in step.template if self.is_dtype(value)}
        return [variable for variable in self.dtypes if variable in needed]

    def is_dtype(self, value: TemplateValue) -> bool:
        """Whether a template value stands for an element type (else it is a bool or an expression)."""
        return isinstance(value, str) and (value in self.dtypes or value in DTYPES)

    def value(self, text: str | int) -> str:
        """Return a launch expression as Python."""
        return expression(text, self.axes)

    def values(self, texts: tuple[str, ...]) -> str:
        """Return launch expressions as a Python tuple."""
        return tuple_of(map(self.value, texts))

    def dtype(self, name: str) -> str:
        """Return a dtype or dtype variable as Python."""
        return self.dtypes.get(name) or mlx_name(name)

    def template(self, step: Pass) -> str:
        """Return the template arguments of a pass as a Python list."""
        entries = []
        for name, value in step.template:
            if isinstance(value, bool):
                written = str(value)
            elif self.is_dtype(value):
                written = self.dtype(str(value))
            else:
                written = self.value(value)
            entries.append(f"({string(name)}, {written})")
        return "[" + ", ".join(entries) + "]"


def mlx_name(dtype: str) -> str:
    """Return MLX's name of a dtype, as Python."""
    return "mx.bool_" if dtype == "bool" else f"mx.{dtype}"


def plan_module(problem: Problem, program: Program, taken: frozenset[str]) -> Plan:
    """Name everything, around the names in ``taken``, and find out what the inputs' shapes and types tell."""
    used = set(_NAMES_OF_THE_MODULE | taken)
    function = identifier(problem.name, used)
    used |= {f"{function}_metal", f"{function}_mlx"}
    arrays = [tensor.name for tensor in (*problem.inputs, *problem.outputs)] + [b.name for b in program.buffers]
    variables = sorted({variable for workload in problem.workloads for variable in workload.dtypes})
    extents: dict[str, tuple[str, int]] = {}
    types: dict[str, str] = {}
    for tensor in problem.inputs:
        for dimension, extent in enumerate(tensor.shape):
            if extent in problem.axes and problem.axes[extent] is None:
                extents.setdefault(extent, (tensor.name, dimension))
        if tensor.shape and tensor.dtype in variables:
            types.setdefault(tensor.dtype, tensor.name)
    return Plan(
        problem,
        program,
        function,
        {name: identifier(name, used) for name in arrays},
        {name: identifier(name, used) for name in [*problem.axes, *(f"sizeof_{v}" for v in variables)]},
        {name: identifier(name, used) for name in variables},
        tuple(identifier(f"{step.name}_kernel".upper(), used) for step in program.passes),
        extents,
        types,
    )
