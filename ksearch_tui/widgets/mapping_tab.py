"""The Mapping tab: a CUDA reference of the problem, Metal beside it, and what to know of the line under the cursor.

The Metal is the reference's translation or the option's program. Both sides have one cursor: moving it in one moves it
in the other, and the lines that go together are marked.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker, WorkerState, get_current_worker

from ksearch_tui.brisk_threads import brisk_threads
from ksearch_tui.inert import one_line
from ksearch_tui.keys import bindings
from ksearch_tui.widgets.candidate import Candidate, candidate_of
from ksearch_tui.widgets.cited import Place, cited_places
from ksearch_tui.widgets.detail_view import DetailView
from ksearch_tui.widgets.line_view import LineView
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.page import Paragraph
from search.option import Option
from search.problems.definition import Problem

if TYPE_CHECKING:
    from ksearch_tui.widgets.cuda_side import CudaSide
    from ksearch_tui.widgets.metal_side import MetalSide

TRANSLATION, CANDIDATE = "translation", "candidate"

_BESIDE_WIDTH = 80
"""Columns that two sides need beside each other."""

_STACKED_HEIGHT = 28
"""Lines that two sides need one above the other."""

_LOW_HEIGHT = 20
_FIRST_PAUSE_SECONDS = 1.0
"""How long after its first lines a translation that grows is shown anew; each next pause is twice as long."""

_QUIET = "$foreground 60%"


class MappingTab(Vertical):
    """Two sides with one cursor, and a line under them that explains."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("mapping")

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._problem: Problem | None = None
        self._files: tuple[Path, ...] = ()
        self._at = 0
        self._sides: dict[Path, CudaSide] = {}
        self._translations: dict[Path, MetalSide] = {}
        self._metal: MetalSide | None = None
        self._shows = TRANSLATION
        self._option: Option | None = None
        self._candidate = Candidate()
        self._wanted: Place | None = None
        self._anew = False

    def compose(self) -> ComposeResult:
        with Container(id="mapping-sides"):
            with Vertical(id="mapping-left", classes="side"):
                yield Static("", id="mapping-cuda-head", classes="head", markup=False)
                yield LineView(cursor=True, id="mapping-cuda")
            with Vertical(id="mapping-right", classes="side"):
                yield Static("", id="mapping-metal-head", classes="head", markup=False)
                yield LineView(cursor=True, id="mapping-metal")
        yield DetailView(id="mapping-detail")

    def on_resize(self, event: events.Resize) -> None:
        """Put the sides beside each other, one above the other, or show one at a time, as there is room."""
        beside = event.size.width >= _BESIDE_WIDTH and not self.screen.has_class("-narrow")
        stacked = not beside and event.size.height >= _STACKED_HEIGHT
        self.set_class(beside, "-beside")
        self.set_class(stacked, "-stacked")
        self.set_class(not beside and not stacked, "-single")
        self.set_class(self.has_class("-single") and self._metal_view.has_focus, "-metal")
        self.set_class(event.size.height < _LOW_HEIGHT, "-short")
        self._heads()

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def _cuda_view(self) -> LineView:
        return self.query_one("#mapping-cuda", LineView)

    @property
    def _metal_view(self) -> LineView:
        return self.query_one("#mapping-metal", LineView)

    @property
    def _detail_view(self) -> DetailView:
        return self.query_one("#mapping-detail", DetailView)

    @property
    def _path(self) -> Path | None:
        return self._files[self._at] if self._files else None

    @property
    def _cuda(self) -> CudaSide | None:
        return self._sides.get(self._path) if self._path else None

    def show(self, look: Look) -> None:
        """Show the references of the look's problem, which are read once, and its option."""
        self._take_option(look)
        if look.problem is None or look.problem is self._problem:
            return
        self._problem, self._files = look.problem, look.problem.cuda
        self._take_option(look)
        if self._files:
            self._show_file(self._wanted.path if self._wanted else self._files[0])
        else:
            self._cuda_says("This problem has no CUDA reference.")

    def _take_option(self, look: Look) -> None:
        """Note which program the candidate is, and mark what the option points at."""
        before, self._option = self._option, look.option
        candidate = candidate_of(look)
        changed, self._candidate = candidate != self._candidate, candidate
        if self._cuda is None:
            return
        if changed and self._shows == CANDIDATE:
            self._show_metal()
        elif cited_places(before, self._files) != cited_places(look.option, self._files):
            self._mark_cuda()
            self._detail()

    def _show_file(self, path: Path) -> None:
        self._at = self._files.index(path)
        self._metal = None
        self._metal_view.set_lines([])
        if path in self._sides:
            self._show_cuda()
        else:
            self._cuda_view.set_lines([])
            self._cuda_says("Reading…")
            self._read(path)

    @work(thread=True, exclusive=True, group="read", exit_on_error=False)
    def _read(self, path: Path) -> None:
        # Imported here, in the reading thread: the parser and the lexers are not needed for the first paint.
        from ksearch_tui.widgets.cuda_side import read_cuda_side
        from translator.mistakes import CudaInputError

        worker = get_current_worker()
        try:
            with brisk_threads():
                side = read_cuda_side(path)
        except OSError as error:
            said = f"{path}: {error.strerror or error}"
        except CudaInputError as error:
            said = str(error)
        else:
            if not worker.is_cancelled:
                self.app.call_from_thread(self._has_read, side)
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._cuda_says, said, wrong=True)

    def _has_read(self, side: CudaSide) -> None:
        self._sides[side.path] = side
        if side.path == self._path:
            self._show_cuda()

    def _show_cuda(self) -> None:
        """Show the file that has been read, the cursor on what is wanted or on the first primitive."""
        side = self._cuda
        assert side is not None
        self._mark_cuda()
        self._show_metal()
        first = min(side.here, default=0)
        if self._wanted is not None and self._wanted.path == side.path:
            first, self._wanted = self._wanted.line - 1, None
        self._go_to(first)

    def _mark_cuda(self) -> None:
        """Put into the gutter what the translation refuses or asks, and what the option points at."""
        from ksearch_tui.widgets.cuda_side import marked_lines

        side = self._cuda
        if side is None:
            return
        translation = self._translations.get(side.path)
        remarks = {**side.unread, **(translation.remarks if translation else {})}
        self._cuda_view.set_lines(marked_lines(side, remarks, self._cited()))
        self._heads()

    def _cited(self) -> frozenset[int]:
        """Return the lines of the shown file that the option points at, from 0."""
        places = cited_places(self._option, self._files)
        return frozenset(place.line - 1 for place in places if place.path == self._path)

    def _show_metal(self) -> None:
        """Show the translation or the candidate; whatever isn't there yet is written in a thread."""
        side = self._cuda
        if side is None:
            return
        translated = self._translations.get(side.path)
        if self._shows == CANDIDATE and self._candidate.program is None:
            self._metal_says(self._candidate.missing)
        elif self._shows == CANDIDATE:
            self._metal_says("Reading the option's program…")
            self._compare(side, self._candidate, translated)
        elif translated is None:
            self._metal_says("Translating…")
        else:
            self._set_metal(translated)
        if translated is None:
            self._translate(side)

    @work(thread=True, exclusive=True, group="translate", exit_on_error=False)
    def _translate(self, side: CudaSide) -> None:
        from ksearch_tui.widgets.metal_side import translations

        worker = get_current_worker()
        due, pause = 0.0, _FIRST_PAUSE_SECONDS
        latest = None
        with brisk_threads():
            for latest in translations(side):
                if worker.is_cancelled:
                    return
                if time.monotonic() > due:
                    self.app.call_from_thread(self._has_translated, side.path, latest, done=False)
                    due, pause = time.monotonic() + pause, 2 * pause
        if latest is not None and not worker.is_cancelled:
            self.app.call_from_thread(self._has_translated, side.path, latest, done=True)

    def _has_translated(self, path: Path, metal: MetalSide, *, done: bool) -> None:
        if done:
            self._translations[path] = metal
        if path != self._path:
            return
        if done:
            self._mark_cuda()
        if self._shows == TRANSLATION:
            self._set_metal(metal)
        elif done:
            self._show_metal()

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def _compare(self, side: CudaSide, candidate: Candidate, translated: MetalSide | None) -> None:
        from ksearch_tui.widgets.metal_side import candidate_side

        worker = get_current_worker()
        assert candidate.program is not None
        with brisk_threads():
            metal = candidate_side(candidate.program, candidate.failure, side, translated)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._has_compared, side.path, candidate, metal)

    def _has_compared(self, path: Path, candidate: Candidate, metal: MetalSide) -> None:
        if self._shows == CANDIDATE and path == self._path and self._candidate == candidate:
            self._set_metal(metal)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say in place what went wrong with a file; the other files and the run go on."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            said = f"This can't be shown: {type(error).__name__}: {error}"
            if event.worker.group == "read":
                self._cuda_says(said, wrong=True)
            else:
                self._metal_says(said)

    def _set_metal(self, metal: MetalSide) -> None:
        self._metal = metal
        self._metal_view.set_lines(metal.lines)
        self._heads()
        self._moved(self._cuda_view)

    def _cuda_says(self, text: str, *, wrong: bool = False) -> None:
        """Say why there is no CUDA to show."""
        said = Content.assemble((one_line(text), "$text-error" if wrong else _QUIET))
        more = "\nf: the next file" if len(self._files) > 1 else ""
        self._head("#mapping-cuda-head", said, (more, _QUIET))
        self._head("#mapping-metal-head")
        # Here it has room to wrap.
        self._detail_view.tell([Paragraph(said)])

    def _metal_says(self, text: str) -> None:
        """Say why there is no Metal to show."""
        from ksearch_tui.widgets.metal_side import empty_side

        self._set_metal(empty_side(text))

    # -- the heads ---------------------------------------------------------------------------------------------------

    def _heads(self) -> None:
        from ksearch_tui.widgets.mapping_heads import cuda_head, metal_head

        side = self._cuda
        if side is None:
            return
        single, short = self.has_class("-single"), self.has_class("-short")
        self._head("#mapping-cuda-head", cuda_head(side, self._at + 1, len(self._files), single=single, short=short))
        other = CANDIDATE if self._shows == TRANSLATION else TRANSLATION
        said = self._metal.said if self._metal else ""
        self._head("#mapping-metal-head", metal_head(self._shows, other, said, single=single, short=short))

    def _head(self, selector: str, *parts: str | Content | tuple[str, str]) -> None:
        self.query_one(selector, Static).update(Content.assemble(*parts))

    # -- moving together ---------------------------------------------------------------------------------------------

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Follow in the other side."""
        event.stop()
        self._moved(event.view)

    def _moved(self, leader: LineView) -> None:
        """Bring the other side to where a person went, and explain the line of CUDA."""
        side, metal = self._cuda, self._metal
        cuda_view, metal_view = self._cuda_view, self._metal_view
        if side is None or metal is None:
            self._detail()
            return
        row = leader.cursor_line - leader.scroll_offset.y
        if leader is metal_view:
            number = leader.cursor_line
            found = metal.cuda_of[number] if number < len(metal.cuda_of) else ()
            self._anew = not found
            if found:
                nearest = min(found, key=lambda line: abs(line - cuda_view.cursor_line))
                cuda_view.follow(nearest, row)
            cuda_view.set_linked(frozenset(found))
            metal_view.set_linked(frozenset())
        else:
            self._anew = False
            line = leader.cursor_line
            rows = metal.metal_of.get(line, ())
            near = metal.near(line, side.function_of(line)) if self._shows == TRANSLATION else None
            if rows:
                metal_view.follow(min(rows, key=lambda number: abs(number - metal_view.cursor_line)), row)
            elif near is not None:
                metal_view.follow(near, row)
            metal_view.set_linked(frozenset(rows))
            cuda_view.set_linked(frozenset())
        self._detail()

    def _go_to(self, line: int) -> None:
        """Put the cursor on a line of the CUDA, and the other side with it."""
        with self.prevent(LineView.CursorMoved):
            self._cuda_view.cursor_line = line
        self._moved(self._cuda_view)

    def _detail(self) -> None:
        from ksearch_tui.widgets.mapping_detail import describe_line

        side = self._cuda
        if side is None:
            self._detail_view.tell([])
            return
        line = self._cuda_view.cursor_line
        translation = self._translations.get(side.path)
        remarks = translation.remarks.get(line, ()) if translation else ()
        cited = self._option.title if self._option is not None and line in self._cited() else ""
        self._detail_view.tell(describe_line(side, line, remarks, cited=cited, anew=self._anew))

    # -- keys --------------------------------------------------------------------------------------------------------

    def action_next_file(self) -> None:
        """Show the next file."""
        if self._files:
            self._show_file(self._files[(self._at + 1) % len(self._files)])

    def action_candidate(self) -> None:
        """Show the option's program beside the CUDA, or the translation again."""
        self._shows = CANDIDATE if self._shows == TRANSLATION else TRANSLATION
        self._show_metal()

    def action_other_side(self) -> None:
        """Go to the other side; where there is room for one, it takes the place of this one."""
        to_metal = not self._metal_view.has_focus
        self.set_class(to_metal and self.has_class("-single"), "-metal")
        (self._metal_view if to_metal else self._cuda_view).focus()

    def action_detail_down(self) -> None:
        """Read on in what is said about the line."""
        self._detail_view.read_on(1)

    def action_detail_up(self) -> None:
        """Read back in what is said about the line."""
        self._detail_view.read_on(-1)

    def action_next_occurrence(self) -> None:
        """Go to the next line with a primitive or a remark, from the last to the first."""
        self._jump(up=False)

    def action_previous_occurrence(self) -> None:
        """Go to the line with a primitive or a remark above, from the first to the last."""
        self._jump(up=True)

    def _jump(self, *, up: bool) -> None:
        side = self._cuda
        if side is None:
            return
        translation = self._translations.get(side.path)
        lines = sorted({*side.here, *side.unread, *(translation.remarks if translation else ())}, reverse=up)
        if lines:
            at = self._cuda_view.cursor_line
            self._go_to(next((line for line in lines if (line < at if up else line > at)), lines[0]))

    def go_to_evidence(self) -> bool:
        """Go to the first place that the option points at, from there to the next; False when it points at none."""
        places = cited_places(self._option, self._files)
        if not places:
            return False
        here = Place(self._path or places[0].path, self._cuda_view.cursor_line + 1)
        self._wanted = places[(places.index(here) + 1) % len(places)] if here in places else places[0]
        if self._wanted.path != self._path:
            self._show_file(self._wanted.path)
        elif self._cuda is not None:
            line, self._wanted = self._wanted.line - 1, None
            self._go_to(line)
        return True
