"""Puts a run together from its settings: problem, hardware profile, hints, proposer and evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from profiles.hardware import load_profile
from search.config import RunConfig
from search.engine import Engine, EngineError
from search.evaluation.client import EvaluatorProcess
from search.problems.definition import Problem, load_problem
from search.tree import Tree

if TYPE_CHECKING:
    from search.proposers.base import Proposer


def _catalogue() -> Proposer:
    from search.proposers.catalogue import CatalogueProposer

    return CatalogueProposer()


_PROPOSERS: Mapping[str, Callable[[], Proposer]] = {"catalogue": _catalogue}


def proposer_names() -> list[str]:
    """Return the names that ``RunConfig.proposer`` can have."""
    return sorted(_PROPOSERS)


async def open_run(config: RunConfig, *, tree: Tree | None = None) -> Engine:
    """Return the engine of a new run, or of one that goes on from ``tree``; nothing runs before its `run`.

    Raises `ProblemError`, `ProfileError` or `EngineError` (unknown proposer) when ``config`` names what isn't there.
    """
    if config.proposer not in _PROPOSERS:
        raise EngineError(f"unknown proposer '{config.proposer}': there is {', '.join(proposer_names())}")
    problem = load_problem(config.problem)
    profile = load_profile(config.profile)
    return Engine(
        config,
        problem,
        profile,
        _PROPOSERS[config.proposer](),
        EvaluatorProcess(config.problem, config.device, config.profile),
        hints=cuda_hints(problem),
        tree=tree,
    )


def cuda_hints(problem: Problem) -> dict[str, str]:
    """Return the patterns that the problem's CUDA references use, each with the first place that shows it."""
    from search.briefing import reference_inventories

    hints: dict[str, str] = {}
    for inventory in reference_inventories(problem):
        for pattern, place in inventory.hints().items():
            hints.setdefault(pattern, place)
    return hints
