"""What the evaluations found so far, kept up to date event by event, and drawn as a line or a chart."""

from __future__ import annotations

from itertools import accumulate, pairwise

from search.evaluation.record import Evaluation
from search.tree import Tree

_EIGHTHS = " ▁▂▃▄▅▆▇█"


class ProgressSoFar:
    """The speedup over the naive program of each evaluation of a run, in order; 0 for one that failed."""

    def __init__(self) -> None:
        self._found: list[float] = []
        self._seen = 0
        self._base: Evaluation | None = None

    def update(self, tree: Tree) -> tuple[float, ...]:
        """Return the speedups of ``tree``'s evaluations, reading only the events that are new since the last call."""
        base = tree.options[tree.root].passing if tree.root else None
        if len(tree.events) < self._seen or base != self._base:
            self._found, self._seen, self._base = [], 0, base
        for event in tree.events[self._seen :]:
            if event.kind == "evaluated":
                evaluation = Evaluation.from_fields(event.data)
                self._found.append(evaluation.speedup_over(base) if base and evaluation.passed else 0.0)
        self._seen = len(tree.events)
        return tuple(self._found)


def best_so_far(found: tuple[float, ...]) -> list[float]:
    """Return the running maximum."""
    return list(accumulate(found, max))


def spark(values: list[float], width: int) -> str:
    """Return ``values`` as one line of at most ``width`` cells, each as high as its share of the largest."""
    if not values or width < 1:
        return ""
    top = max(values)
    shown = _squeeze(values, width)
    return "".join(_EIGHTHS[max(1, round(8 * value / top))] if top > 0 else _EIGHTHS[1] for value in shown)


def bar_chart(values: list[float], width: int, height: int) -> list[str]:
    """Return ``values`` as columns of eighth blocks, ``height`` lines from the top, from zero to the largest."""
    top = max(values, default=0.0)
    shown = _squeeze(values, width)
    eighths = [round(8 * height * value / top) if top > 0 else 0 for value in shown]
    return [
        "".join(_EIGHTHS[min(8, max(0, filled - 8 * row))] for filled in eighths) for row in reversed(range(height))
    ]


def _squeeze(values: list[float], width: int) -> list[float]:
    """Return at most ``width`` values: the largest of each equal stretch."""
    if len(values) <= width:
        return values
    edges = [index * len(values) // width for index in range(width + 1)]
    return [max(values[start:end]) for start, end in pairwise(edges)]
