"""A problem as data: axes, arrays, tolerances, costs and workloads, read from a folder's ``problem.toml``.

The names of the fields follow FlashInfer-Bench's Definition and Workload. The reference is a Python function, or the
CUDA original (``reference = "original.toml"``, see `search.problems.original`). ``root`` names the Metal file that a
search starts from.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from search.kernels.dtypes import DTYPES, DType
from search.kernels.expressions import ExpressionError, evaluate, names
from search.kernels.program import ArraySpec, resolve_dtype
from search.problems.original import Original, read_original
from search.problems.unfinished import open_question

BUILT_IN = Path(__file__).parent


class ProblemError(ValueError):
    """A problem that isn't there or does not read; the message says which file and what is wrong with it."""


@dataclass(frozen=True)
class Tensor:
    """An input or output: its shape as axis expressions, and a dtype or dtype variable. A scalar has shape ``()``.

    ``below`` (an axis expression) says of an integer input that its values lie in 0 .. below - 1, as indices do;
    ``sign`` (``negative`` or ``positive``) says of a floating input that all its values have that sign, or are zero.
    """

    name: str
    shape: tuple[str, ...]
    dtype: str
    description: str = ""
    below: str = ""
    sign: str = ""


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the float64 reference: ``atol + rtol * scale``, scale the row's largest value."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class Workload:
    """Named values for every variable axis and dtype variable, and the values of scalar inputs.

    ``role`` is ``check`` (correctness; ``hidden`` ones are never shown to a proposer) or ``bench`` (timing).
    """

    name: str
    role: str
    axes: Mapping[str, int]
    dtypes: Mapping[str, str]
    scalars: Mapping[str, float] = field(default_factory=dict)
    hidden: bool = False


@dataclass(frozen=True)
class Problem:
    """What a kernel must compute, apart from any way to compute it.

    ``original`` is the reference where that is a CUDA source. ``baseline_at`` is "" when nothing in MLX computes the
    same, ``root`` None when a search starts from a family's own kernel.
    """

    name: str
    title: str
    description: str
    folder: Path
    axes: Mapping[str, int | None]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tolerance: Mapping[str, Tolerance]
    bytes: str
    flops: str
    workloads: tuple[Workload, ...]
    cuda: tuple[Path, ...]
    reference_at: str
    baseline_at: str = ""
    family: str = ""
    original: Original | None = None
    root: Path | None = None

    def bind_axes(self, workload: Workload) -> dict[str, int]:
        """Return every axis with its value under ``workload``, dtype sizes included as ``sizeof_<variable>``."""
        bound = {name: value for name, value in self.axes.items() if value is not None}
        bound.update(workload.axes)
        for variable, dtype in workload.dtypes.items():
            bound[f"sizeof_{variable}"] = DTYPES[dtype].itemsize
        return bound

    def arrays(self, workload: Workload) -> dict[str, ArraySpec]:
        """Return the shape and dtype of every input and output under ``workload``."""
        axes = self.bind_axes(workload)
        return {
            tensor.name: ArraySpec(
                tensor.name,
                tuple(evaluate(extent, axes) for extent in tensor.shape),
                resolve_dtype(tensor.dtype, workload.dtypes),
            )
            for tensor in (*self.inputs, *self.outputs)
        }

    def cost(self, workload: Workload) -> tuple[int, int]:
        """Return the bytes that must move at least and the FLOPs of one run of ``workload``."""
        axes = self.bind_axes(workload)
        return evaluate(self.bytes, axes), evaluate(self.flops, axes)

    def of_role(self, role: str) -> tuple[Workload, ...]:
        """Return the workloads whose role is ``check`` or ``bench``."""
        return tuple(workload for workload in self.workloads if workload.role == role)

    @cached_property
    def reference(self) -> Callable[..., Any]:
        """The float64 numpy function: inputs by keyword, plus ``axes``; returns a dict of outputs."""
        return self._function(self.reference_at)

    @cached_property
    def baseline(self) -> Callable[..., Any]:
        """The MLX call a user would make today: inputs by keyword as ``mx.array``, plus ``axes``; returns a list."""
        return self._function(self.baseline_at)

    def _function(self, at: str) -> Callable[..., Any]:
        file, _, name = at.partition(":")
        path = self.folder / file
        spec = importlib.util.spec_from_file_location(f"ksearch_problem_{self.name}_{path.stem}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise ProblemError(f"{self.folder / 'problem.toml'}: there is no file '{file}'")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise ProblemError(f"{path}: there is no function '{name}'")
        return function  # type: ignore[no-any-return]


def built_in_names() -> list[str]:
    """Return the names of the problems that come with the package."""
    return sorted(path.parent.name for path in BUILT_IN.glob("*/problem.toml"))


def load_problem(name_or_folder: str | Path) -> Problem:
    """Load a built-in problem by name, or a folder with a ``problem.toml``; raise `ProblemError` with what is wrong."""
    text = str(name_or_folder)
    folder = BUILT_IN / text
    if text not in built_in_names():
        folder = Path(text).expanduser()
        if folder.name == "problem.toml":
            folder = folder.parent
        if not (folder / "problem.toml").is_file():
            close = difflib.get_close_matches(text, built_in_names(), n=1, cutoff=0.4)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(built_in_names())}"
            raise ProblemError(f"unknown problem '{text}': {hint} (or give a folder with a problem.toml)")
    path = folder / "problem.toml"
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProblemError(f"{path}: {error}") from error
    if question := open_question(text):
        raise ProblemError(f"{path}:{question.line}: still to be answered: {question.text}")
    if "answers" in data and "reference" not in data:
        raise ProblemError(f"{path}: everything is answered: write the problem with: ksearch-tui new {folder}")
    try:
        problem = _problem(folder.resolve(), data)
        _validate(problem)
    except KeyError as error:
        raise ProblemError(f"{path}: {error.args[0]} is missing") from error
    except (TypeError, ValueError, AttributeError, OSError) as error:
        raise ProblemError(f"{path}: {error}") from error
    return problem


def _problem(folder: Path, data: Mapping[str, Any]) -> Problem:
    shared_dtypes = dict(data.get("dtypes", {}))
    reference = data["reference"]
    original = read_original(folder / reference, data["axes"]) if reference.endswith(".toml") else None
    return Problem(
        name=data["name"],
        title=data["title"],
        description=data.get("description", "").strip(),
        folder=folder,
        axes={name: axis.get("value") for name, axis in data["axes"].items()},
        inputs=tuple(_tensor(entry) for entry in data.get("inputs", [])),
        outputs=tuple(_tensor(entry) for entry in data["outputs"]),
        tolerance={dtype: Tolerance(t["atol"], t["rtol"]) for dtype, t in data["tolerance"].items()},
        bytes=str(data["bytes"]),
        flops=str(data["flops"]),
        workloads=tuple(
            Workload(
                entry["name"],
                entry["role"],
                entry["axes"],
                {**shared_dtypes, **entry.get("dtypes", {})},
                entry.get("scalars", {}),
                entry.get("hidden", False),
            )
            for entry in data["workloads"]
        ),
        cuda=tuple(folder / name for name in data.get("cuda", [])),
        reference_at=reference,
        baseline_at=data.get("baseline", ""),
        family=data.get("family", ""),
        original=original,
        root=folder / data["root"] if "root" in data else None,
    )


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    return Tensor(
        entry["name"],
        tuple(str(e) for e in entry["shape"]),
        entry["dtype"],
        entry.get("description", ""),
        str(entry.get("below", "")),
        entry.get("sign", ""),
    )


def _validate(problem: Problem) -> None:
    """Check that every expression binds under every workload, so that a mistake shows at load and not in a run."""
    known = set(problem.axes)
    for tensor in (*problem.inputs, *problem.outputs):
        for extent in (*tensor.shape, *([tensor.below] if tensor.below else [])):
            if unknown := names(extent) - known:
                raise ProblemError(f"'{tensor.name}' has the unknown axis '{min(unknown)}'")
    for workload in problem.workloads:
        where = f"workload '{workload.name}'"
        if workload.role not in ("check", "bench"):
            raise ProblemError(f"{where}: role is '{workload.role}'; it must be 'check' or 'bench'")
        needed = {name for name, value in problem.axes.items() if value is None}
        if missing := needed - set(workload.axes):
            raise ProblemError(f"{where}: no value for axis '{min(missing)}'")
        if extra := set(workload.axes) - known:
            raise ProblemError(f"{where}: unknown axis '{min(extra)}'")
        try:
            specs = problem.arrays(workload)
            problem.cost(workload)
        except ExpressionError as error:
            raise ProblemError(f"{where}: {error}") from error
        for tensor in problem.outputs:
            if specs[tensor.name].dtype.name not in problem.tolerance:
                raise ProblemError(f"{where}: no tolerance for {specs[tensor.name].dtype.name}")
        for tensor in problem.inputs:
            if not tensor.shape and tensor.name not in workload.scalars:
                raise ProblemError(f"{where}: no value for the scalar input '{tensor.name}'")
            if tensor.below:
                _check_below(tensor, specs[tensor.name].dtype, problem.bind_axes(workload), where)
            if tensor.sign:
                _check_sign(tensor, specs[tensor.name].dtype, where)
    if not problem.of_role("check") or not problem.of_role("bench"):
        raise ProblemError("there must be at least one workload of each role, 'check' and 'bench'")
    for path in problem.cuda:
        if not path.is_file():
            raise ProblemError(f"there is no CUDA reference '{path.name}'")
    if problem.root is not None and not problem.root.is_file():
        raise ProblemError(f"there is no root program '{problem.root.name}'")
    if problem.original is not None:
        _check_original(problem, problem.original)


def _check_original(problem: Problem, original: Original) -> None:
    """Check that every array of the problem has its counterpart, of as many elements, in the CUDA original."""
    counterparts = {tensor.name: original.inputs.get(tensor.name, "") for tensor in problem.inputs}
    counterparts |= {tensor.name: original.outputs.get(tensor.name, "") for tensor in problem.outputs}
    for name, counterpart in counterparts.items():
        if not counterpart:
            raise ProblemError(f"'{name}': {problem.reference_at} names nothing of the original for it")
    plans = {array.name: array for array in original.plan.arrays}
    for workload in problem.workloads:
        axes = problem.bind_axes(workload)
        for name, spec in problem.arrays(workload).items():
            plan = plans.get(counterparts[name])
            if plan is not None and (elements := evaluate(plan.extent, axes)) != prod(spec.shape):
                raise ProblemError(
                    f"workload '{workload.name}': '{name}' has {prod(spec.shape)} elements, and '{plan.name}' of the "
                    f"original has {elements}"
                )


def _check_below(tensor: Tensor, dtype: DType, axes: Mapping[str, int], where: str) -> None:
    if dtype.floating:
        raise ProblemError(f"{where}: '{tensor.name}' is not of integers, so it can't have 'below'")
    most = 2 if dtype.name == "bool" else 1 << (8 * dtype.itemsize - (not dtype.name.startswith("u")))
    if not 1 <= (below := evaluate(tensor.below, axes)) <= most:
        raise ProblemError(f"{where}: '{tensor.name}' is below {below}; for {dtype.name} that must be 1 .. {most}")


def _check_sign(tensor: Tensor, dtype: DType, where: str) -> None:
    if tensor.sign not in ("negative", "positive"):
        raise ProblemError(f"'{tensor.name}': sign is '{tensor.sign}'; it must be 'negative' or 'positive'")
    if not dtype.floating or not tensor.shape:
        raise ProblemError(f"{where}: '{tensor.name}' is no array of floating numbers, so it can't have 'sign'")
