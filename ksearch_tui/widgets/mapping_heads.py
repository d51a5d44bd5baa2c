"""The head of each side of the Mapping tab: what it shows, the keys for another, and its figures."""

from __future__ import annotations

from collections import Counter

from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.cuda_side import KIND_SIGNS, KIND_STYLES, CudaSide

_QUIET = "$foreground 60%"
_Part = str | tuple[str, str]


def cuda_head(side: CudaSide, place: int, files: int, *, single: bool, short: bool) -> Content:
    """Return the file's name, its ``place`` among ``files`` and how many primitives of each kind it has.

    ``single``: one side is shown at a time; ``short``: there is one line, else two.
    """
    parts: list[_Part] = [(one_line(side.path.name), "bold")]
    if files > 1:
        parts.append((f" ({place} of {files}, f)", _QUIET))
    parts.append(f" · {side.inventory.coverage:.0%} mapped")
    if single:
        parts.append((" · s Metal", _QUIET))
    parts.append(" · " if short else "\n")
    counts = Counter(occurrence.primitive.kind for occurrence in side.inventory.occurrences)
    for kind, style in KIND_STYLES.items():
        if counts[kind]:
            parts += [(f"{KIND_SIGNS[kind]}{counts[kind]} {kind}", style), " "]
    return Content.assemble(*parts)


def metal_head(shows: str, other: str, said: str, *, single: bool, short: bool) -> Content:
    """Return what the side ``shows``, what ``t`` would show, and what is ``said`` about it."""
    parts: list[_Part] = [(f"Metal: {shows}", "bold"), (f" · t {other}", _QUIET)]
    if single:
        parts.append((" · s CUDA", _QUIET))
    return Content.assemble(*parts, " · " if short else "\n", said)
