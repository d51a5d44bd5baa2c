"""The inputs that a program is checked on: random ones for every workload, and ones chosen to expose a mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from search.evaluation.originals import OriginalFault, run_original
from search.evaluation.settled import is_settled
from search.kernels.dtypes import Array
from search.kernels.expressions import evaluate
from search.kernels.program import ArraySpec
from search.problems.definition import Problem, ProblemError, Tensor, Workload

RANDOM = "random"

Shape = tuple[int, ...]
Fill = Callable[[np.random.Generator, Shape, float], Array]

_FIRST_SCALE = 128.0
_NARROW_SCALE = 4.0  # where rounded inputs leave no way to find out how much is settled
_ORIGINAL_DRAWS = 3  # each runs the original
_INTEGERS = 100
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Case:
    """One check: a workload, what kind of inputs, the inputs (storage dtype, read-only) and the right outputs.

    ``compared`` says of an output which elements there is a right answer for; all of one that it doesn't name.
    """

    workload: Workload
    kind: str
    inputs: Mapping[str, Array]
    want: Mapping[str, Array]
    compared: Mapping[str, Array] = field(default_factory=dict)


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
    kernel is refused for rounding that a right one can't avoid. Where the reference is a CUDA original, what it leaves
    unwritten isn't compared. Raises `ProblemError` when the problem's reference fails.
    """
    if problem.original is not None:
        return _case_of_original(problem, workload, kind, seed)

    def reference(exact: Mapping[str, Array]) -> dict[str, Array]:
        return run_reference(problem, workload, exact)

    scale = _FIRST_SCALE
    while True:
        rng = np.random.default_rng([seed, *workload.name.encode(), *kind.encode()])
        inputs = fill_inputs(problem, workload, kind, rng, scale)
        exact = _exact(problem, workload, inputs)
        want = reference(exact)
        if kind not in _SCALED or scale <= 1 or is_settled(problem, workload, exact, want, rng, reference):
            return Case(workload, kind, inputs, want)
        scale /= 2


def _case_of_original(problem: Problem, workload: Workload, kind: str, seed: int) -> Case:
    """Return the case with the outputs of the CUDA original, which rounds and overflows itself.

    The magnitude of an adversarial kind is halved until the original stays finite, and nearby inputs give nearby
    outputs: where it isn't right itself, it says nothing about others. Infinities and NaN that stay are not compared.
    Inputs that the original can't take at all are replaced by random ones.
    """
    scale = _first_scale(problem, workload)
    try:
        while True:
            case, finite = _original_at(problem, workload, kind, seed, scale)
            if kind not in _SCALED or scale <= 1 or (finite and _original_is_settled(problem, case, seed)):
                return case
            scale /= 2
    except OriginalFault:
        if kind == RANDOM:
            raise
        return _case_of_original(problem, workload, RANDOM, seed + 1)


def _first_scale(problem: Problem, workload: Workload) -> float:
    """Return the largest magnitude to try; inputs of 16 bits can't be moved by less than they are rounded."""
    specs = problem.arrays(workload)
    narrow = any(specs[tensor.name].dtype.name in ("float16", "bfloat16") for tensor in problem.inputs)
    return _NARROW_SCALE if narrow else _FIRST_SCALE


def _original_at(problem: Problem, workload: Workload, kind: str, seed: int, scale: float) -> tuple[Case, bool]:
    """Return the case at one magnitude, and whether all that the original writes is finite."""
    rng = np.random.default_rng([seed, *workload.name.encode(), *kind.encode()])
    inputs = fill_inputs(problem, workload, kind, rng, scale)
    found = run_original(problem, workload, _exact(problem, workload, inputs))
    usable = {name: np.isfinite(value) for name, value in found.values.items()}
    finite = all((usable[name] | ~found.written[name]).all() for name in usable)
    compared = dict(found.written)
    if kind != RANDOM:
        compared = {name: found.written[name] & usable[name] for name in usable}
    return Case(workload, kind, inputs, found.values, compared), finite


def _original_is_settled(problem: Problem, case: Case, seed: int) -> bool:
    def outputs(exact: Mapping[str, Array]) -> Mapping[str, Array]:
        return compared(run_original(problem, case.workload, exact).values)

    def compared(values: Mapping[str, Array]) -> Mapping[str, Array]:
        return {name: np.where(case.compared[name], value, 0.0) for name, value in values.items()}

    exact, rng = _exact(problem, case.workload, case.inputs), np.random.default_rng(seed)
    return is_settled(problem, case.workload, exact, compared(case.want), rng, outputs, draws=_ORIGINAL_DRAWS)


def _exact(problem: Problem, workload: Workload, inputs: Mapping[str, Array]) -> dict[str, Array]:
    arrays = problem.arrays(workload)
    return {name: arrays[name].dtype.decode(array) for name, array in inputs.items()}


def fill_inputs(
    problem: Problem, workload: Workload, kind: str, rng: np.random.Generator, scale: float = _FIRST_SCALE
) -> dict[str, Array]:
    """Return the inputs of ``workload`` in storage dtype, read-only; scalars as the workload has them."""
    arrays = problem.arrays(workload)
    inputs = {}
    for tensor in problem.inputs:
        spec = arrays[tensor.name]
        values = _values(workload, spec, kind, rng, scale, _below(problem, workload, tensor))
        array = spec.dtype.encode(_signed(values, tensor.sign))
        array.flags.writeable = False
        inputs[tensor.name] = array
    return inputs


def _below(problem: Problem, workload: Workload, tensor: Tensor) -> int:
    """Return the number that every value of an integer input is below."""
    return evaluate(tensor.below, problem.bind_axes(workload)) if tensor.below else _INTEGERS


def _signed(values: Array, sign: str) -> Array:
    """Return ``values`` with the sign that the input has, if it has one."""
    if not sign:
        return values
    return -np.abs(values) if sign == "negative" else np.abs(values)


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
        values = _values(workload, block, RANDOM, rng, _FIRST_SCALE, _below(problem, workload, tensor))
        inputs[tensor.name] = np.resize(spec.dtype.encode(_signed(values, tensor.sign)), spec.shape)
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
