"""The CUDA files of tests/corpus/cuda as they are, launched as their host code does.

What they compute is what their references say, and none has a mistake that is certain.
"""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import numpy as np
import pytest

from search.devices.base import KernelFault
from search.devices.simulator.job import POISON
from search.kernels.cuda_program import bind_launches
from search.kernels.expressions import evaluate
from search.kernels.program import ProgramError
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import read_launches

CORPUS = Path(__file__).parents[3] / "corpus" / "cuda"
CASES = {case["file"]: case for case in tomllib.loads((CORPUS / "expected.toml").read_text())["case"]}
REFUSED = {
    "cp_async_pipeline.cu": "inline PTX",
    "dynamic_parallelism.cu": "launches kernels",
    "grid_sync.cu": "can't wait for each other",
    "mma_tensor_core.cu": "inline PTX",
    "texture_bilinear.cu": "textures",
}
"""What the simulator does without, and a word of what it says."""

RELATIVE = {"float16": 2e-2, "bfloat16": 2e-2}


def references():
    spec = importlib.util.spec_from_file_location("cuda_corpus_references", CORPUS / "references.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.REFERENCES


def contents(spec, plan, case, axes, rng):
    """Fresh values in storage dtype; indices stay below what the case or the plan says."""
    if spec.dtype.floating:
        return spec.dtype.encode(rng.standard_normal(spec.shape))
    planned = next(entry.below for entry in plan.arrays if entry.name == spec.name)
    below = case.get("below", {}).get(spec.name) or planned or 100
    return spec.dtype.encode(rng.integers(max(1, evaluate(below, axes)), size=spec.shape))


def is_written(array):
    """Where an array has other bits than unwritten memory; of bytes that is never known."""
    if array.itemsize == 1:
        return np.ones(array.size, bool)
    return array.view(np.uint16).reshape(array.size, -1)[:, 0] != POISON


@pytest.mark.parametrize("file", sorted(set(CASES) - set(REFUSED)))
def test_a_file_of_the_corpus_computes_what_its_reference_does(cuda, file):
    case = CASES[file]
    source = parse_cuda((CORPUS / file).read_text(), file)
    plan, reference = read_launches(source), references().get(file.removesuffix(".cu"))
    axes = case["sizes"][-1]
    try:
        program = bind_launches(plan, device_text(source), axes, case.get("scalars", {}))
    except ProgramError as error:
        pytest.skip(f"its launch can't be told from the source alone: {error}")
    rng = np.random.default_rng(7)
    given = {spec.name: contents(spec, plan, case, axes, rng) for spec in program.given}
    ran = cuda.device.run(program, given, time_limit=60)
    checked = cuda.device.check(program, given, time_limit=60, seed=5)
    assert ran.overruns == () and checked.complete
    assert [report.message for report in checked.reports if report.certain] == []
    if reference is None:
        return
    begin = {
        spec.name: spec.dtype.decode(given.get(spec.name, np.zeros(spec.shape, spec.dtype.storage)))
        for spec in (array.spec for array in program.arrays)
    }
    specs = {array.spec.name: array.spec for array in program.arrays}
    for name, wanted in reference(begin, {**axes, **case.get("scalars", {})}).items():
        dtype = specs[name].dtype
        tolerance = RELATIVE.get(dtype.name, 2e-4)
        for outputs in (ran.outputs, checked.outputs):
            written = is_written(outputs[name])
            got = dtype.decode(outputs[name]).astype(np.float64)
            assert written.any()
            np.testing.assert_allclose(got[written], wanted[written], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("file", REFUSED)
def test_what_the_simulator_does_without_is_refused_by_name(cuda, file):
    source = parse_cuda((CORPUS / file).read_text(), file)
    first = source.kernels[0]
    launch = cuda.launch(first.name, 1, 32, *[0] * len(first.parameters))
    with pytest.raises(KernelFault) as caught:
        cuda.device.compile(cuda.program(device_text(source), launch))
    assert REFUSED[file] in caught.value.message


PROBLEMS = Path(__file__).parents[4] / "search" / "problems"


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def causal_attention(q, k, v):
    scores = 0.125 * q @ k.swapaxes(1, 2)
    hidden = np.triu(np.ones(scores.shape[1:], bool), 1)
    return softmax(np.where(hidden, -np.inf, scores)) @ v


@pytest.mark.parametrize(
    ("file", "axes", "shape", "reference"),
    [
        *(
            (f"softmax/cuda/{name}.cu", {"rows": 5, "n": 128}, (5, 128), softmax)
            for name in ("warp_per_row", "block_tree", "online")
        ),
        *(
            (f"attention_prefill/cuda/{name}.cu", {"heads": 2, "length": 70}, (2, 70, 64), causal_attention)
            for name in ("naive", "flash")
        ),
    ],
)
def test_the_cuda_references_of_the_problems_compute_them(cuda, random, file, axes, shape, reference):
    source = parse_cuda((PROBLEMS / file).read_text(), file)
    plan = read_launches(source)
    program = bind_launches(plan, device_text(source), axes, {entry.name: 0.125 for entry in plan.scalars})
    given = {spec.name: spec.dtype.encode(random.standard_normal(spec.shape)) for spec in program.given}
    begin = [spec.dtype.decode(given[spec.name]).reshape(shape) for spec in program.given]
    checked = cuda.device.check(program, given, time_limit=60, seed=2)
    assert checked.reports == ()
    (output,) = cuda.device.run(program, given, time_limit=60).outputs.values()
    np.testing.assert_allclose(output.astype(np.float64).reshape(shape), reference(*begin), rtol=5e-3, atol=1e-3)
