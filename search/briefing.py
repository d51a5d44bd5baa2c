"""The briefing of a problem: its facts and its CUDA references, as `translator.briefing` takes them."""

from __future__ import annotations

from profiles.hardware import HardwareProfile
from profiles.source_gpu import load_source_gpu
from search.problems.definition import Problem
from translator.briefing import Level, Sections, briefing, sections
from translator.cuda_source import parse_cuda
from translator.inventory import Inventory, take_inventory
from translator.problem_facts import ArrayFacts, ProblemFacts, WorkFacts

SOURCE_GPU = "h100"
"""What CUDA references are taken to have been written for."""


def problem_briefing(problem: Problem, profile: HardwareProfile, level: Level = "full") -> str:
    """Return what someone who writes a Metal kernel for ``problem`` on the profile's GPU is told."""
    return briefing(problem_facts(problem), profile, load_source_gpu(SOURCE_GPU), reference_inventories(problem), level)


def problem_sections(problem: Problem, profile: HardwareProfile) -> Sections:
    """Return the same in sections, to be put together otherwise."""
    return sections(problem_facts(problem), profile, load_source_gpu(SOURCE_GPU), reference_inventories(problem))


def reference_inventories(problem: Problem) -> list[Inventory]:
    """Return the inventory of each CUDA reference of ``problem``."""
    texts = ((path.read_text(encoding="utf-8", errors="replace"), path.name) for path in problem.cuda)
    return [take_inventory(parse_cuda(text, name)) for text, name in texts]


def problem_facts(problem: Problem) -> ProblemFacts:
    """Return what a briefing says of ``problem``; hidden workloads stay hidden."""
    arrays = tuple(
        ArrayFacts(tensor.name, tensor.shape, tensor.dtype, tensor in problem.outputs, tensor.description)
        for tensor in (*problem.inputs, *problem.outputs)
    )
    axes = tuple(name if value is None else f"{name} = {value}" for name, value in problem.axes.items())
    tolerance = tuple((dtype, allowed.atol, allowed.rtol) for dtype, allowed in problem.tolerance.items())
    timed = (workload for workload in problem.of_role("bench") if not workload.hidden)
    work = tuple(WorkFacts(workload.name, *problem.cost(workload)) for workload in timed)
    return ProblemFacts(problem.title, problem.description, arrays, axes, tolerance, work)
