"""The CUDA originals on the simulator against numpy: its reading of CUDA is checked by something that isn't itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from search.devices.simulator.cuda_device import CudaSimulator
from search.kernels.cuda_program import CudaProgram, bind_launches
from search.kernels.dtypes import Array
from search.kernels.expressions import evaluate
from tests.corpus.cuda import references_of_cub, references_of_models, references_of_patterns
from tests.corpus.cuda.reference import REFERENCES
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launch_plan import LaunchPlan
from translator.launches import answered_plan

# Importing a module enters what it holds into the table.
FILES_OF_REFERENCES = (references_of_cub, references_of_models, references_of_patterns)

HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = {
    case["file"].removesuffix(".cu"): case for case in tomllib.loads((HERE / "expected.toml").read_text())["case"]
}
TOLERANCE = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 1e-2}
RETURNS_BEFORE_A_BARRIER = {"early_return"}


def plan_of(case: Mapping[str, Any]) -> tuple[LaunchPlan, str]:
    """Return the plan of a file, what it asks answered from the table, and its device code."""
    source = parse_cuda((HERE / case["file"]).read_text(), case["file"])
    known = {f"extent.{name}": text for name, text in case["arrays"].items()}
    known |= {f"below.{name}": text for name, text in case.get("below", {}).items()}
    answers: dict[str, str] = {}
    while True:
        plan = answered_plan(source, None, answers)
        asked = {key for question in plan.questions for key in re.findall(r"answer (\w+\.\w+)", question.message)}
        if not (new := asked & known.keys() - answers.keys()):
            return plan, device_text(source)
        answers |= {key: known[key] for key in new}


def inputs_of(case: Mapping[str, Any], program: CudaProgram, axes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Return random arrays in storage dtype; indices and counts stay below what the table says."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for spec in program.given:
        if spec.dtype.floating:
            values = rng.standard_normal(spec.shape)
        else:
            below = {**case.get("below", {}), **case.get("draw", {})}.get(spec.name, "100")
            values = rng.integers(0, evaluate(below, axes), spec.shape)
        arrays[spec.name] = spec.dtype.encode(values)
    return arrays


def test_every_file_is_in_the_table_and_has_three_sizes() -> None:
    assert {f"{name}.cu" for name in CASES} == {path.name for path in HERE.glob("*.cu")}
    assert all(len(case["sizes"]) == 3 for case in CASES.values())
    assert {name for name, case in CASES.items() if case["translates"]} == REFERENCES.keys()


@pytest.mark.parametrize("name", REFERENCES)
def test_the_simulator_computes_what_numpy_does(name: str) -> None:
    case = CASES[name]
    plan, text = plan_of(case)
    scalars = case.get("scalars", {})
    for seed, axes in enumerate(case["sizes"]):
        program = bind_launches(plan, text, axes, scalars)
        given = inputs_of(case, program, axes, seed)
        specs = {array.spec.name: array.spec for array in program.arrays}
        values = {
            key: specs[key].dtype.decode(array) if specs[key].dtype.name == "bfloat16" else array
            for key, array in given.items()
        }
        want = REFERENCES[name](values, {**axes, **scalars})
        checked = CudaSimulator().check(program, given, time_limit=60.0, seed=seed)
        found = {report.stage for report in checked.reports}
        assert found <= ({"divergence"} if name in RETURNS_BEFORE_A_BARRIER else set()), checked.reports
        assert want.keys() == set(case["results"])
        plain = CudaSimulator().run(program, given, time_limit=60.0)
        assert plain.overruns == ()
        for key, goal in want.items():
            tolerance = TOLERANCE.get(specs[key].dtype.name, 0.0)
            for outputs in (checked.outputs, plain.outputs):
                got = specs[key].dtype.decode(outputs[key]).ravel()
                np.testing.assert_allclose(got, goal, rtol=tolerance, atol=tolerance, err_msg=f"{key} at {axes}")
