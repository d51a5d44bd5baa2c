"""What a result teaches about ratings and confidences: of the option itself, and of open options like it. Pure.

A speedup m over the parent is worth the rating 5 + 5 log2 m: 5 is no gain, 10 twice as fast, 0 half as fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from search.calibration import Calibration
from search.option import Option
from search.tree import Tree

KNOWN = 0.9
AT_MOST = 16
LEAST_CHANGE = 0.05


@dataclass(frozen=True)
class Lesson:
    """A new rating and confidence for one option, and why, in words."""

    option: str
    rating: float
    confidence: float
    why: str


def lessons(tree: Tree, option: str, calibration: Calibration) -> list[Lesson]:
    """Return what the result of ``option`` (which has passed or failed) teaches; ``calibration`` is from before it.

    The option itself takes its rating from what was found. Open options of the frontier with the same action move by
    half as much as the result surprised, those beside it by a quarter. At most `AT_MOST` others move, best rated first.
    What a person wrote, or what could not be written at all, says nothing about the proposer's other options.
    """
    node = tree[option]
    if not node.parent:
        return []
    if node.passing is None:
        return [_failed(node), *_others(tree, node, -1.0, "failed")]
    found = tree.speedup_over_parent(option)
    if found <= 0:
        return []
    expected = calibration.calibrated(node.predicted, node.by, node.action)
    surprise = max(-1.0, min(1.0, math.log2(found / expected)))
    told = f"gave {found:.2f}× where {expected:.2f}× was expected"
    return [_passed(node, found), *_others(tree, node, surprise, told)]


def _passed(node: Option, found: float) -> Lesson:
    rating = _within(5 + 5 * math.log2(found))
    predicted = f"predicted {node.predicted:.2f}×, " if node.predicted > 0 else ""
    return Lesson(node.id, rating, max(node.confidence, KNOWN), f"{predicted}found {found:.2f}× over its parent")


def _failed(node: Option) -> Lesson:
    attempts = f"{node.attempts} attempt{'s' if node.attempts != 1 else ''}"
    return Lesson(node.id, round(node.rating / 3, 1), max(node.confidence, KNOWN), f"failed after {attempts}")


def _others(tree: Tree, node: Option, surprise: float, told: str) -> list[Lesson]:
    if not node.foretold or not node.tried:
        return []
    moved = []
    near = sorted(tree.frontier(), key=lambda other: (-other.rating, other.added))
    for other in near:
        if node.action and other.action == node.action:
            share, relation = 0.5, "the same change elsewhere"
        elif other.parent == node.parent:
            share, relation = 0.25, "beside it"
        else:
            continue
        rating = _within(other.rating + 2 * share * surprise)
        # A result as expected makes the judgement of its neighbours surer, one that surprises less sure.
        confidence = round(max(0.0, min(1.0, other.confidence + share * (0.2 - 0.4 * abs(surprise)))), 2)
        if max(abs(rating - other.rating), 10 * abs(confidence - other.confidence)) >= LEAST_CHANGE:
            moved.append(Lesson(other.id, rating, confidence, f"{relation}, '{node.title}' {told}"))
    return moved[:AT_MOST]


def _within(value: float) -> float:
    return round(max(0.0, min(10.0, value)), 1)
