"""Where things stand in the page's two charts: the best so far, and what was found over what was predicted. Pure.

Places are in the units of the chart's own view box, from its upper left corner; the template draws them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ksearch_tui.widgets.progress_so_far import best_so_far
from ksearch_tui.wording import plural, times
from search.calibration import Comparison
from sessions.report import Attempt

SERIES = 4
"""How many proposers have marks of their own; further ones take the same again."""

_MOST_TICKS = 6
_FARTHEST = 20.0
_MARGIN = 0.25


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A point: ``kind`` is how it is drawn, ``label`` what it is, in words."""

    x: float
    y: float
    kind: str
    label: str


@dataclass(frozen=True)
class Frame:
    """The size of a chart and the edges of the area within its axes."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    def x(self, share: float) -> float:
        """Return the place of a share of the width within the axes, from the left."""
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, share: float) -> float:
        """Return the place of a share of the height within the axes, from the bottom."""
        return round(self.bottom - share * (self.bottom - self.top), 1)


@dataclass(frozen=True)
class Chart:
    """A chart: ``line`` is the path of its line, ``told`` what it shows, in words."""

    frame: Frame
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    line: str
    told: str


_CURVE = Frame(560, 230, 52, 548, 14, 196)
_SCATTER = Frame(360, 352, 56, 348, 26, 310)


def curve(attempts: Sequence[Attempt]) -> Chart | None:
    """Return the best speedup over the first program after each evaluation; None where there was no speedup.

    A mark is ``better`` where the best was beaten, ``passed`` where not, and ``failed`` on the axis.
    """
    found = [attempt.over_naive if math.isfinite(attempt.over_naive) else 0.0 for attempt in attempts]
    best = best_so_far(tuple(found))
    if not best or best[-1] <= 0:
        return None
    step = _step(best[-1])
    top = max(step, step * math.ceil(best[-1] / step - 1e-9))
    frame = _CURVE
    places = [frame.x(number / max(1, len(found) - 1) if len(found) > 1 else 0.5) for number in range(len(found))]
    line, before = "", 0.0
    marks = []
    for attempt, x, speedup, ahead in zip(attempts, places, found, best, strict=True):
        y = frame.y(ahead / top)
        if ahead > 0:
            line += f"H{x}V{y}" if line else f"M{x} {y}"
        kind = "failed" if not attempt.evaluation.passed else "better" if speedup > before else "passed"
        told = "failed" if kind == "failed" else f"{times(speedup)} naive"
        marks.append(Mark(x, frame.y(speedup / top), kind, f"{attempt.number}. {attempt.title}: {told}"))
        before = ahead
    y_ticks = tuple(
        Tick(frame.y(number * step / top), f"{number * step:g}×") for number in range(round(top / step) + 1)
    )
    failed = sum(mark.kind == "failed" for mark in marks)
    told = f"{times(best[-1])} naive after {plural(len(found), 'evaluation')}, of which {failed} failed"
    return Chart(frame, _numbers(attempts, places), y_ticks, tuple(marks), line, told)


def _numbers(attempts: Sequence[Attempt], places: Sequence[float]) -> tuple[Tick, ...]:
    """Return labels for the first evaluation and every so many that make few labels."""
    every = max(1, round(_step(len(attempts))))
    return tuple(
        Tick(x, str(attempt.number))
        for attempt, x in zip(attempts, places, strict=True)
        if attempt.number == 1 or attempt.number % every == 0
    )


def _step(largest: float) -> float:
    """Return the smallest of 1, 2, 5, 10 ... (or of their tenths) that takes few steps to ``largest``, above 0."""
    power = 10.0 ** math.floor(math.log10(largest / _MOST_TICKS))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * _MOST_TICKS >= largest)


def scatter(comparisons: Sequence[Comparison], titles: Mapping[str, str]) -> Chart | None:
    """Return found over predicted speedups, both axes alike and logarithmic; None where there is nothing to compare.

    ``titles`` are those of options by id. A mark's kind is ``series-`` and the place of its proposer among all, from 0.
    The line is where found equals predicted. What lies beyond 2 to the power of 20 stands at the edge.
    """
    if not comparisons:
        return None
    who = proposers(comparisons)
    pairs = [(_doublings(one.predicted), _doublings(one.found)) for one in comparisons]
    low = min(0.0, *(min(pair) for pair in pairs)) - _MARGIN
    high = max(0.0, *(max(pair) for pair in pairs)) + _MARGIN
    frame = _SCATTER
    every = math.ceil((high - low) / _MOST_TICKS)
    at = {n: (n - low) / (high - low) for n in range(math.ceil(low), math.floor(high) + 1) if n % every == 0}
    marks = tuple(
        Mark(
            frame.x((predicted - low) / (high - low)),
            frame.y((found - low) / (high - low)),
            f"series-{who.index(one.by) % SERIES}",
            f"{titles.get(one.option, one.option)}: predicted {times(one.predicted)}, found {times(one.found)}",
        )
        for one, (predicted, found) in zip(comparisons, pairs, strict=True)
    )
    worse = sum(one.found < one.predicted for one in comparisons)
    return Chart(
        frame,
        tuple(Tick(frame.x(share), f"{2.0**n:g}×") for n, share in at.items()),
        tuple(Tick(frame.y(share), f"{2.0**n:g}×") for n, share in at.items()),
        marks,
        f"M{frame.x(0)} {frame.y(0)}L{frame.x(1)} {frame.y(1)}",
        f"{plural(len(marks), 'prediction')}, of which {worse} promised more than was found",
    )


def proposers(comparisons: Sequence[Comparison]) -> list[str]:
    """Return who predicted, each once, in the order in which they first did."""
    return list(dict.fromkeys(one.by for one in comparisons))


def _doublings(speedup: float) -> float:
    return max(-_FARTHEST, min(_FARTHEST, math.log2(speedup)))
