"""That original and translation agree is shown on inputs in which a difference would show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.evaluation import proof
from search.evaluation.proof import Both, draw_inputs, prove
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launch_plan import Role
from translator.launches import read_launches
from translator.metal_writer import write_metal

PROFILE = load_profile("apple-m3-max")


def both_of(text: str) -> Both:
    source = parse_cuda(text, "k.cu")
    plan = read_launches(source)
    assert not plan.questions
    return Both(plan, device_text(source), write_metal(source, plan))


DIGITS = """\
__global__ void top(const int* packed, int* digit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) digit[i] = (unsigned)packed[i] >> 28;
}
void run(const int* packed, int* digit, int n) { top<<<(n + 63) / 64, 64>>>(packed, digit, n); }
"""


def test_integers_of_few_bits_have_all_their_values() -> None:
    both = both_of(DIGITS.replace("int* packed", "signed char* packed"))
    _, given, _ = draw_inputs(both.plan, both.text, {"n": 4000}, seed=1)
    assert (given["packed"].min(), given["packed"].max()) == (-128, 127)


def test_a_digit_or_a_sign_that_gets_lost_is_found_in_the_upper_bits() -> None:
    both = both_of(DIGITS)
    assert [trial.proves for trial in prove(both, PROFILE, [{"n": 64}, {"n": 65}])] == [True, True]
    step = both.translation.passes[0]
    assert "(unsigned)packed[i] >> 28" in step.source
    wrong = replace(step, source=step.source.replace("(unsigned)packed", "packed"))
    spoilt = replace(both, translation=replace(both.translation, passes=(wrong,)))
    assert [bool(trial.difference) for trial in prove(spoilt, PROFILE, [{"n": 64}, {"n": 65}])] == [False, True]


def test_integers_that_are_counts_of_loops_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "WIDE_SECONDS", 0.5)
    both = both_of("""\
__global__ void sums(const unsigned* counts, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0.f;
  if (i < n) { for (unsigned j = 0; j < counts[i]; ++j) s += 0.5f * y[n + i]; y[i] = s; }
}
void run(const unsigned* counts, float* y /* [2, n] */, int n) { sums<<<(n + 63) / 64, 64>>>(counts, y, n); }
""")
    trials = list(prove(both, PROFILE, [{"n": 64}, {"n": 65}, {"n": 66}]))
    assert [trial.proves for trial in trials] == [True, True, True]
    assert np.all([trial.compared > 0 for trial in trials])


def test_a_fault_that_ends_the_original_is_told_instead_of_the_time_it_took() -> None:
    both = both_of(DIGITS)
    given = tuple(replace(array, role=Role.INPUT) for array in both.plan.arrays)
    (trial,) = prove(replace(both, plan=replace(both.plan, arrays=given)), PROFILE, [{"n": 64}])
    assert trial.skipped == ""
    assert "writes to the input 'digit'" in trial.original[0].message
