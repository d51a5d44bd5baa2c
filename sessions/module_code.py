"""The code that fills the template of an exported module: signatures, launches, and what is checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from textwrap import wrap

from search.kernels.program import ArraySpec, Pass
from search.problems.definition import Tensor, Workload
from sessions.baseline_source import BaselineSource
from sessions.module_plan import Plan, mlx_name
from sessions.python_text import docstring, number, string, tuple_of


def fillings(plan: Plan, baseline: BaselineSource | None) -> dict[str, str]:
    """Return the code for the placeholders of the templates but docstring and axes; less where there is no baseline."""
    names = [plan.arrays[tensor.name] for tensor in plan.problem.inputs]
    keywords = [f"{name}={name}" for name in plan.keywords]
    outputs = [plan.arrays[tensor.name] for tensor in plan.problem.outputs]
    single = len(outputs) == 1
    return _of_baseline(plan, baseline) | {
        "imports": _imports(baseline.imports if baseline is not None else ()),
        "kernels": "\n\n".join(
            _kernel(name, step) for name, step in zip(plan.kernels, plan.program.passes, strict=True)
        ),
        "function": plan.function,
        "parameters": _parameters(plan, plan.problem.inputs),
        "arguments": ", ".join([*names, *keywords]),
        "result": "mx.array" if single else f"tuple[{', '.join(['mx.array'] * len(outputs))}]",
        "signature_docstring": docstring(_signature_story(plan), indent="    "),
        "axes_parameters": _parameters(plan, plan.tensors),
        "axes_arguments": _axes_arguments(plan),
        "axes_statements": "\n".join(f"    {line}" for line in _axes_statements(plan)),
        "axes_entries": ", ".join(f"{string(axis)}: {_axis_value(plan, axis)}" for axis in plan.axes),
        "launches": "\n".join(f"    {line}" for line in _launches(plan)),
        "outputs": ", ".join(outputs),
        "outputs_to_unpack": tuple_of(outputs),
        "got_and_want": "[got], [want]" if single else "got, want",
    }


def _of_baseline(plan: Plan, baseline: BaselineSource | None) -> dict[str, str]:
    """Return the code that falls back to MLX's own operations and checks the kernel against them."""
    if baseline is None:
        return {}
    return {
        "baseline": baseline.function,
        "baseline_arguments": _baseline_arguments(plan),
        "definitions": "\n\n\n".join(baseline.definitions),
        "checks": "\n".join(_check(plan, workload) for workload in plan.problem.of_role("bench")),
    }


def _imports(carried: tuple[str, ...]) -> str:
    """Return the module's import lines: the standard library's in a block of their own, before MLX's."""
    mlx = {line for line in carried if line.split()[1].partition(".")[0] == "mlx"}
    standard = [line for line in carried if line not in mlx]
    own = sorted(mlx | {"import mlx.core as mx"}, key=lambda line: (line.startswith("from"), line))
    return "\n".join([*standard, "", *own]) if standard else "\n".join(own)


def _kernel(name: str, step: Pass) -> str:
    # MLX keeps compiled kernels by name: another text must have another name.
    digest = hashlib.sha256(f"{step.header}\0{step.source}\0{step.atomic_outputs}".encode()).hexdigest()[:16]
    header = [f"    header={string(step.header)},"] if step.header else []
    atomic = ["    atomic_outputs=True,"] if step.atomic_outputs else []
    lines = [
        f"{name} = mx.fast.metal_kernel(",
        f"    name={string(f'{name.lower()}_{digest}')},",
        f"    input_names=[{', '.join(map(string, step.inputs))}],",
        f"    output_names=[{', '.join(map(string, step.outputs))}],",
        f"    source={string(step.source)},",
        *header,
        *atomic,
        ")",
    ]
    return "\n".join(lines)


def _parameters(plan: Plan, inputs: tuple[Tensor, ...]) -> str:
    positional = [
        f"{plan.arrays[tensor.name]}: {'mx.array' if tensor.shape else 'float | mx.array'}" for tensor in inputs
    ]
    keywords = [f"{name}: {annotation}" for name, annotation in plan.keywords.items()]
    return ", ".join([*positional, *(["*"] if keywords else []), *keywords])


def _signature_story(plan: Plan) -> Iterator[str]:
    yield f"{plan.problem.title}."
    yield ""
    for tensor in plan.problem.inputs:
        yield f"{plan.arrays[tensor.name]}: {_described(tensor)}"
    for tensor in plan.problem.outputs:
        yield f"Returns {plan.arrays[tensor.name]}: {_described(tensor)}"
    yield ""
    yield from wrap(f"Proven correct with {'; '.join(_proven_values(plan))}.", 100)


def _proven_values(plan: Plan) -> Iterator[str]:
    """Yield each variable axis and dtype variable with the values of the check workloads."""
    checked = plan.problem.of_role("check")
    for axis, value in plan.problem.axes.items():
        if value is None:
            yield f"{axis} {', '.join(map(str, sorted({workload.axes[axis] for workload in checked})))}"
    for variable in plan.dtypes:
        yield f"{variable} {', '.join(sorted({w.dtypes[variable] for w in checked if variable in w.dtypes}))}"


def _described(tensor: Tensor) -> str:
    about = f", {tensor.description}" if tensor.description else ""
    return f"[{', '.join(tensor.shape)}] {tensor.dtype}{about}" if tensor.shape else f"a number, {tensor.dtype}{about}"


def _axes_statements(plan: Plan) -> Iterator[str]:
    for axis, value in plan.problem.axes.items():
        if value is not None:
            yield f"{plan.axes[axis]} = {value}"
    for tensor in plan.tensors:
        new = [
            plan.axes[extent] if plan.extents.get(extent) == (tensor.name, dimension) else "_"
            for dimension, extent in enumerate(tensor.shape)
        ]
        if any(name != "_" for name in new):
            array = plan.arrays[tensor.name]
            yield f"{tuple_of(new)} = _extents({string(array)}, {array}, {string(', '.join(tensor.shape))})"
    for variable, name in plan.dtypes.items():
        if variable in plan.types:
            yield f"{name} = {plan.arrays[plan.types[variable]]}.dtype"
        proven = sorted(
            {workload.dtypes[variable] for workload in plan.problem.workloads if variable in workload.dtypes}
        )
        yield f"_expect_type({string(name)}, {name}, {tuple_of(map(mlx_name, proven))})"
    for tensor in plan.tensors:
        array = plan.arrays[tensor.name]
        yield f"_expect({string(array)}, {array}, {plan.values(tensor.shape)}, {plan.dtype(tensor.dtype)})"


def _axis_value(plan: Plan, axis: str) -> str:
    if axis not in plan.problem.axes:
        return f"{plan.dtypes[axis.removeprefix('sizeof_')]}.size"
    return f"int({plan.axes[axis]})" if axis in plan.untold_axes else plan.axes[axis]


def _launches(plan: Plan) -> Iterator[str]:
    yield f"{'axes = ' if plan.launched_axes else ''}_axes({_axes_arguments(plan)})"
    for axis in plan.launched_axes:
        yield f"{plan.axes[axis]} = axes[{string(axis)}]"
    for variable in plan.launched_dtypes:
        if variable in plan.types:
            yield f"{plan.dtypes[variable]} = {plan.arrays[plan.types[variable]]}.dtype"
    for tensor in plan.scalars:
        array = plan.arrays[tensor.name]
        yield f"{array} = mx.array({array}, dtype={plan.dtype(tensor.dtype)})"
    for kernel, step in zip(plan.kernels, plan.program.passes, strict=True):
        written = [plan.written[name] for name in step.outputs]
        yield f"{tuple_of(plan.arrays[name] for name in step.outputs)} = {kernel}("
        yield f"    inputs=[{', '.join(plan.arrays[name] for name in step.inputs)}],"
        if step.template:
            yield f"    template={plan.template(step)},"
        yield f"    grid={plan.values(step.grid)},"
        yield f"    threadgroup={plan.values(step.threadgroup)},"
        yield f"    output_shapes=[{', '.join(plan.values(array.shape) for array in written)}],"
        yield f"    output_dtypes=[{', '.join(plan.dtype(array.dtype) for array in written)}],"
        if step.init_value is not None:
            yield f"    init_value={number(step.init_value)},"
        yield ")"


def _baseline_arguments(plan: Plan) -> str:
    scalars = {
        tensor.name: f"mx.array({plan.arrays[tensor.name]}, dtype={plan.dtype(tensor.dtype)})"
        for tensor in plan.scalars
    }
    inputs = [f"{tensor.name}={scalars.get(tensor.name, plan.arrays[tensor.name])}" for tensor in plan.problem.inputs]
    return ", ".join([*inputs, f"axes=_axes({_axes_arguments(plan)})"])


def _axes_arguments(plan: Plan) -> str:
    return ", ".join(
        [*(plan.arrays[tensor.name] for tensor in plan.tensors), *(f"{name}={name}" for name in plan.keywords)]
    )


def _check(plan: Plan, workload: Workload) -> str:
    specs, axes = plan.problem.arrays(workload), plan.problem.bind_axes(workload)
    arrays = [f"{string(plan.arrays[tensor.name])}: {_spec(specs[tensor.name])}" for tensor in plan.tensors]
    values = [f"{string(plan.arrays[tensor.name])}: {workload.scalars[tensor.name]!r}" for tensor in plan.scalars]
    values += [f"{string(plan.axes[axis])}: {axes[axis]}" for axis in plan.untold_axes]
    values += [f"{string(plan.dtypes[v])}: {mlx_name(workload.dtypes[v])}" for v in plan.untold_dtypes]
    limits = [plan.problem.tolerance[specs[tensor.name].dtype.name] for tensor in plan.problem.outputs]
    lines = [
        "    (",
        f"        {string(workload.name)},",
        "        {",
        *(f"            {array}," for array in arrays),
        "        },",
        f"        {{{', '.join(values)}}},",
        f"        [{', '.join(f'({limit.atol!r}, {limit.rtol!r})' for limit in limits)}],",
        "    ),",
    ]
    return "\n".join(lines)


def _spec(spec: ArraySpec) -> str:
    return f"({tuple_of(map(str, spec.shape))}, {mlx_name(spec.dtype.name)})"
