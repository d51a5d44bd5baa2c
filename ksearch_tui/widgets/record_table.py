"""Predicted against found, one line for each model and role: how many, how far off, and which way, with a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.wording import verdict
from search.track_record import PROPOSES, TrackRecord

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PLOT_CELLS = 17
_PLOT_REACH = 4.0
_VERDICT_CELLS = 50
_QUIET = "$foreground 60%"


def record_table(records: Sequence[TrackRecord], width: int) -> Content:
    """Return the table in ``width`` cells; only a wide one has the plot and its heading."""
    longest = max((len(_who(record)) for record in records), default=0)
    wide = longest + _PLOT_CELLS + _VERDICT_CELLS <= width
    name_width = longest if wide else min(longest, max(12, width - _VERDICT_CELLS))
    lines = [_line(record, name_width, wide) for record in records]
    if wide and records:
        scale = f"{'¼×':<{_PLOT_CELLS // 2}}1×{'4×':>{_PLOT_CELLS - _PLOT_CELLS // 2 - 2}}"
        lines.insert(0, Content.assemble((f"{'':<{name_width + 2}}{scale}", _QUIET)))
    return Content("\n").join(lines)


def _who(record: TrackRecord) -> str:
    return f"{one_line(record.who)} {record.does}"


def _line(record: TrackRecord, name_width: int, wide: bool) -> Content:
    name = _who(record)
    name = name if len(name) <= name_width else f"{name[: name_width - len(record.does) - 2]}… {record.does}"
    return Content.assemble(
        (f"{name:<{name_width}}  ", "bold" if record.does == PROPOSES else ""),
        (f"{plot(record.ratios)}  " if wide else "", "$text-primary"),
        verdict(record),
        (f" (n={len(record.ratios)})", _QUIET),
    )


def plot(ratios: Sequence[float]) -> str:
    """Return found over predicted as columns from a quarter to four times, 1 in the middle; each as high as its share.

    What lies outside counts at the edge.
    """
    cells = [0] * _PLOT_CELLS
    middle = _PLOT_CELLS // 2
    for ratio in ratios:
        place = round(middle * math.log(ratio) / math.log(_PLOT_REACH))
        cells[middle + max(-middle, min(middle, place))] += 1
    top = max(cells)
    columns = [_EIGHTHS[max(1, round(8 * cell / top))] if cell else "·" for cell in cells]
    if not cells[middle]:
        columns[middle] = "│"
    return "".join(columns)
