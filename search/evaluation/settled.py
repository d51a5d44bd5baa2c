"""Whether the right answer to some inputs hangs on how float32 sums are rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from search.evaluation.correctness import allowed_difference, as_held
from search.kernels.dtypes import Array
from search.problems.definition import Problem, Workload

Reference = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""Outputs by name from exact inputs by name."""

_SUM_ERROR = 2.0**-20
_DRAWS = 8


def is_settled(
    problem: Problem,
    workload: Workload,
    exact: Mapping[str, Array],
    want: Mapping[str, Array],
    rng: np.random.Generator,
    reference: Reference,
    *,
    draws: int = _DRAWS,
) -> bool:
    """Whether the rounding of float32 sums could move the answer by at most half the tolerance, in each of some draws.

    A sum of some hundred terms is off by about 16 roundings of 2^-24. Scaling each half of a row by 1 + 2^-20 or
    1 - 2^-20 has the same effect on a sum along the row, and on a difference between an element and such a sum.
    """
    specs = problem.arrays(workload)
    for _ in range(draws):
        nudged = dict(exact)
        for name, array in exact.items():
            if array.ndim and array.dtype.kind == "f":
                half = 2 * np.arange(array.shape[-1]) // array.shape[-1]
                signs = rng.choice((-1.0, 1.0), (*array.shape[:-1], 2))
                nudged[name] = array * (1 + _SUM_ERROR * signs)[..., half]
        moved = reference(nudged)
        for tensor in problem.outputs:
            dtype = specs[tensor.name].dtype
            right, found = (as_held(outputs[tensor.name], dtype) for outputs in (want, moved))
            half_allowed = 0.5 * allowed_difference(right, problem.tolerance[dtype.name])
            with np.errstate(invalid="ignore"):
                near = (found == right) | (np.abs(found - right) <= half_allowed)
            if not near.all():
                return False
    return True
