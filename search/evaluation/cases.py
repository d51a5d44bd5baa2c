"""The inputs that a program is checked on: random ones for every workload, and ones chosen to expose a mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from search.evaluation.correctness import allowed_difference
from search.kernels.dtypes import Array
from search.kernels.expressions import evaluate
from search.kernels.program import ArraySpec
from search.problems.definition import Problem, ProblemError, Tensor, Workload

RANDOM = "random"

Shape = tuple[int, ...]
Fill = Callable[[np.random.Generator, Shape, float], Array]

_FIRST_SCALE = 128.0
_SUM_ERROR = 2.0**-20
_DRAWS = 8
_INTEGERS = 100
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Case:
    """One check: a workload, what kind of inputs, the inputs (storage dtype, read-only) and the right outputs."""

    workload: Workload
    kind: str
    inputs: Mapping[str, Array]
    want: Mapping[str, Array]


def _outlier(rng: np.random.Generator, shape: Shape, scale: float) -> Array:
    """Return normal values with one that is ``scale`` in each row: a maximum or a sum that one lane must hand on."""
    values = rng.standard_normal(shape)
    rows = values.reshape(-1, shape[-1])
    rows[np.arange(len(rows)), rng.integers(shape[-1], size=len(rows))] = scale
    return values


# What each kind exposes: an exponential that overflows without the maximum subtracted (large, shifted), a maximum that
# starts at 0 (negative), a sum of like sign kept in half precision (equal, positive), values flushed to zero (tiny),
# a division by a zero sum or an output that is not written (zeros).
ADVERSARIAL: dict[str, Fill] = {
    "large": lambda rng, shape, scale: scale * rng.standard_normal(shape),
    "shifted": lambda rng, shape, scale: scale + rng.standard_normal(shape),
    "negative": lambda rng, shape, scale: -scale - np.abs(rng.standard_normal(shape)),
    "outlier": _outlier,
    "equal": lambda rng, shape, scale: np.full(shape, 0.75),
    "positive": lambda rng, shape, scale: 0.5 + rng.random(shape),
    "tiny": lambda rng, shape, scale: 2.0**-12 * rng.standard_normal(shape),
    "zeros": lambda rng, shape, scale: np.zeros(shape),
}
_SCALED = ("large", "shifted", "negative", "outlier")


def plan_cases(problem: Problem, seed: int) -> list[tuple[Workload, str]]:
    """Return which cases to run: random inputs for every check workload, and each adversarial kind on one of them.

    Kinds with a magnitude meet every dtype, because tight tolerances allow less of it. ``seed`` turns the assignment,
    so that over a run every kind meets every shape. Hidden workloads come last.
    """
    workloads = problem.of_role("check")
    planned = [(workload, RANDOM) for workload in workloads]
    for turn, kind in enumerate(ADVERSARIAL, seed):
        groups: dict[tuple[tuple[str, str], ...], list[Workload]] = {}
        for workload in workloads:
            groups.setdefault(tuple(workload.dtypes.items()) if kind in _SCALED else (), []).append(workload)
        planned += [(group[turn % len(group)], kind) for group in groups.values()]
    return sorted(planned, key=lambda case: case[0].hidden)


def make_case(problem: Problem, workload: Workload, kind: str, seed: int) -> Case:
    """Return the case with its right outputs, computed here, before any candidate has seen the inputs.

    The magnitude of an adversarial kind is halved until the right answer is settled in single precision, so that no
    kernel is refused for rounding that a right one can't avoid.
    Raises `ProblemError` when the problem's reference fails.
    """
    scale = _FIRST_SCALE
    while True:
        rng = np.random.default_rng([seed, *workload.name.encode(), *kind.encode()])
        inputs = fill_inputs(problem, workload, kind, rng, scale)
        exact = {name: problem.arrays(workload)[name].dtype.decode(array) for name, array in inputs.items()}
        want = run_reference(problem, workload, exact)
        if kind not in _SCALED or scale <= 1 or _is_settled(problem, workload, exact, want, rng):
            return Case(workload, kind, inputs, want)
        scale /= 2


def fill_inputs(
    problem: Problem, workload: Workload, kind: str, rng: np.random.Generator, scale: float = _FIRST_SCALE
) -> dict[str, Array]:
    """Return the inputs of ``workload`` in storage dtype, read-only; scalars as the workload has them."""
    arrays = problem.arrays(workload)
    inputs = {}
    for tensor in problem.inputs:
        spec = arrays[tensor.name]
        array = spec.dtype.encode(_values(workload, spec, kind, rng, scale, _below(problem, workload, tensor)))
        array.flags.writeable = False
        inputs[tensor.name] = array
    return inputs


def _below(problem: Problem, workload: Workload, tensor: Tensor) -> int:
    """Return the number that every value of an integer input is below."""
    return evaluate(tensor.below, problem.bind_axes(workload)) if tensor.below else _INTEGERS


def _values(
    workload: Workload, spec: ArraySpec, kind: str, rng: np.random.Generator, scale: float, below: int
) -> Array:
    if not spec.shape:
        return np.array(workload.scalars[spec.name])
    if not spec.dtype.floating:
        return _integers(spec.shape, kind, rng, 2 if spec.dtype.name == "bool" else below)
    if kind == RANDOM:
        return rng.standard_normal(spec.shape, dtype=np.float32)
    return ADVERSARIAL[kind](rng, spec.shape, scale)


def _integers(shape: Shape, kind: str, rng: np.random.Generator, below: int) -> Array:
    """Return random integers, or for some kinds one value everywhere: every index meets the same place then."""
    same = {"zeros": 0, "large": below - 1, "equal": below // 2}
    return np.full(shape, same[kind]) if kind in same else rng.integers(below, size=shape)


def bench_inputs(problem: Problem, workload: Workload, seed: int) -> dict[str, Array]:
    """Return random inputs for timing: a block of normal values, repeated, because drawing millions takes seconds."""
    arrays, rng = problem.arrays(workload), np.random.default_rng(seed)
    inputs = {}
    for tensor in problem.inputs:
        spec = arrays[tensor.name]
        block = ArraySpec(spec.name, (min(math.prod(spec.shape), _BLOCK),), spec.dtype) if spec.shape else spec
        values = spec.dtype.encode(
            _values(workload, block, RANDOM, rng, _FIRST_SCALE, _below(problem, workload, tensor))
        )
        inputs[tensor.name] = np.resize(values, spec.shape)
    return inputs


def run_reference(problem: Problem, workload: Workload, exact: Mapping[str, Array]) -> dict[str, Array]:
    """Return the reference's outputs (float64, by name) on copies of ``exact``; raise `ProblemError` when it fails."""
    where = f"{problem.folder / problem.reference_at} on workload '{workload.name}'"
    try:
        results = problem.reference(
            **{name: array.copy() for name, array in exact.items()}, axes=problem.bind_axes(workload)
        )
        outputs = {name: np.asarray(results[name], dtype=np.float64) for name, _ in _outputs(problem, workload)}
    except Exception as error:  # the problem's author's code may raise anything
        raise ProblemError(f"{where}: {type(error).__name__}: {error}") from error
    for name, spec in _outputs(problem, workload):
        if outputs[name].shape != spec.shape:
            raise ProblemError(f"{where}: '{name}' has shape {outputs[name].shape}; problem.toml says {spec.shape}")
    return outputs


def _outputs(problem: Problem, workload: Workload) -> Iterator[tuple[str, ArraySpec]]:
    arrays = problem.arrays(workload)
    return ((tensor.name, arrays[tensor.name]) for tensor in problem.outputs)


def _is_settled(
    problem: Problem,
    workload: Workload,
    exact: Mapping[str, Array],
    want: Mapping[str, Array],
    rng: np.random.Generator,
) -> bool:
    """Whether the rounding of float32 sums could move the answer by at most half the tolerance, in each of some draws.

    A sum of some hundred terms is off by about 16 roundings of 2^-24. Scaling each half of a row by 1 + 2^-20 or
    1 - 2^-20 has the same effect on a sum along the row, and on a difference between an element and such a sum.
    """
    for _ in range(_DRAWS):
        nudged = dict(exact)
        for name, array in exact.items():
            if array.ndim and array.dtype.kind == "f":
                half = 2 * np.arange(array.shape[-1]) // array.shape[-1]
                signs = rng.choice((-1.0, 1.0), (*array.shape[:-1], 2))
                nudged[name] = array * (1 + _SUM_ERROR * signs)[..., half]
        moved = run_reference(problem, workload, nudged)
        for name, spec in _outputs(problem, workload):
            half_allowed = 0.5 * allowed_difference(want[name], problem.tolerance[spec.dtype.name])
            if not (np.abs(moved[name] - want[name]) <= half_allowed).all():
                return False
    return True
