"""The Kernel tab: every pass of the program with its launch, or what it changes in its parent's program."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.line_view import Line, LineView
from ksearch_tui.widgets.look import Look
from ksearch_tui.wording import launch_lines
from search.evaluation.record import Failure
from search.kernels.program import Program
from search.kernels.text import program_to_text
from search.tree import Option, Tree, TreeError

_CONTEXT_LINES = 3
# difflib compares every line with every other at worst.
_MOST_LINES_TO_COMPARE = 6_000
_NUMBER = "$foreground 40%"
_HEADING = "bold $text-secondary"
_QUIET = "$foreground 60%"


class KernelTab(LineView):
    """The program of the option under the cursor."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.diff = False
        self._shown: tuple[str, str, bool, Failure | None] | None = None

    def show(self, look: Look) -> None:
        """Show the program of ``look``'s option."""
        option, tree = look.option, look.tree
        if option is None:
            self._replace([_remark("There is no option yet.")])
            return
        parent = tree.options.get(option.parent)
        failure = option.evaluations[-1].failure if option.evaluations else None
        key = (option.program, parent.program if self.diff and parent else "", self.diff, failure)
        if key == self._shown and option.program:
            return
        self._shown = key
        self.border_subtitle = "diff with parent" if self.diff else ""
        try:
            self._replace(self._lines_of(option, parent, tree, failure))
        except TreeError as error:
            self._replace([_remark(str(error))])

    def _lines_of(self, option: Option, parent: Option | None, tree: Tree, failure: Failure | None) -> list[Line]:
        if not option.program:
            return [_remark("Not written yet: approving the option has it written and evaluated.")]
        program = tree.program(option.program)
        if not self.diff:
            return program_lines(program, failure)
        if parent is None or not parent.program:
            return [_remark("There is no parent to compare with.")]
        return diff_lines(tree.program(parent.program), program)

    def _replace(self, lines: list[Line]) -> None:
        self.set_lines(lines)
        self.scroll_home(animate=False)


def _remark(text: str) -> Line:
    return Line(Content.assemble((one_line(text), _QUIET)))


@dataclass(frozen=True)
class Row:
    """A line of a program as it is shown.

    ``step`` counts its pass from 0; ``number`` counts the lines of that pass's ``header`` or ``source`` from 1. For the
    lines above those, ``part`` is ``launch``, and ``number`` counts them from 0.
    """

    line: Line
    step: int
    part: str
    number: int


def program_lines(program: Program, failure: Failure | None = None) -> list[Line]:
    """Return every pass: how it is launched, its header and its numbered source, the failing line marked."""
    return [row.line for row in program_rows(program, failure)]


def program_rows(program: Program, failure: Failure | None = None) -> list[Row]:
    """Return the lines of `program_lines`, each with its place in the program."""
    rows: list[Row] = []
    for number, step in enumerate(program.passes):
        count = f"pass {number + 1} of {len(program.passes)} · " if len(program.passes) > 1 else ""
        launch = [_unnumbered("")] if rows else []
        launch.append(_unnumbered(f"{count}{one_line(step.name)}", _HEADING))
        launch += [_unnumbered(one_line(text), _QUIET) for text in launch_lines(step)]
        at = failure.line if failure is not None and failure.pass_name in ("", step.name) else None
        rows += [Row(line, number, "launch", place) for place, line in enumerate(launch)]
        if step.header:
            rows.append(Row(_unnumbered("header", _HEADING), number, "launch", len(launch)))
            rows += [Row(line, number, "header", place) for place, line in enumerate(_numbered(step.header, None), 1)]
            rows.append(Row(_unnumbered("source", _HEADING), number, "launch", len(launch) + 1))
        rows += [Row(line, number, "source", place) for place, line in enumerate(_numbered(step.source, at), 1)]
    return rows


def _unnumbered(text: str, style: str = "") -> Line:
    return Line(Content.assemble((text, style)), Content("     "))


def _numbered(source: str, failing: int | None) -> list[Line]:
    # Imported here: the lexers are not needed for the first paint.
    from ksearch_tui.widgets.syntax import METAL, coloured_lines

    lines = []
    for number, text in enumerate(coloured_lines(source, METAL), start=1):
        failed = number == failing
        gutter = Content.assemble((f"{number:>4}{'✗' if failed else ' '}", "bold $text-error" if failed else _NUMBER))
        lines.append(Line(text, gutter, "on $error 25%" if failed else ""))
    return lines


def diff_lines(before: Program, after: Program) -> list[Line]:
    """Return the hunks between two programs as edited text: ``-`` and ``+`` lines with three lines around them."""
    from ksearch_tui.widgets.syntax import METAL, coloured_lines

    old_text, new_text = program_to_text(before), program_to_text(after)
    old, new = old_text.split("\n"), new_text.split("\n")
    if old == new:
        return [_remark("The program is the same as its parent's.")]
    if len(old) + len(new) > _MOST_LINES_TO_COMPARE:
        return [_remark(f"The programs have {len(old)} and {len(new)} lines: too many to compare here.")]
    coloured_old, coloured_new = coloured_lines(old_text, METAL), coloured_lines(new_text, METAL)
    lines: list[Line] = []
    for hunk in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT_LINES):
        lines.append(
            Line(Content.assemble((f"@@ line {hunk[0][1] + 1} → line {hunk[0][3] + 1}", _HEADING)), Content("  "))
        )
        for kind, from_old, to_old, from_new, to_new in hunk:
            if kind == "equal":
                lines += [Line(text, Content("  ")) for text in coloured_new[from_new:to_new]]
                continue
            lines += [_changed(text, "-", "error") for text in coloured_old[from_old:to_old]]
            lines += [_changed(text, "+", "success") for text in coloured_new[from_new:to_new]]
    return lines


def _changed(text: Content, sign: str, colour: str) -> Line:
    return Line(text, Content.assemble((f"{sign} ", f"bold $text-{colour}")), f"on ${colour} 15%")
