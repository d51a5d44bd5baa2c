"""What the Mapping tab says about a line of CUDA: what was refused or is open there, what it becomes, and the traps."""

from __future__ import annotations

from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.cuda_side import (
    CITED_SIGN,
    KIND_SIGNS,
    KIND_STYLES,
    REMARK_SIGNS,
    REMARK_STYLES,
    CudaSide,
    Remark,
)
from ksearch_tui.widgets.page import Paragraph
from translator.inventory import Occurrence
from translator.pattern_table import load_patterns

_LABEL_WIDTH = 14
_QUIET = "$foreground 60%"
_TRAP = ("trap: ", "bold $text-warning")


def describe_line(
    cuda: CudaSide, line: int, remarks: tuple[Remark, ...], *, cited: str = "", anew: bool = False
) -> list[Paragraph]:
    """Return what there is to say about ``line``, counted from 0; ``cited`` is the title of the option that names it.

    ``anew`` is for a line of Metal without one of CUDA: the CUDA line is then the nearest.
    """
    said = [_remark(remark) for remark in (*remarks, *cuda.unread.get(line, ()))]
    if cited:
        said.append(_entry(CITED_SIGN, "evidence", "bold $text-accent", f"the option “{one_line(cited)}” points here"))
    said += [_occurrence(occurrence) for occurrence in cuda.here.get(line, ())]
    said += [_pattern(name) for name in cuda.patterns.get(line, ())]
    if anew:
        said.insert(0, Paragraph(Content.assemble(("This line of Metal is written anew: no line of CUDA.", _QUIET))))
    elif not said:
        said.append(
            Paragraph(Content.assemble((f"line {line + 1} needs no mapping; ] and [ go to those that do", _QUIET)))
        )
    return said


def _entry(sign: str, label: str, style: str, *parts: str | tuple[str, str]) -> Paragraph:
    head = Content.assemble((f"{sign} {label:<{_LABEL_WIDTH - 2}}", style))
    return Paragraph(head + Content.assemble(*parts))


def _remark(remark: Remark) -> Paragraph:
    style = REMARK_STYLES[remark.kind]
    advice = f" → {one_line(remark.advice)}" if remark.advice else ""
    return _entry(REMARK_SIGNS[remark.kind], remark.kind, f"bold {style}", (one_line(remark.text), style), advice)


def _occurrence(occurrence: Occurrence) -> Paragraph:
    primitive = occurrence.primitive
    style = f"bold {KIND_STYLES[primitive.kind]}"
    parts: list[str | tuple[str, str]] = [
        (one_line(primitive.cuda), "bold"),
        " → ",
        (one_line(primitive.metal) or "nothing", style),
    ]
    if primitive.trap:
        parts += ["\n  ", _TRAP, one_line(primitive.trap)]
    return _entry(KIND_SIGNS[primitive.kind], primitive.kind, style, *parts)


def _pattern(name: str) -> Paragraph:
    pattern = next(pattern for pattern in load_patterns() if pattern.name == name)
    return _entry(
        "◇", "pattern", "bold $text-secondary", (name, "bold"), f": {one_line(pattern.says)}. {one_line(pattern.when)}",
        "\n  ", _TRAP, one_line(pattern.trap),
    )  # fmt: skip
