"""Whether a translation computes what the CUDA original computes: both run on the simulator, on the same fresh inputs.

The original runs watched, so that its own races and bad indices show: these are finds about the original, and a size at
which it has one proves nothing. What it leaves unwritten is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from profiles.hardware import HardwareProfile
from search.devices.base import CheckReport, KernelFault
from search.devices.simulator.cuda_device import CudaSimulator
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.correctness import Mismatch
from search.evaluation.originals import unwritten
from search.kernels.cuda_program import CudaProgram, bind_launches
from search.kernels.dtypes import Array
from search.kernels.expressions import evaluate
from search.kernels.program import ArraySpec, Program, ProgramError, bind
from search.kernels.translated import arrays_of, program_of
from translator.launch_plan import LaunchPlan, Role, ScalarPlan
from translator.translation import NamedArray, Translation

SECONDS = 60.0
"""The most that one run of one kernel sequence may take."""

SAME: Mapping[str, float] = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""How far two evaluations of the same arithmetic may differ, relative to an element and to the root mean square of its
array: fused differently, or by other approximations of the fast functions. Integers must be equal."""

_INTEGERS = 100
_GIVEN = (Role.INPUT, Role.INOUT)
_REAL = ("float", "bfloat")
_MET = 0.4
"""How many of the integers that are compared with numbers of the source are drawn from these numbers."""

_NARROW = ("int8", "uint8", "int16", "uint16")
"""Integers of few bits, that are always drawn from all that they can be, so that signs and packed digits show."""

WIDE_SECONDS = 10.0
"""The most that an original may take with integers from all that their type has, which may be counts of loops."""


@dataclass(frozen=True)
class Drawing:
    """How integers are drawn. ``wide``: those of which nothing is known from all that their type has. ``met``: some
    from what the kernels compare them with, else a mask would hardly ever mask. ``distinct``: no index twice.
    """

    wide: bool = False
    met: bool = True
    distinct: bool = False


_WIDE, _PLAIN, _DISTINCT = Drawing(wide=True), Drawing(met=False), Drawing(met=False, distinct=True)


@dataclass(frozen=True)
class Trial:
    """One launch size: ``original`` and ``translated`` are what watching the two found, ``difference`` says what of the
    results is not the same ("" if nothing), ``compared`` counts the elements that are.

    ``skipped`` says why the original did not run at this size ("" if it did). ``flat`` has the results of which every
    element came out as one number, with that number: they say little.
    """

    axes: Mapping[str, int]
    original: tuple[CheckReport, ...] = ()
    translated: tuple[CheckReport, ...] = ()
    difference: str = ""
    compared: int = 0
    skipped: str = ""
    flat: tuple[tuple[str, float], ...] = ()

    @property
    def proves(self) -> bool:
        """Whether both ran well here and agree."""
        return not self.skipped and not self.faults and not self.difference and self.compared > 0

    @property
    def faults(self) -> tuple[CheckReport, ...]:
        """What is certainly wrong with either."""
        return tuple(report for report in (*self.original, *self.translated) if report.certain)


@dataclass(frozen=True)
class Both:
    """An original and its translation, ready to run at any size. ``text`` is the original's device code."""

    plan: LaunchPlan
    text: str
    translation: Translation

    @property
    def program(self) -> Program:
        """The translation as devices run it."""
        return program_of(self.translation)


def prove(
    both: Both, profile: HardwareProfile, sizes: Iterable[Mapping[str, int]], *, seed: int = 0
) -> Iterator[Trial]:
    """Run both at each of ``sizes`` and compare; yields a trial as each is done.

    Raises `KernelFault` (stages ``compile``, ``lint``) when either does not compile.
    """
    # One worker: atomics of several blocks then come in one order, so that floating-point sums can be compared.
    devices = (CudaSimulator(workers=1), SimulatorDevice(profile, workers=1))
    wide = True
    for number, axes in enumerate(sizes):
        trial = _trial(both, *devices, axes, seed + number, _WIDE) if wide and number % 2 else None
        if trial is not None and _unfit(trial):
            wide, trial = False, None  # they are counts, or indices
        yield trial or _fitting(both, *devices, axes, seed + number)


def _unfit(trial: Trial) -> bool:
    return bool(trial.skipped) or any(report.certain for report in trial.original)


def _fitting(
    both: Both, original_on: CudaSimulator, device: SimulatorDevice, axes: Mapping[str, int], seed: int
) -> Trial:
    """Run both with integers that the original takes, where any do: without odd ones, without the same one twice."""
    first = trial = _trial(both, original_on, device, axes, seed)
    integers = [entry for entry in both.plan.arrays if entry.role in _GIVEN and not entry.dtype.startswith(_REAL)]
    if _unfit(trial) and any(entry.met for entry in integers):
        trial = _trial(both, original_on, device, axes, seed, _PLAIN)
    if _unfit(trial) and any(entry.below for entry in integers):
        trial = _trial(both, original_on, device, axes, seed, _DISTINCT)
    if trial is first or _unfit(trial):
        return first
    told = tuple(
        replace(report, certain=False, message=f"for some inputs: {report.message}")
        for report in first.original
        if report.certain
    )
    return replace(trial, original=(*told, *trial.original))


def _trial(
    both: Both,
    original_on: CudaSimulator,
    device: SimulatorDevice,
    axes: Mapping[str, int],
    seed: int,
    drawing: Drawing | None = None,
) -> Trial:
    drawing = drawing or Drawing()
    try:
        original, given, scalars = draw_inputs(both.plan, both.text, axes, seed, drawing)
    except ProgramError as error:
        return Trial(axes, skipped=str(error))
    watched = original_on.check(original, given, time_limit=WIDE_SECONDS if drawing.wide else SECONDS)
    reports = tuple(watched.reports)
    if any(report.certain for report in reports):
        return Trial(axes, reports)
    if not watched.complete:
        return Trial(axes, reports, skipped="watching the original took too long")
    arrays = arrays_of(both.translation, axes)
    bound = bind(both.program, arrays, tuple(array.name for array in both.translation.outputs), axes, {})
    inputs = {
        array.name: _input(array, arrays[array.name], original, given, scalars) for array in both.translation.inputs
    }
    try:
        checked = device.check(bound, inputs, time_limit=SECONDS)
    except KernelFault as fault:
        if short := _in_constant_memory(both, original, fault):
            return Trial(axes, skipped=f"'{short}' has fewer than 8 elements here: MLX passes it in constant memory")
        raise
    difference, compared, flat = "", 0, []
    for array in both.translation.outputs:
        if array.name in checked.outputs:
            want = watched.outputs[array.origin]
            found, target = _compare(array.name, checked.outputs[array.name], want, arrays[array.name])
            difference, compared = difference or found, compared + target.size
            if target.size > 1 and (target == target[0]).all():
                flat.append((array.name, float(target[0])))
    undefined = "" if compared or difference else "nothing of what the original computes here is defined"
    return Trial(axes, reports, tuple(checked.reports), difference, compared, undefined, tuple(flat))


def _in_constant_memory(both: Both, original: CudaProgram, fault: KernelFault) -> str:
    """Return the input that is too short for what a note of the translation asks, where a fault is about that."""
    sizes = {array.spec.name: array.spec.shape[0] for array in original.arrays}
    noted = (match[1] for note in both.translation.notes if (match := re.match(r"'(\w+)' must have at least 8", note)))
    return next((name for name in noted if sizes.get(name, 8) < 8 and "constant memory" in fault.message), "")


def draw_inputs(
    plan: LaunchPlan, text: str, axes: Mapping[str, int], seed: int, drawing: Drawing | None = None
) -> tuple[CudaProgram, dict[str, Array], dict[str, float]]:
    """Return the original bound to ``axes``, a fresh value for each array that it is given, and its scalars by name.

    Raises `ProgramError` for sizes that the host would not launch.
    """
    rng = np.random.default_rng(seed)
    scalars = {entry.name: _scalar(entry, rng) for entry in plan.scalars}
    original = bind_launches(plan, text, axes, scalars)
    drawn = {spec.name: _random(plan, spec, axes, rng, drawing or Drawing()) for spec in original.given}
    return original, drawn, scalars


def _scalar(entry: ScalarPlan, rng: np.random.Generator) -> float:
    return float(entry.value.rstrip("fFlL")) if entry.value else float(rng.uniform(0.25, 1.5))


def _random(
    plan: LaunchPlan, spec: ArraySpec, axes: Mapping[str, int], rng: np.random.Generator, drawing: Drawing
) -> Array:
    """Return fresh values in storage dtype; indices stay below what the plan says."""
    if spec.dtype.floating:
        return spec.dtype.encode(rng.standard_normal(spec.shape))
    if spec.dtype.name == "bool":
        return spec.dtype.encode(rng.integers(2, size=spec.shape))
    entry = next(entry for entry in plan.arrays if entry.name == spec.name)
    limits, below = np.iinfo(spec.dtype.name), max(1, evaluate(entry.below, axes)) if entry.below else 0
    if not below and (drawing.wide or spec.dtype.name in _NARROW):
        drawn = rng.integers(limits.min, limits.max, size=spec.shape, endpoint=True, dtype=spec.dtype.name)
    elif drawing.distinct and prod(spec.shape) <= below:
        drawn = rng.permutation(below)[: prod(spec.shape)].reshape(spec.shape)
    else:
        drawn = rng.integers(below or _INTEGERS, size=spec.shape)
    tried = [value for value in entry.met if limits.min <= value <= limits.max and (not below or value < below)]
    if tried and drawing.met:
        drawn = np.where(rng.random(spec.shape) < _MET, rng.choice(tried, spec.shape), drawn)
    return spec.dtype.encode(drawn)


def _input(
    array: NamedArray,
    spec: ArraySpec,
    original: CudaProgram,
    given: Mapping[str, Array],
    scalars: Mapping[str, float],
) -> Array:
    if array.origin in given:
        return given[array.origin].reshape(spec.shape)
    if array.origin in scalars:
        return spec.dtype.encode(np.array(scalars[array.origin]))
    zeroed = next((entry for entry in original.arrays if entry.spec.name == array.origin), None)
    if zeroed is None:
        raise KernelFault("launch", f"the translation reads '{array.name}', which the original is not given")
    return spec.dtype.encode(np.zeros(spec.shape))


def _compare(name: str, got: Array, want: Array, spec: ArraySpec) -> tuple[str, Array]:
    """Return how the two differ ("" if they don't), and the numbers that the original wrote."""
    have, goal = got.reshape(-1), want.reshape(-1)
    written = ~unwritten(goal)
    if have.size != goal.size:
        return f"'{name}' has {have.size} elements, and the original's has {goal.size}", np.zeros(0)
    target = spec.dtype.decode(goal[written]).astype(np.float64)
    result = spec.dtype.decode(have[written]).astype(np.float64)
    mismatch = _mismatch(result, target, np.flatnonzero(written), SAME.get(spec.dtype.name, 0.0))
    return (mismatch.describe(name) if mismatch else ""), target[~np.isnan(target)]


def _mismatch(got: Array, want: Array, indices: Array, share: float) -> Mismatch | None:
    """Return the first of the elements (at ``indices`` of the array) that differ by more than ``share`` allows."""
    finite = want[np.isfinite(want)]
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    with np.errstate(invalid="ignore"):
        allowed = share * (np.abs(want) + scale)
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= allowed)
    if same.all():
        return None
    at = int(np.argmin(same))
    wrong = int((~same).sum())
    return Mismatch((int(indices[at]),), float(got[at]), float(want[at]), float(allowed[at]), wrong, want.size)
