"""Which option to run next, and where to look for more. Pure: a tree and its calibration in, a choice with reasons out.

The order is: what a person pinned; what was begun and not finished; what a person approved, first come first served;
then the best score among the options that are easy enough. One unit of score is one doubling of speed:

    standing   log2 of the parent's speedup over the best so far: how far behind this branch starts (0 or below)
    gain       log2 of the predicted speedup as calibrated, times belief where it is a gain
    promise    belief - 1/2: what the rating says beyond the immediate gain
    exploring  (1 - confidence) times a weight that grows when the run stagnates

where belief = 1/2 + confidence * (rating / 10 - 1/2): a rating that nobody is sure of counts for little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass

from search.calibration import Calibration
from search.events import PERSON
from search.option import APPROVED, Option
from search.tree import Tree

EASY = 4
EASY_AT_LEAST = 2
STAGNATION = 5
EXPLORING = 0.1
EXPLORING_WIDELY = 0.4
FEW_OPEN = 3


@dataclass(frozen=True)
class Choice:
    """An option to run, its score (in doublings of speed), and why it was taken, in words."""

    option: str
    score: float
    why: str


def choose(tree: Tree, calibration: Calibration, *, approved_only: bool = False) -> Choice | None:
    """Return what to run next, None when nothing can run; ``approved_only`` leaves out what nobody has approved."""
    frontier = [option for option in tree.frontier() if option.status == APPROVED or not approved_only]
    for why, first in (
        ("pinned", [option for option in frontier if option.pinned]),
        ("begun earlier", [option for option in frontier if option.attempts]),
        ("approved by a person", [option for option in frontier if option.approved_by == PERSON]),
    ):
        if first:
            option = min(first, key=lambda option: (option.approved or math.inf, option.added))
            return Choice(option.id, score(tree, calibration, option).score, why)
    return best_scored(tree, calibration, frontier)


def own_choice(tree: Tree, calibration: Calibration) -> Choice | None:
    """Return what the policy would take by itself among the options that are not decided yet."""
    return best_scored(tree, calibration, [option for option in tree.frontier() if not option.approved_by])


def best_scored(tree: Tree, calibration: Calibration, options: Iterable[Option]) -> Choice | None:
    """Return the best score among ``options`` that are easy enough; equal scores go to the easier, then the older.

    Easy enough is a difficulty of 4, less one for each option that failed since the last that passed, but at least 2;
    only when nothing is that easy, the easiest there is.
    """
    waiting = list(options)
    if not waiting:
        return None
    gate = max(EASY_AT_LEAST, EASY - tree.failures, min(option.difficulty for option in waiting))
    easy = [option for option in waiting if option.difficulty <= gate]
    scored = [(score(tree, calibration, option), option) for option in easy]
    return min(scored, key=lambda pair: (-pair[0].score, pair[1].difficulty, pair[1].added))[0]


def score(tree: Tree, calibration: Calibration, option: Option) -> Choice:
    """Return the score of ``option`` as the head of this file defines it, with its terms in words."""
    best = tree.best()
    ahead = tree.speedup(best.id) if best else 0.0
    parent = tree.speedup(option.parent) if option.parent else 0.0
    standing = math.log2(parent / ahead) if parent > 0 and ahead > 0 else 0.0
    belief = 0.5 + option.confidence * (option.rating / 10 - 0.5)
    expected = calibration.calibrated(option.predicted, option.by, option.action)
    gain = math.log2(expected) * (belief if expected > 1 else 1.0)
    weight = EXPLORING_WIDELY if stagnating(tree) else EXPLORING
    exploring = weight * (1 - option.confidence)
    total = standing + gain + (belief - 0.5) + exploring
    words = (
        f"score {total:+.2f}: parent at {parent:.2f}× of best {ahead:.2f}× ({standing:+.2f}), "
        f"predicted {option.predicted:.2f}×, expected {expected:.2f}× ({gain:+.2f}), "
        f"rating {option.rating:.1f} at confidence {option.confidence:.2f} ({belief - 0.5:+.2f}), "
        f"exploring{' widely, as nothing has improved lately' if weight == EXPLORING_WIDELY else ''} ({exploring:+.2f})"
    )
    return Choice(option.id, total, words)


def stagnating(tree: Tree) -> bool:
    """Whether the last `STAGNATION` evaluations or more brought nothing better."""
    return tree.evaluations - tree.improved >= STAGNATION


def to_grow(tree: Tree, exhausted: Set[str], grown_at: int) -> str:
    """Return the option under which to ask for more before anything else runs, "" if there is enough to do.

    Where a person decides: under each option that has passed, once; then only when nothing is left to decide. Under
    autopilot: under the best so far, wherever less than `FEW_OPEN` options wait, and elsewhere when the run stagnates.
    ``exhausted`` are the options where nothing came the last time; ``grown_at`` is how many evaluations there were when
    options were last asked for.
    """
    able = [
        option
        for option in tree.passed()
        if not option.running and option.id not in exhausted and not tree.open_under(option.id)
    ]
    if not able:
        return ""
    best = tree.best()
    promising = min(able, key=lambda option: (not option.pinned, -tree.speedup(option.id), option.added))
    waiting = len(tree.frontier())
    if not tree.autopilot:
        bare = [option for option in able if not option.children]
        return max(bare, key=lambda option: option.started).id if bare else promising.id if not waiting else ""
    if best in able:
        return best.id if best else ""
    stagnant = stagnating(tree) and tree.evaluations - grown_at >= STAGNATION
    return promising.id if waiting < FEW_OPEN or stagnant else ""
