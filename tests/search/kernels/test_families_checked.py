"""The catalogue's kernels in checked mode: no alarm, whatever the order of threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.families import FAMILIES
from search.kernels.families.base import Family, Refused, Room
from search.kernels.program import bind
from search.problems.definition import Workload, load_problem

ROOM = Room(({"D": 128, "sizeof_T": 4},), 32 * 1024)
PROBLEMS = {"attention": "attention_prefill", "softmax": "softmax"}
WORKLOADS = {
    "attention": Workload(
        "L 67", "check", {"B": 1, "H": 2, "L": 67, "D": 64, "causal": 1}, {"T": "float16"}, {"scale": 0.15}
    ),
    "softmax": Workload("37 x 1025", "check", {"rows": 37, "n": 1025}, {"T": "float32"}),
}


@lru_cache(maxsize=1)
def simulator() -> SimulatorDevice:
    return SimulatorDevice(load_profile("apple-m3-max"))


def compositions(how_many: int, seed: int) -> Iterator[object]:
    """Legal paths drawn at random, long enough to meet each other."""
    draw = random.Random(seed)
    for family in FAMILIES.values():
        for _ in range(how_many):
            plan, path = family.start, []
            for key in draw.choices(sorted(family.transformations), k=24):
                try:
                    plan = family.apply(plan, key, ROOM)
                    path.append(key)
                except Refused:
                    continue
            yield pytest.param(family, plan, id=f"{family.name}: {' '.join(path)}")


def assert_silent(family: Family[Any], plan: Any) -> None:
    problem, work = load_problem(PROBLEMS[family.name]), WORKLOADS[family.name]
    arrays, generator = problem.arrays(work), np.random.default_rng(3)
    inputs = {
        tensor.name: arrays[tensor.name].dtype.encode(
            generator.standard_normal(arrays[tensor.name].shape)
            if tensor.shape
            else np.asarray(work.scalars[tensor.name])
        )
        for tensor in problem.inputs
    }
    results = tuple(tensor.name for tensor in problem.outputs)
    bound = bind(family.write(plan), arrays, results, problem.bind_axes(work), work.dtypes)
    for seed in (0, 1):
        checked = simulator().check(bound, inputs, time_limit=30, seed=seed)
        assert checked.reports == ()
        assert checked.complete


@pytest.mark.parametrize(("family", "plan"), compositions(6, seed=3))
def test_the_catalogues_kernels_raise_no_alarm(family: Family[Any], plan: Any) -> None:
    assert_silent(family, plan)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "plan"), compositions(40, seed=4))
def test_many_more_of_the_catalogues_kernels_raise_no_alarm(family: Family[Any], plan: Any) -> None:
    assert_silent(family, plan)
