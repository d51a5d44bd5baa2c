"""The problems' CUDA references compute the problems, and what the simulator's CUDA does without is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from search.devices.base import KernelFault
from search.kernels.cuda_program import bind_launches
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import read_launches

CORPUS = Path(__file__).parents[3] / "corpus" / "cuda"
REFUSED = {
    "cp_async_pipeline.cu": "inline PTX",
    "dynamic_parallelism.cu": "launches kernels",
    "grid_sync.cu": "can't wait for each other",
    "mma_tensor_core.cu": "inline PTX",
    "texture_bilinear.cu": "textures",
}
"""What the simulator does without, and a word of what it says."""


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
