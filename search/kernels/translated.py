"""What the translator wrote, as a program that devices run."""

from __future__ import annotations

from collections.abc import Mapping

from search.kernels.dtypes import DTYPES
from search.kernels.expressions import evaluate
from search.kernels.program import ArraySpec, Buffer, Pass, Program, TemplateValue
from translator.translation import NamedArray, TranslatedPass, Translation


def program_of(translation: Translation) -> Program:
    """Return the program of a translation without refusals."""
    return Program(
        passes=tuple(_pass(step) for step in translation.passes),
        buffers=tuple(Buffer(array.name, array.shape, array.dtype) for array in translation.buffers),
    )


def arrays_of(translation: Translation, axes: Mapping[str, int]) -> dict[str, ArraySpec]:
    """Return the inputs and outputs of a translation by name, with their shapes under ``axes``."""
    return {array.name: spec_of(array, axes) for array in (*translation.inputs, *translation.outputs)}


def spec_of(array: NamedArray, axes: Mapping[str, int]) -> ArraySpec:
    """Return the shape and dtype of one array under ``axes``; raise `ExpressionError` for an axis without a value."""
    return ArraySpec(array.name, tuple(evaluate(extent, axes) for extent in array.shape), DTYPES[array.dtype])


def _pass(step: TranslatedPass) -> Pass:
    return Pass(
        name=step.name,
        inputs=step.inputs,
        outputs=step.outputs,
        source=step.source,
        grid=step.grid,
        threadgroup=step.threadgroup,
        header=step.header,
        template=tuple((name, _template_value(value)) for name, value in step.template),
        init_value=step.init_value,
    )


def _template_value(text: str) -> TemplateValue:
    return text == "true" if text in ("true", "false") else text
