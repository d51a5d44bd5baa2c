"""Sources of unusual shape: each computes in Metal what it computes in CUDA, or is refused for the right reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.hardware import load_profile
from search.evaluation.proof import Both, prove
from search.evaluation.trial_sizes import trial_sizes
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import read_launches
from translator.metal_writer import write_metal

HERE = Path(__file__).parent
REFUSED = {
    "divergent_barrier": "a barrier in a branch that threads take differently",
    "last_block": "make it two launches",
    "volatile_warp": "lanes that run in step",
}
NOT_ALWAYS_DEFINED = {"warp_groups"}
"""Block sizes that aren't made of whole warps leave the original undefined."""


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.cu")))
def test_an_odd_source_is_translated_rightly_or_refused(name: str) -> None:
    source = parse_cuda((HERE / f"{name}.cu").read_text(), f"{name}.cu")
    plan = read_launches(source)
    assert [question.message for question in plan.questions] == []
    made = write_metal(source, plan)
    if name in REFUSED:
        assert made.passes == ()
        assert REFUSED[name] in str(made.refusals[0])
        return
    assert [str(refusal) for refusal in made.refusals] == []
    both = Both(plan, device_text(source), made)
    for trial in prove(both, load_profile("apple-m3-max"), trial_sizes(plan, 3)):
        assert trial.proves or (trial.skipped and name in NOT_ALWAYS_DEFINED), trial
