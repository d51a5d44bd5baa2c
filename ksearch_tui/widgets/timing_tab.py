"""The Timing tab: every workload's time with what bounds it, and the best so far over the evaluations."""

from __future__ import annotations

from textual.content import Content

from ksearch_tui.headless.summary import format_seconds
from ksearch_tui.inert import one_line
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.page import Page, Paragraph
from ksearch_tui.widgets.progress_so_far import bar_chart, best_so_far
from ksearch_tui.wording import failure_sentence, plural, times
from search.devices.base import MODELLED
from search.evaluation.record import Evaluation, WorkloadTime
from search.tree import Option

_CHART_HEIGHT = 6
_LEAST_WIDTH = 30
_WIDEST_COLUMN_CHART = 4
_BAR_CELLS = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_QUIET = "$foreground 60%"
_HEADING = "bold $text-secondary"


class TimingTab(Page):
    """The times of the option under the cursor, and of the run."""

    _shown: tuple[Option | None, int, int] | None = None
    _look: Look | None = None

    def show(self, look: Look) -> None:
        """Show the times of ``look``."""
        self._look = look
        width = max(_LEAST_WIDTH, self.scrollable_content_region.width)
        key = (look.option, len(look.found), width)
        if key == self._shown:
            return
        self._shown = key
        lines = [*_option_lines(look, width), Content(""), *_run_lines(look, width)]
        self.write([Paragraph(line) for line in lines])

    def on_resize(self) -> None:
        """Draw again for another width."""
        super().on_resize()
        if self._look is not None:
            self.show(self._look)


def _option_lines(look: Look, width: int) -> list[Content]:
    option = look.option
    if option is None:
        return [Content.assemble(("There is no option yet.", _QUIET))]
    found = option.passing
    if found is None:
        failure = option.evaluations[-1].failure if option.evaluations else None
        said = f"No time: {failure_sentence(failure)}" if failure else "No time yet: it has not been evaluated."
        return [Content.assemble((one_line(said), _QUIET))]
    root = look.tree.options[look.tree.root].passing
    label = f"{found.kind} · {found.on} · {plural(found.cases, 'case')} proven"
    return [Content.assemble((label, _HEADING)), *time_table(found, root, width)]


def time_table(found: Evaluation, root: Evaluation | None, width: int) -> list[Content]:
    """Return one line a workload (time, speedups, share of the roofline, bound), and the modelled terms under each."""
    naive = {time.workload: time.seconds for time in root.times} if root and (root.kind, root.on) == _of(found) else {}
    name_width = max(8, min(36, width - 37, max((len(time.workload) for time in found.times), default=8)))
    heading = f"{'workload':<{name_width}}{'time':>10}{'× naive':>9}{'× MLX':>8}{'roofline':>10}"
    lines = [Content.assemble((heading, _QUIET))]
    for time in found.times:
        name = one_line(time.workload)
        name = name if len(name) <= name_width else name[: name_width - 1] + "…"
        speedup = times(naive[time.workload] / time.seconds) if time.workload in naive else "—"
        over_mlx = times(time.baseline_seconds / time.seconds) if time.baseline_seconds else "—"
        share = f"{time.roofline_seconds / time.seconds:.0%}"
        figures = f"{format_seconds(time.seconds):>10}{speedup:>9}{over_mlx:>8}{share:>10}"
        lines.append(Content.assemble(f"{name:<{name_width}}", (figures, "bold")))
        if found.kind == MODELLED:
            lines += _terms(time)
        else:
            interval = f"  {format_seconds(time.low)} … {format_seconds(time.high)} (95 %)"
            lines.append(Content.assemble((interval, _QUIET)))
    return lines


def _of(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.kind, evaluation.on


def _terms(time: WorkloadTime) -> list[Content]:
    """Return a bar for each term that takes a hundredth of the longest or more, the longest first."""
    longest = max(time.terms.values(), default=0.0)
    lines = []
    for name, seconds in sorted(time.terms.items(), key=lambda term: -term[1]):
        if longest <= 0 or seconds < longest / 100:
            continue
        bound = name == time.bound_by
        lines.append(
            Content.assemble(
                (f"  {one_line(name):<14}", "" if bound else _QUIET),
                (_bar(seconds / longest), "$text-warning" if bound else "$text-primary"),
                (f" {format_seconds(seconds)}", _QUIET),
                (" ← bound" if bound else "", "$text-warning"),
            )
        )
    return lines


def _bar(share: float) -> str:
    eighths = max(1, round(share * _BAR_CELLS * 8))
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + _EIGHTHS[rest].strip()).ljust(_BAR_CELLS)


def _run_lines(look: Look, width: int) -> list[Content]:
    best = best_so_far(look.found)
    if not best or best[-1] <= 0:
        return []
    axis = 8
    room = max(1, width - axis)
    column = max(1, min(_WIDEST_COLUMN_CHART, room // len(best)))
    rows = bar_chart(best, room, _CHART_HEIGHT)
    lines = [Content.assemble(("best so far, × naive, by evaluation", _HEADING))]
    for number, row in enumerate(rows):
        label = times(best[-1]) if number == 0 else ""
        wide = "".join(cell * column for cell in row)
        lines.append(Content.assemble((f"{label:>6} ", _QUIET), ("│", _QUIET), (wide, "$text-success")))
    marks = "".join(("·" if speedup else "✗").ljust(column) for speedup in look.found[:room])
    lines.append(Content.assemble((f"{'':6} └", _QUIET), (marks if len(best) <= room else "─" * room, _QUIET)))
    failed = sum(1 for speedup in look.found if not speedup)
    lines.append(Content.assemble((f"{'':8}{plural(len(best), 'evaluation')}, {failed} failed (✗)", _QUIET)))
    return lines
