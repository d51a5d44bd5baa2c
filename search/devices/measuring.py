"""Timing jobs on one GPU so that none is favoured: warmed up, in turn (A B B A), with a confidence interval."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

# Runs a number of times, each after the one before, and returns the seconds that all of them took.
Batch = Callable[[int], float]

WARM_UP_SECONDS = 0.25
BATCH_SECONDS = 0.01
ROUNDS = 12
FEWEST_ROUNDS = 3


@dataclass(frozen=True)
class Interval:
    """The median of some times in seconds, and the bounds of its 95 % confidence interval."""

    median: float
    low: float
    high: float


def median_interval(samples: Sequence[float]) -> Interval:
    """Return the median of ``samples`` and its 95 % interval by order statistics, which assumes no distribution.

    The k-th smallest and k-th largest bound the median unless fewer than k samples lie on one side of it, which has
    probability P(Binomial(n, 1/2) < k) a side; k is the greatest for which that is at most 2.5 %. With fewer than six
    samples there is no such k, and the interval is their whole range.
    """
    ordered, n = sorted(samples), len(samples)
    k, outside = 1, 1
    while outside + comb(n, k) <= 0.025 * 2**n:
        outside += comb(n, k)
        k += 1
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[n - k])


def measure_in_turn(
    batches: Sequence[Batch], *, time_limit: float, clock: Callable[[], float] = time.monotonic
) -> list[Interval]:
    """Return the seconds of one run of each of ``batches``, measured in turn within about ``time_limit`` seconds.

    In turn, because clocks drift by tens of percent as a GPU warms up or idles; each round goes there and back
    (A B B A), so that a steady drift cancels.
    """
    end = clock() + time_limit
    counts = [_warm_up(batch, min(end, clock() + WARM_UP_SECONDS), clock) for batch in batches]
    samples: list[list[float]] = [[] for _ in batches]
    forth = range(len(batches))
    for round_number in range(ROUNDS):
        if round_number >= FEWEST_ROUNDS and clock() > end:
            break
        for which in (*forth, *reversed(forth)):
            samples[which].append(batches[which](counts[which]) / counts[which])
    return [median_interval(taken) for taken in samples]


def _warm_up(batch: Batch, until: float, clock: Callable[[], float]) -> int:
    """Run ``batch`` until the clock says ``until``; return how many runs make a sample that launch noise can't move."""
    count = 1
    seconds = batch(count)
    while clock() < until or seconds < BATCH_SECONDS:
        if seconds < BATCH_SECONDS:
            count *= 2
        seconds = batch(count)
    return count
