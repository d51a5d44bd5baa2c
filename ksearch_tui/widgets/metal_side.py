"""The Metal side of the Mapping tab: the translation of a reference, or an option's program, and its CUDA lines.

A translation says of each of its lines which CUDA line it came from. An option's program doesn't; there a line goes
with the CUDA lines that lead to the same words of Metal (`metal_words`), and the most words in common win. A pass that
is the translation's own, word for word, has its lines.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.cuda_side import (
    OPEN,
    REFUSED,
    REMARK_SIGNS,
    REMARK_STYLES,
    CudaSide,
    Remark,
    Remarks,
    gathered,
    kind_style,
)
from ksearch_tui.widgets.kernel_tab import Row, program_rows
from ksearch_tui.widgets.line_view import Line
from ksearch_tui.widgets.metal_words import WORD, metal_words, pattern_words, primitive_words, words_of
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.kernels.translated import program_of
from translator.launch_plan import LaunchPlan
from translator.launches import read_launches
from translator.metal_writer import write_metal
from translator.mistakes import CudaInputError
from translator.translation import TranslatedPass, Translation

MOST_CHARACTERS = 1_000_000
"""A longer source takes minutes to translate as a whole: the command line does it kernel by kernel."""

_PATTERN_STYLE = "bold underline $text-secondary"
_BLANK = Line(Content(""), Content("     "))

_REMARK_WIDTH = 36
"""What fits in one of two sides in 120 columns."""

CudaLines = tuple[int, ...]
"""Lines of the CUDA file, counted from 0."""


@dataclass(frozen=True)
class MetalSide:
    """Lines of Metal, for each its CUDA lines (none for one that is written anew), and for a CUDA line those of Metal.

    ``remarks`` are about the CUDA's lines; ``said`` sums the side up; ``passes`` are those that were translated.
    """

    lines: tuple[Line, ...]
    cuda_of: tuple[CudaLines, ...]
    metal_of: Mapping[int, tuple[int, ...]]
    said: str
    remarks: Remarks
    passes: tuple[TranslatedPass, ...] = ()

    def near(self, line: int, first: int) -> int | None:
        """Return the line of Metal for the CUDA line at or above ``line``, not above ``first``, that has one."""
        return next((self.metal_of[at][0] for at in range(line, first - 1, -1) if at in self.metal_of), None)


def empty_side(text: str) -> MetalSide:
    """Return a side that only says why there is nothing."""
    lines = tuple(_remark(part) for part in textwrap.wrap(one_line(text), _REMARK_WIDTH))
    return MetalSide(lines, ((),) * len(lines), {}, "", {})


def _remark(text: str, style: str = "$foreground 60%") -> Line:
    return Line(Content.assemble((one_line(text), style)), Content(" "))


# -- the translation ---------------------------------------------------------------------------------------------------


def translations(cuda: CudaSide) -> Iterator[MetalSide]:
    """Translate what the file launches, host function by host function, and yield what there is after each.

    A kernel that no host function launches is written as it stands, and what its launch leaves open is asked.
    """
    if len(cuda.source.text) > MOST_CHARACTERS:
        yield empty_side(
            "The file is too long to translate here; one kernel at a time: "
            f"ksearch-tui translate {cuda.path.name} --kernel NAME"
        )
        return
    growing = _Growing(cuda)
    names = list(dict.fromkeys(kernel.name for kernel in cuda.source.kernels))
    covered: set[str] = set()
    for name in (None, *names):
        if name in covered:
            continue
        try:
            plan = read_launches(cuda.source, name)
        except CudaInputError as error:
            yield empty_side(str(error))
            return
        new = {step.kernel for step in plan.steps} - covered
        covered |= new | ({name} if name else set())
        if new:
            growing.add(plan, write_metal(cuda.source, plan), new)
        yield growing.side(len(covered & set(names)), len(names))


class _Growing:
    """The lines of a translation as they come."""

    def __init__(self, cuda: CudaSide) -> None:
        self._cuda = cuda
        self._lines: list[Line] = []
        self._cuda_of: list[CudaLines] = []
        self._passes: list[TranslatedPass] = []
        self._remarks: list[tuple[int, Remark]] = []
        self._notes: dict[str, None] = {}

    def add(self, plan: LaunchPlan, translation: Translation, kernels: set[str]) -> None:
        """Add what one plan gives for ``kernels``: what can't be translated or is open, then the passes."""
        if self._lines:
            self._put(_BLANK, ())
        for refusal in translation.refusals:
            if refusal.kernel in kernels:
                where = f"{refusal.kernel}, line {refusal.span.line}: "
                self._say(refusal.span.line - 1, Remark(REFUSED, refusal.reason, refusal.advice), where)
        for question in plan.questions:
            self._say(question.span.line - 1, Remark(OPEN, question.message), f"line {question.span.line}: ")
        for choice in plan.choices:
            self._put(_remark(f"line {choice.span.line}: {choice.message}"), (choice.span.line - 1,))
        for note in translation.notes:
            self._put(_remark(f"note: {note}"), ())
        passes = [step for step in translation.passes if step.kernel in kernels]
        for row in program_rows(_shown(plan, replace(translation, passes=tuple(passes)))):
            line = _line_of(row, passes[row.step], plan, self._cuda)
            self._put(replace(row.line, text=_highlighted(row.line.text, line, self._cuda)), line)
        self._passes += passes

    def _say(self, line: int, remark: Remark, where: str) -> None:
        self._remarks.append((line, remark))
        sign, style = REMARK_SIGNS[remark.kind], REMARK_STYLES[remark.kind]
        self._put(_remark(f"{sign} {where}{remark.text}", style), (line,))
        if remark.advice:
            self._put(_remark(f"  → {remark.advice}"), (line,))

    def _put(self, line: Line, cuda_lines: CudaLines) -> None:
        self._lines.append(line)
        self._cuda_of.append(cuda_lines)

    def side(self, done: int, of: int) -> MetalSide:
        """Return what there is, with ``done`` of ``of`` kernels."""
        metal_of: dict[int, list[int]] = {}
        for number, lines in enumerate(self._cuda_of):
            for line in lines:
                metal_of.setdefault(line, []).append(number)
        kinds = [remark.kind for _, remark in self._remarks]
        said = [_passes(len(self._passes))]
        said += [f"{kinds.count(kind)} {kind}" for kind in (REFUSED, OPEN) if kind in kinds]
        said += [f"{done} of {of} kernels so far"] if done < of else []
        return MetalSide(
            _aligned(self._lines), tuple(self._cuda_of), {line: tuple(rows) for line, rows in metal_of.items()},
            " · ".join(said), gathered(self._remarks), tuple(self._passes),
        )  # fmt: skip


def _aligned(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return lines with gutters of one width."""
    return tuple(line if len(line.gutter) == 5 else Line(line.text, Content("     "), line.ground) for line in lines)


def _shown(plan: LaunchPlan, translation: Translation) -> Program:
    """Return the passes as a program; a launch that is still open has question marks for its sizes."""
    program, open_ = program_of(translation), {question.answer for question in plan.questions}
    unknown = ("?", "?", "?")
    passes = tuple(
        replace(
            step,
            grid=unknown if open_ & {"grid", "block"} else step.grid,
            threadgroup=unknown if "block" in open_ else step.threadgroup,
        )
        for step in program.passes
    )
    return replace(program, passes=passes)


def _line_of(row: Row, step: TranslatedPass, plan: LaunchPlan, cuda: CudaSide) -> CudaLines:
    """Return the CUDA line of a row: for the pass's name its kernel's, for how it is launched that of the launch."""
    if row.part == "header":
        line = step.header_lines[row.number - 1]
    elif row.part == "source":
        line = step.source_lines[row.number - 1]
    elif row.number and any(launched.kernel == step.kernel for launched in plan.steps):
        line = next(launched.span.line for launched in plan.steps if launched.kernel == step.kernel)
    else:
        line = next((k.span.line for k in cuda.source.kernels if k.name == step.kernel), 0)
    return (line - 1,) if line else ()


def _highlighted(text: Content, lines: CudaLines, cuda: CudaSide) -> Content:
    """Return a translated line with what its CUDA line's primitives became, in the colours of their kinds.

    A word is a primitive's when the table has it for that primitive, and the CUDA line only within the primitive.
    """
    for line in lines:
        before = words_of(cuda.lines[line].text.plain)
        for occurrence in cuda.here.get(line, ()):
            own = frozenset(word for word in words_of(occurrence.text) if len(word) > 1)
            table = words_of(f"{occurrence.primitive.metal} {occurrence.primitive.example}")
            words = (primitive_words()[occurrence.primitive.id] | table) - before | (own & table)
            text = _styled(text, words, kind_style(occurrence.primitive.kind))
    return text


def _styled(text: Content, words: frozenset[str], style: str) -> Content:
    for match in WORD.finditer(text.plain.split("//", 1)[0]):
        if match[0] in words:
            text = text.stylize(style, match.start(), match.end())
    return text


# -- an option's program -----------------------------------------------------------------------------------------------


def candidate_side(
    program: Program, failure: Failure | None, cuda: CudaSide, translated: MetalSide | None
) -> MetalSide:
    """Return an option's program beside ``cuda``; ``translated`` is the file's translation as far as there is one."""
    lines_of, styles = _lines_of_words(cuda)
    known = {(step.header, step.source): step for step in (translated.passes if translated else ())}
    lines: list[Line] = []
    cuda_of: list[CudaLines] = []
    metal_of: dict[int, dict[int, int]] = {}
    for number, row in enumerate(program_rows(program, failure)):
        step = program.passes[row.step]
        origin = known.get((step.header, step.source))
        code = row.line.text.plain.split("//", 1)[0] if row.part != "launch" else ""
        common = (
            _exact(row, origin)
            if origin
            else Counter(line for word in metal_words(code) for line in lines_of.get(word, ()))
        )
        most = max(common.values(), default=0)
        cuda_of.append(tuple(line for line, count in sorted(common.items()) if count == most))
        for line, count in common.items():
            metal_of.setdefault(line, {})[number] = count
        text = row.line.text
        if code:
            text = _highlighted(text, cuda_of[-1], cuda) if origin else _evident(text, styles)
        lines.append(replace(row.line, text=text))
    best = {line: tuple(row for row, n in rows.items() if n == max(rows.values())) for line, rows in metal_of.items()}
    return MetalSide(tuple(lines), tuple(cuda_of), best, _said(program, best, cuda), {})


def _exact(row: Row, origin: TranslatedPass) -> dict[int, int]:
    lines: Sequence[int] = {"header": origin.header_lines, "source": origin.source_lines}.get(row.part, ())
    line = lines[row.number - 1] if lines else 0
    return {line - 1: 1} if line else {}


def _evident(text: Content, styles: Mapping[str, str]) -> Content:
    for word in metal_words(text.plain.split("//", 1)[0]) & styles.keys():
        text = _styled(text, frozenset({word}), styles[word])
    return text


def _lines_of_words(cuda: CudaSide) -> tuple[dict[str, set[int]], dict[str, str]]:
    """Return, for each word of Metal, the CUDA lines that lead to it, and how it is shown."""
    lines: dict[str, set[int]] = {}
    styles: dict[str, str] = {}
    for line, names in cuda.patterns.items():
        for word in frozenset[str]().union(*(pattern_words()[name] for name in names)):
            lines.setdefault(word, set()).add(line)
            styles[word] = _PATTERN_STYLE
    for line, found in cuda.here.items():
        for occurrence in found:
            for word in primitive_words()[occurrence.primitive.id]:
                lines.setdefault(word, set()).add(line)
                styles[word] = kind_style(occurrence.primitive.kind)
    return lines, styles


def _said(program: Program, metal_of: Mapping[int, object], cuda: CudaSide) -> str:
    shown = [name for line, names in sorted(cuda.patterns.items()) if line in metal_of for name in names]
    in_common = f"in common: {', '.join(shown)}" if shown else "no pattern of this file in it"
    return f"{_passes(len(program.passes))} · {in_common}"


def _passes(count: int) -> str:
    return "1 pass" if count == 1 else f"{count} passes"
