"""Every transformation, alone and composed, writes kernels that are right: run on the simulator against float64."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.families import FAMILIES
from search.kernels.families.base import Family, Refused, Room
from search.kernels.program import Program, bind
from search.problems.definition import Problem, Workload, load_problem

ROOM = Room(({"D": 128, "sizeof_T": 4},), 32 * 1024)
PROBLEMS = {"attention": "attention_prefill", "softmax": "softmax"}

# Sizes that share one compiled kernel: below, at and above each grid that a plan may have.
SOFTMAX_SHAPES = [(1, 1), (1, 7), (3, 31), (37, 12), (9, 33), (2, 1025), (1, 9001)]
LENGTHS = [1, 5, 33, 67]

# What is fixed when a kernel is compiled; each plan is compiled for the next of these.
SOFTMAX_KINDS = [{"T": "float32"}, {"T": "float16"}, {"T": "bfloat16"}]
ATTENTION_KINDS = [
    {"T": "float16", "D": 64, "causal": 1},
    {"T": "float32", "D": 128, "causal": 0},
    {"T": "float32", "D": 128, "causal": 1},
    {"T": "bfloat16", "D": 64, "causal": 0},
]


@lru_cache(maxsize=1)
def simulator() -> SimulatorDevice:
    return SimulatorDevice(load_profile("apple-m3-max"))


def workloads(family: str, kind: Mapping[str, Any]) -> Iterator[Workload]:
    dtypes = {"T": kind["T"]}
    if family == "softmax":
        for rows, n in SOFTMAX_SHAPES:
            yield Workload(f"{rows} x {n}", "check", {"rows": rows, "n": n}, dtypes)
    else:
        for length in LENGTHS:
            axes = {"B": 1, "H": 2, "L": length, "D": kind["D"], "causal": kind["causal"]}
            yield Workload(f"L {length}", "check", axes, dtypes, {"scale": 0.15})


def worst_error(problem: Problem, program: Program, workload: Workload) -> float:
    """The largest error of ``program`` on ``workload`` in units of what is tolerated; infinite when not finite."""
    generator = np.random.default_rng(len(workload.name))
    arrays, axes = problem.arrays(workload), problem.bind_axes(workload)
    inputs = {}
    for tensor in problem.inputs:
        drawn = (
            3 * generator.standard_normal(arrays[tensor.name].shape) if tensor.shape else workload.scalars[tensor.name]
        )
        inputs[tensor.name] = arrays[tensor.name].dtype.encode(np.asarray(drawn))
    exact = {name: arrays[name].dtype.decode(stored) for name, stored in inputs.items()}
    (output,) = problem.outputs
    want = problem.reference(axes=axes, **exact)[output.name]
    result = simulator().run(bind(program, arrays, (output.name,), axes, workload.dtypes), inputs, time_limit=30)
    assert not result.overruns
    got = arrays[output.name].dtype.decode(result.outputs[output.name])
    tolerance = problem.tolerance[workload.dtypes["T"]]
    error = np.abs(got - want) / (tolerance.atol + tolerance.rtol * np.abs(want).max(axis=-1, keepdims=True))
    return float(np.nan_to_num(error, nan=np.inf).max())


def assert_right(family: Family[Any], plan: Any, kind: Mapping[str, Any]) -> None:
    problem, program = load_problem(PROBLEMS[family.name]), family.write(plan)
    errors = {work.name: worst_error(problem, program, work) for work in workloads(family.name, kind)}
    assert max(errors.values()) <= 1.0, f"{errors}\n{program.passes[0].source}"


def kinds(family: str) -> Iterator[Mapping[str, Any]]:
    return cycle(SOFTMAX_KINDS if family == "softmax" else ATTENTION_KINDS)


def single_steps() -> Iterator[object]:
    """The naive plan, and each transformation as early as it can be had."""
    for family in FAMILIES.values():
        kind = kinds(family.name)
        yield pytest.param(family, family.start, next(kind), id=f"{family.name}: naive")
        for key in family.transformations:
            plan = family.start
            for step in family.way_to(plan, key, ROOM):
                plan = family.apply(plan, step, ROOM)
            yield pytest.param(family, plan, next(kind), id=f"{family.name}: {key}")


def compositions(how_many: int, seed: int) -> Iterator[object]:
    """Legal paths drawn at random, long enough to meet each other."""
    draw = random.Random(seed)
    for family in FAMILIES.values():
        kind = kinds(family.name)
        for _ in range(how_many):
            plan, path = family.start, []
            for key in draw.choices(sorted(family.transformations), k=24):
                try:
                    plan = family.apply(plan, key, ROOM)
                    path.append(key)
                except Refused:
                    continue
            yield pytest.param(family, plan, next(kind), id=f"{family.name}: {' '.join(path)}")


@pytest.mark.parametrize(("family", "plan", "kind"), single_steps())
def test_each_transformation_alone_is_right_on_sizes_with_tails(
    family: Family[Any], plan: Any, kind: Mapping[str, Any]
) -> None:
    assert_right(family, plan, kind)


@pytest.mark.parametrize(("family", "plan", "kind"), compositions(10, seed=1))
def test_compositions_are_right_on_sizes_with_tails(family: Family[Any], plan: Any, kind: Mapping[str, Any]) -> None:
    assert_right(family, plan, kind)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "plan", "kind"), compositions(60, seed=2))
def test_many_more_compositions_are_right(family: Family[Any], plan: Any, kind: Mapping[str, Any]) -> None:
    assert_right(family, plan, kind)


def test_logits_of_minus_infinity_get_no_weight() -> None:
    """Masked logits are common; a running maximum must not turn them into NaN."""
    problem, family = load_problem("softmax"), FAMILIES["softmax"]
    work = Workload("masked", "check", {"rows": 2, "n": 70}, {"T": "float32"})
    x = np.zeros((2, 70), np.float32)
    x[0, :40], x[1, 33:] = -np.inf, -np.inf
    for keys in (["online"], ["row_per_simdgroup", "online", "exp2", "vector_loads"]):
        plan = family.start
        for key in keys:
            plan = family.apply(plan, key, ROOM)
        bound = bind(family.write(plan), problem.arrays(work), ("y",), problem.bind_axes(work), work.dtypes)
        y = simulator().run(bound, {"x": x}, time_limit=30).outputs["y"]
        np.testing.assert_allclose(y[0], np.where(np.arange(70) < 40, 0.0, 1 / 30), rtol=1e-6)
        np.testing.assert_allclose(y[1], np.where(np.arange(70) < 33, 1 / 33, 0.0), rtol=1e-6)


def test_a_kernel_without_its_barrier_is_found_wrong() -> None:
    """The check can fail: lanes that read a tile before it is filled get something else."""
    family = FAMILIES["attention"]
    plan = family.start
    for key in ("row_per_simdgroup", "kv_tiles", "online"):
        plan = family.apply(plan, key, ROOM)
    program = family.write(plan)
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    assert program.passes[0].source.count(barrier) == 2
    broken = replace(
        program, passes=(replace(program.passes[0], source=program.passes[0].source.replace(barrier, "")),)
    )
    problem = load_problem("attention_prefill")
    (*_, longest) = workloads("attention", ATTENTION_KINDS[1])
    assert worst_error(problem, program, longest) <= 1.0
    assert worst_error(problem, broken, longest) > 1.0
