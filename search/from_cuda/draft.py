"""What a problem from a CUDA file consists of, before it is a folder: arrays, axes, costs, and the original as data."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import dataclass

from search.from_cuda.reading import Reading
from search.kernels.cuda_program import CUDA_DTYPES
from search.kernels.dtypes import DTYPES
from search.kernels.expressions import names
from search.problems.definition import Tensor, Tolerance
from search.problems.original import Original
from translator.device_text import device_text
from translator.launch_plan import ArrayPlan, LaunchPlan, Role

TOLERANCES: dict[str, Tolerance] = {
    "float32": Tolerance(1e-6, 2e-5),
    "float16": Tolerance(1e-4, 2e-3),
    "bfloat16": Tolerance(1e-3, 1.6e-2),
}
"""Room for two float32 evaluations in different orders, and for a result rounded to 16 bits."""

EXACT = Tolerance(0.0, 0.0)

_READ = (Role.INPUT, Role.INOUT)
_WRITTEN = (Role.OUTPUT, Role.INOUT)


@dataclass(frozen=True)
class Draft:
    """The parts of a problem that follow from the source; ``open_numbers`` are inputs whose value the source leaves."""

    name: str
    title: str
    description: str
    axes: dict[str, str]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    numbers: dict[str, float]
    open_numbers: tuple[str, ...]
    tolerance: dict[str, Tolerance]
    bytes: str
    uncounted: tuple[str, ...]
    original: Original


def draft_of(reading: Reading) -> Draft:
    """Return the draft of a reading without open questions."""
    plan = reading.plan
    read_as = _names([entry.name for entry in _given(plan)] + [entry.name for entry in plan.scalars], reading, True)
    written_as = _names([array.name for array in plan.arrays if array.role in _WRITTEN], reading, False)
    arrays = {array.name: array for array in plan.arrays}
    inputs = [
        _tensor(read_as[array.name], array, f"{array.name} of the original" + _below_words(array))
        for array in _given(plan)
    ]
    inputs += [
        Tensor(read_as[scalar.name], (), _metal_dtype(scalar.dtype), f"{scalar.name} of the original")
        for scalar in plan.scalars
    ]
    outputs = [_tensor(written, arrays[name], _output_words(arrays[name])) for name, written in written_as.items()]
    uncounted = tuple(array.name for array in plan.arrays if array.gathered and array.role is Role.INPUT)
    return Draft(
        name=re.sub(r"\W+", "_", reading.path.stem).strip("_") or "kernel",
        title=f"{_launched(reading)} of {reading.path.name}",
        description=_remark_above(reading),
        axes={axis: _axis_words(axis, plan) for axis in plan.axes},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        numbers={read_as[s.name]: value for s in plan.scalars if (value := _number(s.value)) is not None},
        open_numbers=tuple(read_as[scalar.name] for scalar in plan.scalars if _number(scalar.value) is None),
        tolerance={tensor.dtype: TOLERANCES.get(tensor.dtype, EXACT) for tensor in outputs},
        bytes=_bytes(inputs, outputs, {read_as[name] for name in uncounted}),
        uncounted=uncounted,
        original=Original(
            plan,
            device_text(reading.source),
            {read_as[name]: name for name in read_as},
            {written: name for name, written in written_as.items()},
        ),
    )


def _number(text: str) -> float | None:
    """Return the value of a C literal, None when it is none."""
    for form in (text, text.rstrip("fFlL")):
        with suppress(ValueError):
            return float(form)
    return None


def _given(plan: LaunchPlan) -> list[ArrayPlan]:
    return [array for array in plan.arrays if array.role in _READ and not array.zeroed]


def _names(wanted: Iterable[str], reading: Reading, inputs: bool) -> dict[str, str]:
    """Return the problem's name for each array: the translation's, so that its program fits, else a free one."""
    known: dict[str, str] = {}
    if reading.complete and reading.translation is not None:
        entries = reading.translation.inputs if inputs else reading.translation.outputs
        known = {entry.origin: entry.name for entry in entries}
    given = {array.name for array in _given(reading.plan)}
    found: dict[str, str] = {}
    for name in wanted:
        own = name.lstrip("_") or "value"
        found[name] = known.get(name) or _free(f"{own}_out" if not inputs and name in given else own, found.values())
    return found


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _tensor(name: str, array: ArrayPlan, words: str) -> Tensor:
    shape = array.shape or (array.extent,)
    return Tensor(name, shape, _metal_dtype(array.dtype), words, array.below if array.role in _READ else "")


def _metal_dtype(dtype: str) -> str:
    return dtype if dtype in DTYPES else "float32"


def _below_words(array: ArrayPlan) -> str:
    return f"; values below {array.below}" if array.below else ""


def _output_words(array: ArrayPlan) -> str:
    if array.role is Role.INOUT:
        return f"{array.name} of the original, which changes it in place"
    return f"{array.name} of the original" + (", which begins as zeros" if array.zeroed else "")


def _axis_words(axis: str, plan: LaunchPlan) -> str:
    arrays = [array.name for array in plan.arrays if axis in names(array.extent)]
    of = f"{axis} of {plan.function}" if plan.function else f"{axis} of the kernel"
    return f"{of}; in the shape of {', '.join(arrays)}" if arrays else of


def _bytes(inputs: Iterable[Tensor], outputs: Iterable[Tensor], uncounted: Container[str]) -> str:
    """Return the bytes that move at least: every array once, but not those read only where data says."""
    terms: dict[tuple[str, ...], tuple[str, int]] = {}
    for tensor in (*(t for t in inputs if t.name not in uncounted), *outputs):
        if tensor.shape:
            factors = [f"({extent})" if re.search(r"[-+/%]", extent) else extent for extent in tensor.shape]
            same = tuple(sorted(factors))
            elements, size = terms.get(same, (" * ".join(factors), 0))
            terms[same] = elements, size + CUDA_DTYPES[tensor.dtype].itemsize
    return " + ".join(f"{size} * {elements}" for elements, size in terms.values()) or "0"


def _launched(reading: Reading) -> str:
    kernels = list(dict.fromkeys(step.kernel for step in reading.plan.steps))
    return reading.plan.function if reading.plan.function not in ("", "main") else ", ".join(kernels)


def _remark_above(reading: Reading) -> str:
    """Return the comment above the first kernel that is launched, else what is launched."""
    first = next(f for f in reading.source.kernels if f.name == reading.plan.steps[0].kernel)
    lines = reading.source.text.splitlines()[: first.span.line - 1]
    while lines and lines[-1].strip().startswith("template"):
        lines.pop()
    remark: list[str] = []
    while lines and lines[-1].strip().startswith("//"):
        remark.insert(0, lines.pop().strip().lstrip("/ "))
    kernels = ", then ".join(step.kernel for step in reading.plan.steps)
    return "\n".join([*remark, f"What {reading.path.name} computes: {kernels}."])
