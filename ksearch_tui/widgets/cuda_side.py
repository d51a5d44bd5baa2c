"""The CUDA side of the Mapping tab: a reference read and coloured, and what there is to say about its lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from ksearch_tui.inert import inert
from ksearch_tui.widgets.line_view import Line
from ksearch_tui.widgets.syntax import CUDA, coloured_lines
from translator.cuda_source import CudaSource, parse_cuda
from translator.inventory import Inventory, Occurrence, take_inventory
from translator.mistakes import decode_cuda

KIND_STYLES = {
    "unsupported": "$text-error",
    "rewrite": "$text-warning",
    "idiom": "$text-accent",
    "direct": "$text-success",
    "drop": "$foreground 50%",
}
"""How each kind of primitive is coloured, the kind that needs the most care first."""

KIND_SIGNS = {"unsupported": "✗", "rewrite": "!", "idiom": "≈", "direct": "=", "drop": "–"}
CITED_SIGN = "◆"

REFUSED, OPEN, UNREAD = "refused", "open", "unread"
REMARK_SIGNS = {REFUSED: "✗", OPEN: "?", UNREAD: "?"}
REMARK_STYLES = {REFUSED: "$text-error", OPEN: "$text-warning", UNREAD: "$text-warning"}
_GROUNDS = {REFUSED: "on $error 15%", OPEN: "on $warning 10%", UNREAD: "on $warning 10%"}


@dataclass(frozen=True)
class Remark:
    """Something about a CUDA line: ``refused`` by the writer, ``open`` until a person answers, or ``unread``."""

    kind: str
    text: str
    advice: str = ""


Remarks = Mapping[int, tuple[Remark, ...]]
"""Remarks by line, counted from 0."""


@dataclass(frozen=True)
class CudaSide:
    """A CUDA file and its coloured lines; lines are counted from 0 in ``here``, ``patterns`` and ``unread``."""

    path: Path
    source: CudaSource
    inventory: Inventory
    lines: tuple[Line, ...]
    here: Mapping[int, tuple[Occurrence, ...]]
    patterns: Mapping[int, tuple[str, ...]]
    unread: Remarks

    def function_of(self, line: int) -> int:
        """Return the first line of the kernel or device function that a line is in, the line itself outside of them."""
        for function in (*self.source.kernels, *self.source.device_functions):
            first = function.span.line - 1
            if first <= line <= first + self.source.text.count("\n", function.span.start, function.span.end):
                return first
        return line


def read_cuda_side(path: Path) -> CudaSide:
    """Return the CUDA file at ``path`` read and coloured; raise `OSError`, or `CudaInputError` for what is no text."""
    source = parse_cuda(decode_cuda(path.read_bytes(), path.name), path.name)
    inventory = take_inventory(source)
    here: dict[int, list[Occurrence]] = {}
    for occurrence in inventory.occurrences:
        here.setdefault(occurrence.line - 1, []).append(occurrence)
    patterns: dict[int, list[str]] = {}
    for name, span in inventory.patterns.items():
        patterns.setdefault(span.line - 1, []).append(name)
    raw, texts = source.text.split("\n"), coloured_lines(source.text, CUDA)
    width = len(str(len(texts)))
    lines = []
    for number, text in enumerate(texts):
        found = here.get(number, ())
        for occurrence in found:
            text = _coloured(text, occurrence, raw[number])
        lines.append(Line(text, _gutter(number, width, found)))
    unread = gathered(
        (entry.span.line - 1, Remark(UNREAD, f"{entry.code}: {entry.message}")) for entry in source.diagnostics
    )
    return CudaSide(
        path, source, inventory, tuple(lines), {line: tuple(found) for line, found in here.items()},
        {line: tuple(names) for line, names in patterns.items()}, unread,
    )  # fmt: skip


def gathered(remarks: Iterable[tuple[int, Remark]]) -> dict[int, tuple[Remark, ...]]:
    """Return remarks by line, each once."""
    found: dict[int, dict[Remark, None]] = {}
    for line, remark in remarks:
        found.setdefault(line, {})[remark] = None
    return {line: tuple(items) for line, items in found.items()}


def marked_lines(side: CudaSide, remarks: Remarks, cited: Collection[int]) -> list[Line]:
    """Return the lines of ``side`` with what is remarked about them, and those that the option points at."""
    lines = list(side.lines)
    width = len(str(len(lines)))
    for number in {*remarks, *cited}:
        if 0 <= number < len(lines):
            said = remarks.get(number, ())
            gutter = _gutter(number, width, side.here.get(number, ()), said, cited=number in cited)
            lines[number] = Line(lines[number].text, gutter, _GROUNDS[said[0].kind] if said else "")
    return lines


def _gutter(
    number: int, width: int, found: Collection[Occurrence], said: tuple[Remark, ...] = (), *, cited: bool = False
) -> Content:
    kinds = {occurrence.primitive.kind for occurrence in found}
    kind = next((kind for kind in KIND_STYLES if kind in kinds), "")
    return Content.assemble(
        (CITED_SIGN if cited else " ", "bold $text-accent"),
        (f"{number + 1:>{width}} ", "$foreground 40%"),
        (KIND_SIGNS[kind] if kind else " ", f"bold {KIND_STYLES[kind]}" if kind else ""),
        (REMARK_SIGNS[said[0].kind] if said else " ", f"bold {REMARK_STYLES[said[0].kind]}" if said else ""),
        " ",
    )


def _coloured(text: Content, occurrence: Occurrence, raw: str) -> Content:
    """Return a line with one occurrence underlined in its kind's colour; ``raw`` is the line with its tabs."""
    found = inert(occurrence.text.split("\n")[0])
    start = text.plain.find(found, len(raw[: occurrence.column - 1].expandtabs(4)))
    if not found or start < 0:
        return text
    return text.stylize(kind_style(occurrence.primitive.kind), start, start + len(found))


def kind_style(kind: str) -> str:
    """Return how the words of a primitive are shown, on both sides."""
    return f"bold underline {KIND_STYLES[kind]}"
