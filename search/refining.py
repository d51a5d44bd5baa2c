"""What a proposer changes in the tree after a result: checked against its rules, then done whole or refused whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from search import growth
from search.events import PERSON, Event
from search.option import OPEN, Option
from search.proposers.base import Judgement, Refinement
from search.rules import TreeError, called, check_new, check_rating, may_grow
from search.tree import Tree

MOST_NEW = 3
"""Options that one refinement may bring, those of a split included."""


def refine(tree: Tree, emit: Callable[..., Any], refinement: Refinement, by: str) -> int:
    """Do what ``refinement`` by ``by`` says; returns how many options are new.

    An option that is there already isn't added again. Raises `TreeError`, and then nothing has changed.
    """
    check(tree, refinement)
    for judgement in refinement.ratings:
        emit(
            "rated",
            option=judgement.option,
            rating=float(judgement.rating),
            confidence=float(judgement.confidence),
            why=judgement.why,
            by=by,
        )
    new = sum(growth.add(tree, emit, parent, [proposal], by) for parent, proposal in refinement.inserts)
    for option, proposals in refinement.splits:
        new += growth.add(tree, emit, tree[option].parent, proposals, by)
        _close(emit, option, f"split into {', '.join(proposal.title for proposal in proposals)}", by)
    for option, why in refinement.closes:
        _close(emit, option, why, by)
    return new


def check(tree: Tree, refinement: Refinement) -> None:
    """Raise `TreeError` unless every part of ``refinement`` keeps to the rules of the tree."""
    added = [proposal for _, proposal in refinement.inserts] + [p for _, split in refinement.splits for p in split]
    if len(added) > MOST_NEW:
        raise TreeError(f"{len(added)} new options; at most {MOST_NEW} are allowed at a time")
    for judgement in refinement.ratings:
        _open(tree, judgement.option)
        check_rating(_as_event("rated", option=judgement.option, **_figures(judgement)))
    for parent, _ in refinement.inserts:
        may_grow(tree, _node(tree, parent))
    for option in _closed(refinement):
        node = _open(tree, option)
        if node.pinned or node.approved_by or node.by == PERSON:
            raise TreeError(f"{called(node)} can't be closed: it was approved or pinned, or is a person's own")
    for proposal in added:
        check_new(_as_event("option_added", **growth.fields("new", "", proposal, "")))
    touched = [*(judgement.option for judgement in refinement.ratings), *_closed(refinement)]
    if twice := {option for option in touched if touched.count(option) > 1}:
        raise TreeError(f"option '{min(twice)}' is changed twice")


def _closed(refinement: Refinement) -> Iterable[str]:
    return [*(option for option, _ in refinement.splits), *(option for option, _ in refinement.closes)]


def _node(tree: Tree, option: str) -> Option:
    if option not in tree.options:
        raise TreeError(f"there is no option '{option}'")
    return tree[option]


def _open(tree: Tree, option: str) -> Option:
    node = _node(tree, option)
    if node.status not in OPEN or tree.is_pruned(option):
        raise TreeError(f"{called(node)} is {node.status}: only what still waits can be changed")
    if not node.parent:
        raise TreeError("the root can't be changed: everything is built on it")
    return node


def _close(emit: Callable[..., Any], option: str, why: str, by: str) -> None:
    emit("decided", option=option, decision="prune", by=by, policy_choice="", why=why)


def _figures(of: Judgement) -> dict[str, float]:
    return {"rating": float(of.rating), "confidence": float(of.confidence)}


def _as_event(kind: str, **data: Any) -> Event:
    return Event(0, "", kind, data)
