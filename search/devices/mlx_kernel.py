"""A bound pass as a call of ``mx.fast.metal_kernel``, and what Metal's compiler says as a fault of the kernel.

All but the launch itself works without a GPU: ``mx.export_function`` records the call and the text to be compiled.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import mlx.core as mx
import numpy as np

from search.devices.base import KernelFault, RunResult
from search.kernels.dtypes import Array, DType
from search.kernels.program import BoundPass, BoundProgram

Arrays = Mapping[str, Any]
"""``mx.array`` by name."""

GUARD_ELEMENTS = 64
# Integers have no NaN. Two patterns take turns, so that an element that is never written differs between two runs.
_INTEGER_POISONS = (85.0, 42.0)

# Compilers report lines as these directives say, wherever MLX puts the text.
_HEADER_FRAME = '#line 1 "kernel_header"\n{}\n#line 1 "kernel_signature"\n'
_BODY_FRAME = '#line 1 "kernel_body"\n{}'
_DIAGNOSTIC = re.compile(r"^([\w.]+):(\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)


def mlx_dtype(dtype: DType) -> Any:
    """Return MLX's own name for ``dtype``."""
    return mx.bool_ if dtype.name == "bool" else getattr(mx, dtype.name)


def to_mlx(stored: Array, dtype: DType) -> Any:
    """Return ``stored`` (storage dtype) as an ``mx.array`` of ``dtype``, bit for bit."""
    array = mx.array(stored)
    return array.view(mx.bfloat16) if dtype.name == "bfloat16" else array


def from_mlx(array: Any, dtype: DType) -> Array:
    """Return an ``mx.array`` of ``dtype`` in storage dtype, bit for bit."""
    return np.array(array.view(mx.uint16) if dtype.name == "bfloat16" else array)


def launch(bound: BoundProgram, inputs: Arrays) -> list[Any]:
    """Return the results of ``bound`` as MLX gives them: lazy, nothing has run."""
    known = dict(inputs)
    for step in bound.passes:
        outputs = call_kernel(step, known)
        known.update(zip((spec.name for spec in step.outputs), outputs, strict=True))
    return [known[name] for name in bound.results]


def launch_guarded(bound: BoundProgram, inputs: Arrays, turn: int) -> RunResult:
    """Run ``bound`` once, each output poisoned and followed by guard elements; raise `KernelFault` by pass.

    The guard lies in the same buffer, behind the array: the kernel gets a pointer and can't tell. ``turn`` alternates
    the poison of integers. A pass's own initial value takes the place of the poison, also in the guard.
    """
    known = dict(inputs)
    overruns: list[str] = []
    for step in bound.passes:
        start = step.init_value
        if start is None:
            floating = all(spec.dtype.floating for spec in step.outputs)
            start = math.nan if floating else _INTEGER_POISONS[turn % 2]
        padded = call_kernel(step, known, guard=GUARD_ELEMENTS, init_value=start)
        evaluate(step, padded)
        for spec, array in zip(step.outputs, padded, strict=True):
            size = math.prod(spec.shape)
            guard = array[size:]
            intact = mx.isnan(guard) if math.isnan(start) else guard == mx.array(start).astype(guard.dtype)
            if not mx.all(intact).item() and spec.name not in overruns:
                overruns.append(spec.name)
            known[spec.name] = array[:size].reshape(spec.shape)
    results = {spec.name: spec.dtype for step in bound.passes for spec in step.outputs if spec.name in bound.results}
    return RunResult({name: from_mlx(known[name], dtype) for name, dtype in results.items()}, tuple(overruns))


def call_kernel(step: BoundPass, known: Arrays, *, guard: int = 0, init_value: float | None = None) -> list[Any]:
    """Return the outputs of one pass, not yet evaluated; with ``guard``, flat and that many elements longer.

    ``init_value`` takes the place of the pass's own.
    """
    kernel = _kernel(
        step.name,
        tuple(spec.name for spec in step.inputs),
        tuple(spec.name for spec in step.outputs),
        step.source,
        step.header,
        step.atomic_outputs,
    )
    shapes = [(math.prod(spec.shape) + guard,) if guard else spec.shape for spec in step.outputs]
    outputs: list[Any] = kernel(
        inputs=[known[spec.name] for spec in step.inputs],
        output_shapes=shapes,
        output_dtypes=[mlx_dtype(spec.dtype) for spec in step.outputs],
        grid=step.grid,
        threadgroup=step.threadgroup,
        template=[(name, mlx_dtype(value) if isinstance(value, DType) else value) for name, value in step.template],
        init_value=step.init_value if init_value is None else init_value,
    )
    return outputs


@lru_cache(maxsize=256)
def _kernel(
    name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], source: str, header: str, atomic_outputs: bool
) -> Any:
    # MLX keeps compiled kernels by name: another text must have another name.
    digest = hashlib.sha256(f"{header}\0{source}\0{atomic_outputs}".encode()).hexdigest()[:16]
    return mx.fast.metal_kernel(
        name=f"{re.sub(r'[^A-Za-z0-9]', '_', name)}_{digest}",
        input_names=inputs,
        output_names=outputs,
        source=_BODY_FRAME.format(source),
        header=_HEADER_FRAME.format(header),
        atomic_outputs=atomic_outputs,
    )


def evaluate(step: BoundPass, outputs: Sequence[Any]) -> None:
    """Run what ``outputs`` wait for; raise `KernelFault` with the line when Metal refuses the kernel of ``step``."""
    try:
        mx.eval(outputs)
    except RuntimeError as error:
        raise kernel_fault(step.name, str(error)) from error


def kernel_fault(pass_name: str, text: str) -> KernelFault:
    """Return the fault that MLX's message ``text`` tells of.

    The first of the compiler's errors counts, with its line if that is in the kernel's own text and not in the
    signature that MLX wrote. A pipeline that needs more threadgroup memory than there is compiles, and fails after.
    """
    if match := _DIAGNOSTIC.search(text):
        place, line, message = match.groups()
        own = place in ("kernel_body", "kernel_header")
        in_header = place == "kernel_header"
        return KernelFault(
            "compile", message, pass_name=pass_name, line=int(line) if own else None, in_header=in_header
        )
    stage = "memory" if "threadgroup memory" in text.lower() else "launch"
    return KernelFault(stage, " ".join(text.split()), pass_name=pass_name)
