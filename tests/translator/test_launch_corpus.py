"""Launch plans of the CUDA corpus, against what its authors say of each file: extents, bounds, results, checks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from search.kernels.expressions import evaluate
from translator.cuda_source import parse_cuda
from translator.launch_plan import Role
from translator.launches import read_launches

CORPUS = Path(__file__).parent.parent / "corpus" / "cuda"
CASES = tomllib.loads((CORPUS / "expected.toml").read_text(encoding="utf-8"))["case"]

# What a plan can't hold, and the array or parameter that it therefore asks about.
ASKS = {"texture_bilinear.cu": ["image"]}


def plan_of(case):
    return read_launches(parse_cuda((CORPUS / case["file"]).read_text(encoding="utf-8"), case["file"]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_plan_says_what_the_author_of_the_source_says(case):
    plan = plan_of(case)
    arrays = {array.name: array for array in plan.arrays}
    assert plan.function == case["launcher"]
    assert [question.about for question in plan.questions] == ASKS.get(case["file"], [])
    for sizes in case["sizes"]:
        for array, extent in case.get("arrays", {}).items():
            assert evaluate(arrays[array].extent, sizes) == evaluate(extent, sizes), (
                array,
                arrays[array].extent,
                sizes,
            )
        for array, below in case.get("below", {}).items():
            assert evaluate(arrays[array].below, sizes) == evaluate(below, sizes), (array, arrays[array].below, sizes)
        for kind, text, other in plan.requires:
            found, wanted = evaluate(text, sizes), evaluate(other, sizes)
            held = {"multiple": not found % wanted, "most": found <= wanted, "least": found >= wanted}
            assert held.get(kind, found == wanted), (kind, text, other, sizes)
    results = {array.name for array in plan.arrays if array.role in (Role.OUTPUT, Role.INOUT)}
    assert set(case["results"]) <= results
    for scalar, given in case.get("scalars", {}).items():
        assert next(found.value for found in plan.scalars if found.name == scalar) in ("", repr(float(given)))
