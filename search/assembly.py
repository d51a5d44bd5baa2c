"""Puts a run together from its settings: problem, hardware profile, hints, proposer and evaluator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from profiles.hardware import load_profile
from profiles.models import endpoint_names, load_endpoint
from search.config import RunConfig
from search.engine import Engine, EngineError
from search.evaluation.client import EvaluatorProcess
from search.problems.definition import Problem, load_problem
from search.proposers.base import Connected, Proposer, ProposerUnavailable
from search.tree import Tree


def _catalogue(config: RunConfig, memory: Path | None) -> Proposer:
    from search.proposers.catalogue import CatalogueProposer

    return CatalogueProposer()


def _llm(config: RunConfig, memory: Path | None) -> Proposer:
    """Return the proposer that asks models; raise `EngineError` when none can be asked with these settings."""
    from search.proposers.llm.asking import Role
    from search.proposers.llm.client import EndpointClient, Surroundings
    from search.proposers.llm.conversation import Conversation, price
    from search.proposers.llm.prompt_parts import CONTEXTS
    from search.proposers.llm.proposer import LlmProposer

    context = next((level for level in CONTEXTS if level == config.context), None)
    if context is None:
        raise EngineError(f"unknown context '{config.context}': there is {', '.join(CONTEXTS)}")
    if not config.endpoint:
        raise EngineError(f"the proposer llm needs an endpoint: there is {', '.join(endpoint_names())}")
    endpoint = load_endpoint(config.endpoint)
    models = {Role.SELECTOR: config.selector, Role.GENERATOR: config.generator}

    def connect(on_status: Callable[[str], None]) -> EndpointClient:
        return EndpointClient(endpoint, models, os.environ, Surroundings(on_status, memory))

    conversation = Conversation(endpoint, models, connect)
    unpriced = [model for role in Role if price(endpoint, model := conversation.model(role), 0, 0) is None]
    if config.usd and unpriced:
        raise EngineError(
            f"no price is known for {' or '.join(dict.fromkeys(unpriced)) or 'its model'} at {endpoint.title}, so the "
            f"limit of ${config.usd:g} can't be kept: add the price to a profile of your own, or limit tokens instead"
        )
    return LlmProposer(conversation, context)


_PROPOSERS: Mapping[str, Callable[[RunConfig, Path | None], Proposer]] = {"catalogue": _catalogue, "llm": _llm}


def proposer_names() -> list[str]:
    """Return the names that ``RunConfig.proposer`` can have."""
    return sorted(_PROPOSERS)


async def ready_proposer(config: RunConfig, memory: Path | None = None) -> Proposer:
    """Return the proposer of ``config``; raise `EngineError` when it is unknown, or can't be asked at all."""
    if config.proposer not in _PROPOSERS:
        raise EngineError(f"unknown proposer '{config.proposer}': there is {', '.join(proposer_names())}")
    # The client's library takes a second to import.
    proposer = await asyncio.to_thread(_PROPOSERS[config.proposer], config, memory)
    if isinstance(proposer, Connected):
        try:
            await proposer.ready()
        except ProposerUnavailable as error:
            await proposer.close()
            raise EngineError(str(error)) from error
    return proposer


async def open_run(config: RunConfig, *, tree: Tree | None = None, memory: Path | None = None) -> Engine:
    """Return the engine of a new run, or of one that goes on from ``tree``; nothing runs before its `run`.

    What a model endpoint turns out to take is kept in the file ``memory``. Raises `ProblemError`, `ProfileError`, or
    `EngineError` when ``config`` names what isn't there or its proposer can't be asked.
    """
    problem = load_problem(config.problem)
    profile = load_profile(config.profile)
    return Engine(
        config,
        problem,
        profile,
        await ready_proposer(config, memory),
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
