"""Proposals become options of the tree: without doubles, and only where the tree's rules allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from search.option import OPEN, Option
from search.proposers.base import Proposal
from search.tree import Tree, TreeError

Emit = Callable[..., Any]


def add(tree: Tree, emit: Emit, parent: str, proposals: Iterable[Proposal], by: str, origin: int = 0) -> int:
    """Add ``proposals`` by ``by`` under ``parent``; returns how many are new.

    A change that is there already is not added again, whatever became of it. When a person asked for it (``origin`` is
    the seq of their redirect), an open one moves up to the new rating, and a pruned one that never ran is added anew.
    A proposal that breaks the tree's rules is refused whole, with a note.
    """
    new = 0
    for proposal in proposals:
        twin = _twin(tree, parent, proposal)
        if twin is not None and twin.status in OPEN:
            _move_up(emit, twin, proposal, by, origin)
        elif twin is None or (origin and twin.pruned and not twin.settled):
            try:
                emit("option_added", **fields(tree.free_id(), parent, proposal, by, origin))
                new += 1
            except TreeError as refused:
                emit("note", text=f"a proposal was refused: {refused}", level="warning", option=parent)
    return new


def fields(option: str, parent: str, proposal: Proposal, by: str, origin: int = 0) -> dict[str, Any]:
    """Return the fields of the ``option_added`` event for ``proposal``."""
    return {
        "option": option,
        "parent": parent,
        "title": " ".join(proposal.title.split()),
        "why": proposal.why.strip(),
        "action": proposal.action,
        "rating": float(proposal.rating),
        "confidence": float(proposal.confidence),
        "difficulty": proposal.difficulty,
        "predicted": float(proposal.predicted),
        "by": by,
        "origin": origin,
    }


def _twin(tree: Tree, parent: str, proposal: Proposal) -> Option | None:
    """Return the child of ``parent`` that is the same change, the latest if there are several."""
    for child in reversed(tree[parent].children):
        other = tree[child]
        if other.action == proposal.action and (
            proposal.action or other.title.casefold() == " ".join(proposal.title.split()).casefold()
        ):
            return other
    return None


def _move_up(emit: Emit, twin: Option, proposal: Proposal, by: str, origin: int) -> None:
    if origin and proposal.rating > twin.rating:
        emit(
            "rated",
            option=twin.id,
            rating=float(proposal.rating),
            confidence=float(max(twin.confidence, proposal.confidence)),
            why="asked for by a person",
            by=by,
            origin=origin,
        )
