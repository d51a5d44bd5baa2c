"""The program that a person begins with when they edit an option themselves."""

from __future__ import annotations

from contextlib import suppress

from search.kernels.program import Program
from search.proposers.base import Proposer, ProposerError, Situation
from search.tree import TreeError


async def draft(situation: Situation, proposer: Proposer, option: str) -> Program:
    """Return the program of ``option``: as written, else as the proposer would, else its parent's.

    Raises `TreeError` when there is none of these.
    """
    tree = situation.tree
    node = tree[option]
    if node.program:
        return tree.program(node.program)
    above = tree.options.get(node.parent)
    if above is None or not above.program:
        raise TreeError(f"'{node.title}' has no program yet, and neither has the option above it")
    with suppress(ProposerError):
        return await proposer.write(situation, option)
    return tree.program(above.program)
