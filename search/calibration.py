"""How far a proposer's predictions can be trusted: predicted speedups compared with those that were found.

Over the comparisons of one proposer, the mean of ln(found / predicted) is drawn towards 0 as if `PRIOR` further
predictions had come true exactly, so that one result does not swing it. The mean for one action of that proposer is
drawn towards the proposer's own mean in the same way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from search.tree import Tree

PRIOR = 3


@dataclass(frozen=True)
class Comparison:
    """What one option promised and what was found, as speedups over its parent; ``writer`` wrote its program."""

    option: str
    by: str
    action: str
    predicted: float
    found: float
    writer: str = ""

    @property
    def log_ratio(self) -> float:
        """ln(found / predicted): below 0 when it promised too much."""
        return math.log(self.found / self.predicted)


@dataclass(frozen=True)
class Calibration:
    """The comparisons of a run so far."""

    comparisons: tuple[Comparison, ...] = ()

    @staticmethod
    def of(tree: Tree) -> Calibration:
        """Compare what was found with what was predicted, for every option that passed and no person wrote."""
        return Calibration(
            tuple(
                Comparison(option.id, option.by, option.action, option.predicted, found, option.writer)
                for option in tree.options.values()
                if option.foretold and (found := tree.speedup_over_parent(option.id)) > 0
            )
        )

    def calibrated(self, predicted: float, by: str, action: str = "") -> float:
        """Return the speedup to expect when ``by`` predicts ``predicted`` for ``action`` (1 when it predicts none)."""
        if predicted <= 0:
            return 1.0
        shifts = self._shifts
        return predicted * math.exp(shifts.get((by, action), shifts.get((by, ""), 0.0)))

    @cached_property
    def _shifts(self) -> dict[tuple[str, str], float]:
        """By how much ln of a prediction is off, by proposer and action; under the action "" for the proposer."""
        ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
        for comparison in self.comparisons:
            ratios[comparison.by, ""].append(comparison.log_ratio)
            if comparison.action:
                ratios[comparison.by, comparison.action].append(comparison.log_ratio)
        own = {by: _drawn_to(0.0, found) for (by, action), found in ratios.items() if not action}
        return {
            (by, action): _drawn_to(own[by], found) if action else own[by] for (by, action), found in ratios.items()
        }

    def error(self, by: str = "", writer: str = "") -> float | None:
        """Return the mean of abs ln(found / predicted); None before the first comparison.

        Of what ``by`` predicted and of what ``writer`` wrote, if they are given.

        0 is perfect; 0.69 means that predictions are off by a factor of two.
        """
        ratios = [
            abs(comparison.log_ratio)
            for comparison in self.comparisons
            if by in ("", comparison.by) and writer in ("", comparison.writer)
        ]
        return sum(ratios) / len(ratios) if ratios else None


def _drawn_to(prior: float, ratios: Sequence[float]) -> float:
    return (PRIOR * prior + sum(ratios)) / (PRIOR + len(ratios))
