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


BLOCK_SUM = """\
#include <cub/cub.cuh>
__global__ void norm(const float* x /* [n, 64] */, float* y /* [n, 64] */, int n) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float sum;
  const int i = blockIdx.x * 64 + threadIdx.x;
  float most = Reduce(storage).Reduce(x[i], cub::Max());
  if (threadIdx.x == 0) sum = most;
  __syncthreads();
  float total = Reduce(storage).Sum(expf(x[i] - sum));
  __syncthreads();
  if (threadIdx.x == 0) sum = total;
  __syncthreads();
  y[i] = sum;
}
void run(const float* x, float* y, int n) { norm<<<n, 64>>>(x, y, n); }
"""


def test_a_reduction_that_other_threads_use_is_a_difference() -> None:
    assert [trial.proves for trial in prove(both_of(BLOCK_SUM), PROFILE, [{"n": 1}, {"n": 3}])] == [True, True]
    (trial,) = prove(both_of(BLOCK_SUM.replace("y[i] = sum;", "y[i] = total;")), PROFILE, [{"n": 3}])
    assert "y" in trial.difference


def test_storage_that_is_used_again_too_early_is_told_of_the_original() -> None:
    early = BLOCK_SUM.replace("if (threadIdx.x == 0) sum = most;\n  __syncthreads();", "if (i < 0) sum = most;")
    (trial,) = prove(both_of(early), PROFILE, [{"n": 2}])
    assert "race" in {report.stage for report in trial.original}


MASKED = """\
__global__ void put(const float* x, const int* mask, const long long* slots, float* y, int n, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (slots[i] < 0) return;
  y[slots[i]] = mask[i] == 7 ? 0.f : x[i];
}
void run(const float* x, const int* mask /* [n] */, const long long* slots /* [n] < rows */,
         float* y /* [rows] */, int n, int rows) {
  put<<<(n + 63) / 64, 64>>>(x, mask, slots, y, n, rows);
}
"""


def test_what_a_kernel_compares_elements_with_is_among_the_inputs() -> None:
    both = both_of(MASKED)
    _, given, _ = draw_inputs(both.plan, both.text, {"n": 400, "rows": 1000}, seed=1)
    assert 50 < (given["mask"] == 7).sum() < 250
    assert 50 < (given["slots"] == -1).sum() < 250, "a slot below 0 is left out, so it is tried"
    assert 0 <= given["slots"].max() < 1000, "and no bound on the others"


def test_indices_that_must_differ_are_drawn_so_and_the_race_is_told() -> None:
    (trial,) = prove(both_of(MASKED), PROFILE, [{"n": 64, "rows": 64}])
    assert trial.proves
    assert trial.compared == 64
    (race,) = trial.original
    assert not race.certain
    assert race.message.startswith("for some inputs: data race on y")


def test_results_that_say_nothing_are_no_proof() -> None:
    source = """\
__global__ void flat(const float* x, float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = FILL; z[i] = x[i] * 0.f; }
}
void run(const float* x, float* y, float* z, int n) { flat<<<(n + 63) / 64, 64>>>(x, y, z, n); }
"""
    (trial,) = prove(both_of(source.replace("FILL", "sqrtf(-1.f - x[i] * x[i])")), PROFILE, [{"n": 64}])
    assert (trial.compared, trial.flat) == (64, (("z", 0.0),)), "numbers that are none aren't counted"
    nothing = source.replace("FILL", "sqrtf(-1.f - x[i] * x[i])").replace("x[i] * 0.f", "sqrtf(-2.f - x[i] * x[i])")
    (trial,) = prove(both_of(nothing), PROFILE, [{"n": 64}])
    assert not trial.proves
    assert "nothing of what the original computes here is defined" in trial.skipped
