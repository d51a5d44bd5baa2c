"""Short ways to write a launch by hand, to translate it, and to run the translation on the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES, Array
from search.kernels.expressions import evaluate
from search.kernels.program import ArraySpec, BoundPass, BoundProgram
from translator.cuda_source import parse_cuda
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
)  # fmt: skip
from translator.metal_writer import write_metal
from translator.span import Span
from translator.translation import NamedArray, TranslatedPass, Translation

SECONDS = 20.0
ROLES = {"in": Role.INPUT, "out": Role.OUTPUT, "inout": Role.INOUT, "scratch": Role.SCRATCH}


def launch(
    kernel: str, grid: str, block: str, arguments: str, *, shared: str = "0", template: tuple[str, ...] = ()
) -> LaunchStep:
    """Return a step; sizes are separated by ``;``, arguments (``x``, ``x+offset``, ``=size``, ``.scalar``) by ``,``."""
    return LaunchStep(
        kernel, template, _triple(grid), _triple(block), shared,
        tuple(_argument(part.strip()) for part in arguments.split(",") if part.strip()), Span(0, 0, 1, 1),
    )  # fmt: skip


def _triple(text: str) -> tuple[str, str, str]:
    x, y, z = (*(part.strip() for part in text.split(";")), "1", "1")[:3]
    return x, y, z


def _argument(text: str) -> Argument:
    if text.startswith("="):
        return SizeArgument(text[1:])
    if text.startswith("."):
        return ScalarArgument(text[1:])
    name, _, offset = text.partition("+")
    return ArrayArgument(name, offset or "0")


def plan(steps: list[LaunchStep], arrays: Mapping[str, str], *, axes: str = "n", scalars: str = "") -> LaunchPlan:
    """Return a plan; an array is ``role dtype extent``, with ``zeroed`` before them where the host clears it."""
    made = []
    for name, text in arrays.items():
        zeroed = text.startswith("zeroed ")
        role, dtype, extent = text.removeprefix("zeroed ").split(" ", 2)
        made.append(ArrayPlan(name, dtype, extent, ROLES[role], zeroed))
    return LaunchPlan(
        tuple(axes.split()), tuple(ScalarPlan(name, "float32") for name in scalars.split()), tuple(made), tuple(steps)
    )


def translate(text: str, launches: LaunchPlan) -> Translation:
    """Translate a source that must not be refused."""
    translation = write_metal(parse_cuda(text, "test.cu"), launches)
    assert [str(refusal) for refusal in translation.refusals] == []
    return translation


def refusals(text: str, launches: LaunchPlan) -> list[str]:
    """Translate a source that must be refused: there is no pass for it."""
    translation = write_metal(parse_cuda(text, "test.cu"), launches)
    assert translation.passes == ()
    return [str(refusal) for refusal in translation.refusals]


@dataclass(frozen=True)
class Runner:
    """Runs translations."""

    device: SimulatorDevice

    def __call__(self, translation: Translation, inputs: Mapping[str, Any], **axes: int) -> Mapping[str, Array]:
        """Return the outputs; a checked run must find nothing wrong."""
        bound = bind(translation, axes)
        given = {name: np.asarray(value) for name, value in inputs.items()}
        result = self.device.run(bound, given, time_limit=SECONDS)
        assert result.overruns == ()
        checked = self.device.check(bound, given, time_limit=SECONDS, seed=3)
        assert [report.message for report in checked.reports if report.certain] == []
        return result.outputs


def bind(translation: Translation, axes: Mapping[str, int]) -> BoundProgram:
    """Return the passes with numbers for the axes."""
    arrays = {a.name: a for a in (*translation.inputs, *translation.buffers, *translation.outputs)}
    passes = tuple(_bound(step, arrays, axes) for step in translation.passes)
    return BoundProgram(passes, tuple(array.name for array in translation.outputs))


def _bound(step: TranslatedPass, arrays: Mapping[str, NamedArray], axes: Mapping[str, int]) -> BoundPass:
    def spec(name: str) -> ArraySpec:
        array = arrays[name]
        return ArraySpec(name, tuple(evaluate(e, axes) for e in array.shape), DTYPES[array.dtype])

    def value(text: str) -> Any:
        return (
            {"true": True, "false": False}.get(text, DTYPES.get(text))
            if not _number(text, axes)
            else evaluate(text, axes)
        )

    x, y, z = (evaluate(text, axes) for text in step.grid)
    a, b, c = (evaluate(text, axes) for text in step.threadgroup)
    return BoundPass(
        step.name, tuple(map(spec, step.inputs)), tuple(map(spec, step.outputs)), step.source, step.header,
        (x, y, z), (a, b, c), tuple((name, value(text)) for name, text in step.template), step.init_value,
    )  # fmt: skip


def _number(text: str, axes: Mapping[str, int]) -> bool:
    return text not in ("true", "false") and text not in DTYPES


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A simulator whose compiled kernels lie in the test run's own folder."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if folder.name.startswith("popen-") else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSEARCH_CACHE", str(shared / "simulator-cache"))
        yield Runner(SimulatorDevice(load_profile("apple-m3-max"), workers=2))


@pytest.fixture
def random() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(7)
