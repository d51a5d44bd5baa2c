"""From an entry to a proposal: its prior figures, moved by the evidence and by where the parent's time goes. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from search.evaluation.record import Evaluation
from search.proposers.base import Proposal
from search.proposers.catalogue_entries import Entry

BALANCE = 0.4
"""Share of the parent's time at which an entry that relieves it is rated as the catalogue has it."""

SWING = 3.0
"""Points of rating between an entry that relieves everything and one that relieves nothing."""

EVIDENCE = 0.1
"""Confidence that a CUDA reference adds by doing the same."""

ASKED_RATING = 9.0
"""Rating of the first option that a person asked for, whatever it promises; each next one is half a point lower."""


def judge(entry: Entry, title: str, place: str, evaluation: Evaluation | None) -> Proposal:
    """Return ``entry`` as an option under a parent with ``evaluation``; ``place`` is where a CUDA reference does it."""
    rating, confidence, predicted, why = entry.rating, entry.confidence, entry.predicted, [entry.why]
    if place:
        confidence = min(0.95, confidence + EVIDENCE)
        why.append(f"The CUDA reference does it: {place}.")
    share, headroom = (_share(entry, evaluation), _headroom(evaluation)) if evaluation is not None else (None, None)
    if share is not None:
        rating = max(0.0, min(10.0, rating + SWING * (share - BALANCE)))
        if predicted > 1:
            predicted = 1 + (predicted - 1) * min(1.0, share / BALANCE)
        why.append(f"The parent spends {share:.0%} of its modelled time on {_listed(entry.relieves)}.")
    if headroom is not None:
        rating = min(rating, 5 + 5 * math.log2(headroom))  # what the headroom is worth, as ratings are counted
    if headroom is not None and predicted > headroom:
        predicted = headroom
        why.append(
            f"The parent is {headroom:.2f} times the least time that the hardware allows; no more than that is left."
        )
    return Proposal(
        title, " ".join(why), entry.key, round(rating, 1), round(confidence, 2), entry.difficulty, round(predicted, 2)
    )


def asked_for(proposal: Proposal, why: str, place: int) -> Proposal:
    """Return ``proposal`` as what a person asked for, ``place`` counting from 0; its prediction stays what it is."""
    rating = max(proposal.rating, ASKED_RATING - 0.5 * place)
    return replace(proposal, why=f"{why} {proposal.why}", rating=rating)


def _share(entry: Entry, evaluation: Evaluation) -> float | None:
    """Return the share of modelled time that ``entry`` relieves, over the bench workloads; None where none is known."""
    shares = [
        sum(time.terms.get(term, 0.0) for term in entry.relieves) / sum(time.terms.values())
        for time in evaluation.times
        if sum(time.terms.values()) > 0
    ]
    return sum(shares) / len(shares) if shares and entry.relieves else None


def _headroom(evaluation: Evaluation) -> float | None:
    """Return how many times its least time the parent takes, 1 at the least; None where that isn't known."""
    fraction = evaluation.roofline_fraction
    return max(1.0, 1 / fraction) if fraction > 0 else None


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
