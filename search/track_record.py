"""How well each model, or the catalogue, did against the predictions of a run: as figures for a person. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from search.calibration import Calibration

_MODEL = "llm:"
PROPOSES, WRITES = "proposes", "writes"


@dataclass(frozen=True)
class TrackRecord:
    """What came of the predictions of ``who`` (``does`` is `PROPOSES`), or of programs by ``who`` (`WRITES`).

    ``ratios`` are found over predicted speedups, in the order of the options; there is one at least.
    """

    does: str
    who: str
    ratios: tuple[float, ...]

    @property
    def bias(self) -> float:
        """The geometric mean of found over predicted: below 1 where too much was promised."""
        return math.exp(math.fsum(math.log(ratio) for ratio in self.ratios) / len(self.ratios))

    @property
    def typical_error(self) -> float:
        """The factor by which a prediction was off, up or down: the geometric mean; 1 is perfect."""
        return math.exp(math.fsum(abs(math.log(ratio)) for ratio in self.ratios) / len(self.ratios))


def track_records(calibration: Calibration) -> list[TrackRecord]:
    """Return a record for each that proposed, then one for each model that wrote, by name.

    The catalogue writes what it proposed: it has one record.
    """
    proposed, wrote = defaultdict(list), defaultdict(list)
    for comparison in calibration.comparisons:
        ratio = comparison.found / comparison.predicted
        proposed[comparison.by].append(ratio)
        if comparison.writer.startswith(_MODEL):
            wrote[comparison.writer].append(ratio)
    return [
        TrackRecord(does, who.removeprefix(_MODEL), tuple(ratios))
        for does, found in ((PROPOSES, proposed), (WRITES, wrote))
        for who, ratios in sorted(found.items())
    ]
