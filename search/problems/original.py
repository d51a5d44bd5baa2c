"""A problem's CUDA original: its device code and launches as data, so that the simulator can be the reference.

``original.toml`` has in ``device_code`` the file that the simulator compiles, in ``[inputs]`` and ``[outputs]`` which
array or number of the original each of the problem's arrays is, in ``[[arrays]]``, ``[[scalars]]`` and ``[[launches]]``
what a `LaunchPlan` has. An argument of a launch is ``{ array, offset }``, ``{ size }``, ``{ scalar }``, or ``{ struct,
members }`` with members that are arguments with a name and a type.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search.kernels.cuda_program import CUDA_DTYPES
from translator.launch_plan import (
    Argument,
    ArrayArgument,
    ArrayPlan,
    LaunchPlan,
    LaunchStep,
    Role,
    ScalarArgument,
    ScalarPlan,
    SizeArgument,
    StructArgument,
    StructMember,
    Triple,
)
from translator.span import Span


@dataclass(frozen=True)
class Original:
    """Launches, the device code that they are of, and the original's name for each of the problem's arrays."""

    plan: LaunchPlan
    device_code: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def read_original(path: Path, axes: Iterable[str]) -> Original:
    """Read ``original.toml``; ``axes`` are the problem's. Raises `ValueError` or `OSError` for what doesn't read."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        code = (path.parent / data["device_code"]).read_text(encoding="utf-8")
        plan = LaunchPlan(
            axes=tuple(axes),
            scalars=tuple(ScalarPlan(e["name"], e["dtype"], e.get("value", "")) for e in data.get("scalars", [])),
            arrays=tuple(_array(entry) for entry in data["arrays"]),
            steps=tuple(_step(entry) for entry in data["launches"]),
            requires=tuple((kind, size, bound) for kind, size, bound in data.get("requires", [])),
        )
        original = Original(plan, code, data.get("inputs", {}), data["outputs"])
        _check_names(original)
    except KeyError as error:
        raise ValueError(f"{path.name}: {error.args[0]} is missing") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    return original


def original_tables(original: Original) -> dict[str, Any]:
    """Return ``original.toml`` as tables; ``device_code`` is the caller's to add."""
    plan = original.plan
    return {
        "requires": [list(check) for check in plan.requires],
        "inputs": dict(original.inputs),
        "outputs": dict(original.outputs),
        "arrays": [
            {"name": a.name, "dtype": a.dtype, "extent": a.extent, "role": a.role.value, "zeroed": a.zeroed}
            | ({"below": a.below} if a.below else {})
            for a in plan.arrays
        ],
        "scalars": [{"name": s.name, "dtype": s.dtype, "value": s.value} for s in plan.scalars],
        "launches": [
            {
                "kernel": step.kernel,
                "line": step.span.line,
                "template": list(step.template),
                "grid": list(step.grid),
                "block": list(step.block),
                "shared": step.shared,
                "arguments": [_argument_table(argument) for argument in step.arguments],
            }
            for step in plan.steps
        ],
    }


def _array(entry: Mapping[str, Any]) -> ArrayPlan:
    if entry["dtype"] not in CUDA_DTYPES:
        raise ValueError(f"array '{entry['name']}': unknown dtype '{entry['dtype']}'")
    return ArrayPlan(
        entry["name"],
        entry["dtype"],
        entry["extent"],
        Role(entry["role"]),
        entry.get("zeroed", False),
        entry.get("below", ""),
    )


def _step(entry: Mapping[str, Any]) -> LaunchStep:
    return LaunchStep(
        kernel=entry["kernel"],
        template=tuple(entry.get("template", [])),
        grid=_triple(entry["grid"]),
        block=_triple(entry["block"]),
        shared=entry.get("shared", "0"),
        arguments=tuple(_argument(argument) for argument in entry["arguments"]),
        span=Span(0, 0, entry.get("line", 0), 1),
    )


def _triple(texts: Iterable[str]) -> Triple:
    x, y, z = texts
    return (x, y, z)


def _argument(table: Mapping[str, Any]) -> Argument:
    if "struct" in table:
        members = (StructMember(m["name"], m["type"], _argument(m), m.get("unset", False)) for m in table["members"])
        return StructArgument(table["struct"], tuple(members), table.get("made", False))
    if "array" in table:
        return ArrayArgument(table["array"], table.get("offset", "0"))
    return ScalarArgument(table["scalar"]) if "scalar" in table else SizeArgument(table["size"])


def _argument_table(argument: Argument) -> dict[str, Any]:
    if isinstance(argument, StructArgument):
        members = [
            {"name": m.name, "type": m.type} | ({"unset": True} if m.unset else {}) | _argument_table(m.argument)
            for m in argument.members
        ]
        return {"struct": argument.type, "members": members} | ({"made": True} if argument.made else {})
    if isinstance(argument, ArrayArgument):
        return {"array": argument.array} | ({"offset": argument.offset} if argument.offset != "0" else {})
    return {"scalar": argument.scalar} if isinstance(argument, ScalarArgument) else {"size": argument.size}


def _check_names(original: Original) -> None:
    arrays = {array.name for array in original.plan.arrays}
    scalars = {scalar.name for scalar in original.plan.scalars}
    for tensor, name in original.inputs.items():
        if name not in arrays | scalars:
            raise ValueError(f"[inputs] {tensor}: the original has no array or number '{name}'")
    for tensor, name in original.outputs.items():
        if name not in arrays:
            raise ValueError(f"[outputs] {tensor}: the original has no array '{name}'")
