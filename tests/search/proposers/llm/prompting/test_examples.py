"""The examples in the prompts are replies that are accepted: a model that copies their form can't go wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.judge import evaluate
from search.kernels.program import bind
from search.kernels.text import program_from_text, program_to_text
from search.problems.definition import Problem, Tensor, Tolerance, Workload
from search.proposers.llm.program_replies import read_program
from search.proposers.llm.prompt_parts import PROMPTS, template
from search.proposers.llm.prompting import REPLIES
from search.proposers.llm.replies import read_initialize, read_propose, read_redirect, read_refine
from search.proposers.llm.reply_schema import schema_of
from search.proposers.llm.reply_text import blocks_in

READERS = {
    "initialize": read_initialize,
    "propose": read_propose,
    "redirect": read_redirect,
    "refine": read_refine,
    "form": read_program,
}


def examples(name: str, language: str) -> list[str]:
    return [block.text for block in blocks_in(template(name).template)[0] if block.language == language]


@pytest.mark.parametrize("name", READERS)
def test_every_example_reads_and_names_every_key(name: str):
    found = examples(name, "json")
    assert found
    for example in found:
        assert READERS[name](f"Here it is:\n```json\n{example}\n```") == READERS[name](example)
        assert_complete(json.loads(example), schema_of(REPLIES["write" if name == "form" else name]))


def assert_complete(value: Any, schema: Mapping[str, Any]) -> None:
    if "properties" in schema:
        assert list(value) == schema["required"]
        for key, inner in schema["properties"].items():
            assert_complete(value[key], inner)
    elif "items" in schema:
        for entry in value:
            assert_complete(entry, schema["items"])


def test_both_forms_of_a_program_are_the_same_program():
    (as_json,), (as_metal,) = examples("form", "json"), examples("form", "metal")
    text = f"Comment: One thread an element; nothing to share.\n```metal\n{as_metal}\n```"
    assert read_program(as_json) == read_program(text)
    assert program_to_text(read_program(text).program) == f"{as_metal}\n"


def test_the_example_of_a_program_is_correct(tmp_path):
    program = program_from_text((PROMPTS / "row_sums.metal").read_text(encoding="utf-8"))
    (tmp_path / "reference.py").write_text(
        "def reference(x, axes):\n    return {'y': x.sum(axis=1)}\n", encoding="utf-8"
    )
    problem = Problem(
        "row_sums",
        "Row sums",
        "",
        tmp_path,
        {"rows": None, "n": None},
        (Tensor("x", ("rows", "n"), "T"),),
        (Tensor("y", ("rows",), "T"),),
        {"float32": Tolerance(1e-5, 1e-5)},
        "rows * n * sizeof_T",
        "rows * n",
        (
            Workload("tail", "check", {"rows": 5, "n": 77}, {"T": "float32"}),
            Workload("timed", "bench", {"rows": 256, "n": 1024}, {"T": "float32"}),
        ),
        (),
        "reference.py:reference",
    )
    workload = problem.workloads[0]
    bound = bind(program, problem.arrays(workload), ("y",), problem.bind_axes(workload), workload.dtypes)
    assert bound.passes[0].grid == (32, 5, 1)
    profile = load_profile("apple-m3-max")
    device = SimulatorDevice(profile)
    try:
        found = evaluate(program, problem, device, profile)
    finally:
        device.close()
    assert found.passed, found.failure
