"""The cases of the built-in problems against arithmetic in numpy: single precision passes, what loses precision fails.

No kernel runs here. Sums go term by term, which is the worst that a right kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from search.evaluation.cases import make_case, plan_cases
from search.evaluation.correctness import compare
from search.problems.definition import load_problem

Values = np.ndarray
Sum = Callable[[Values], Values]

LOG2E = np.float32(1.4426950408889634)


def single(terms: Values) -> Values:
    """Sum along the last axis in float32, term by term."""
    return np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1]


def half(terms: Values) -> Values:
    """Sum along the last axis in float16, term by term."""
    return np.add.accumulate(terms.astype(np.float16), axis=-1, dtype=np.float16)[..., -1].astype(np.float32)


def lanes_in_half(terms: Values) -> Values:
    """Sum as 32 lanes do that keep float16 partial sums and add them up in float32."""
    padding = [(0, 0)] * (terms.ndim - 1) + [(0, -terms.shape[-1] % 32)]
    by_lane = np.pad(terms, padding).reshape(*terms.shape[:-1], -1, 32)
    return half(np.swapaxes(by_lane, -1, -2)).sum(axis=-1)


def softmax(total: Sum = single, maximum: Callable[[Values], Any] = lambda x: x.max(axis=-1, keepdims=True)) -> Any:
    """Return softmax in float32 with exp2 and a folded scale."""

    def run(axes: Mapping[str, int], x: Values) -> dict[str, Values]:
        scores = x.astype(np.float32) * LOG2E
        weights = np.exp2(scores - maximum(scores))
        return {"y": weights / total(weights)[..., None]}

    return run


def attention(dot: Sum = single, mix: Sum = single) -> Any:
    """Return attention in float32 with exp2, the scale folded into the queries."""

    def run(axes: Mapping[str, int], q: Values, k: Values, v: Values, scale: Values) -> dict[str, Values]:
        q, k, v = (array.astype(np.float32) for array in (q, k, v))
        scores = dot((q * (np.float32(scale) * LOG2E))[..., :, None, :] * k[..., None, :, :])
        if axes["causal"]:
            scores = np.where(np.triu(np.ones(scores.shape[-2:], bool), 1), np.float32(-np.inf), scores)
        weights = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        mixed = mix(np.swapaxes(weights[..., :, :, None] * v[..., None, :, :], -1, -2))
        return {"o": mixed / single(weights)[..., None]}

    return run


def errors(name: str, kernel: Any, seed: int) -> list[float]:
    """Return the error of each case as a multiple of the tolerance, infinite where an element is wrong besides."""
    problem, found = load_problem(name), []
    for workload, kind in plan_cases(problem, seed):
        case, specs = make_case(problem, workload, kind, seed), problem.arrays(workload)
        exact = {key: specs[key].dtype.decode(array) for key, array in case.inputs.items()}
        with np.errstate(all="ignore"):
            results = kernel(problem.bind_axes(workload), **exact)
        for output, want in case.want.items():
            dtype = specs[output].dtype
            compared = compare(dtype.encode(results[output]), want, dtype, problem.tolerance[dtype.name])
            found.append(np.inf if compared.mismatch else compared.error)
    return found


@pytest.mark.parametrize(("name", "kernel"), [("softmax", softmax()), ("attention_prefill", attention())])
@pytest.mark.parametrize("seed", range(4))
def test_single_precision_is_never_refused(name: str, kernel: Any, seed: int):
    assert max(errors(name, kernel, seed)) <= 1


MISTAKES = {
    "softmax, half-precision sum": ("softmax", softmax(half)),
    "softmax, half-precision sum in lanes": ("softmax", softmax(lanes_in_half)),
    "softmax without its maximum": ("softmax", softmax(maximum=lambda x: 0)),
    "softmax with a maximum that starts at 0": (
        "softmax",
        softmax(maximum=lambda x: np.maximum(x.max(axis=-1, keepdims=True), 0)),
    ),
    "attention, half-precision scores": ("attention_prefill", attention(dot=half)),
    "attention, half-precision scores in lanes": ("attention_prefill", attention(dot=lanes_in_half)),
    "attention, half-precision output": ("attention_prefill", attention(mix=half)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("seed", range(4))
def test_lost_precision_and_missing_range_are_always_caught(mistake: str, seed: int):
    name, kernel = MISTAKES[mistake]
    assert max(errors(name, kernel, seed)) > 1
