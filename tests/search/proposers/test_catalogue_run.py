"""A whole run with the catalogue on the simulator, as autopilot makes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profiles.hardware import load_profile
from profiles.roofline import least_seconds
from search.assembly import cuda_hints
from search.config import RunConfig
from search.devices.simulator.device import SimulatorDevice
from search.engine import Engine
from search.evaluation.cases import RANDOM, fill_inputs
from search.evaluation.record import PASSED, Evaluation, WorkloadTime
from search.kernels.program import Program, bind
from search.problems.definition import load_problem
from search.proposers.catalogue import CatalogueProposer

PROFILE = load_profile("apple-m3-max")


class Modelled:
    """An evaluator that only models the time, in this process."""

    def __init__(self, problem: str, bench: str) -> None:
        self.problem, self.device = load_problem(problem), SimulatorDevice(PROFILE)
        (self.workload,) = [work for work in self.problem.of_role("bench") if work.name.startswith(bench)]

    async def evaluate(self, program: Program, progress: Callable[[str], None]) -> Evaluation:
        problem, work = self.problem, self.workload
        results = tuple(tensor.name for tensor in problem.outputs)
        bound = bind(program, problem.arrays(work), results, problem.bind_axes(work), work.dtypes)
        found = self.device.time(bound, fill_inputs(problem, work, RANDOM, np.random.default_rng(1)), time_limit=120)
        least = least_seconds(*problem.cost(work), work.dtypes["T"], PROFILE)
        time = WorkloadTime(
            work.name, found.seconds, found.low, found.high, least, 0.0, found.bound_by, found.passes[0].terms
        )
        return Evaluation(program.sha256, PASSED, "simulator", found.kind, found.on, times=(time,))

    async def close(self) -> None:
        """Nothing to release."""


@pytest.mark.slow
async def test_twelve_evaluations_of_attention_reach_a_clearly_faster_kernel() -> None:
    evaluator = Modelled("attention_prefill", "image tokens")
    engine = Engine(
        RunConfig("attention_prefill", budget=12),
        evaluator.problem,
        PROFILE,
        CatalogueProposer(),
        evaluator,
        hints=cuda_hints(evaluator.problem),
    )
    engine.set_autopilot(True)
    await engine.run()
    best = engine.tree.best()
    assert engine.tree.evaluations == 12
    assert best is not None
    assert engine.tree.speedup(best.id) > 5.5
    assert any(option.action == "matrix_products" for option in engine.tree.path(best.id))
    # And nobody pretends: not everything that was tried was worth it.
    assert any(engine.tree.speedup_over_parent(option.id) < 1 for option in engine.tree.passed() if option.parent)
