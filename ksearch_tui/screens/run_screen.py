"""A run on the screen: the options, the tabs, and how to move among them; the explorer and the replay build on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, TabbedContent, TabPane
from textual.widgets import Tree as TreeWidget

from ksearch_tui.editor import write_new
from ksearch_tui.inert import one_line
from ksearch_tui.screens.reply import ReplyScreen
from ksearch_tui.widgets.activity_log import ActivityLog
from ksearch_tui.widgets.activity_tab import ActivityTab
from ksearch_tui.widgets.kernel_tab import KernelTab
from ksearch_tui.widgets.look import Look, Tab
from ksearch_tui.widgets.mapping_tab import MappingTab
from ksearch_tui.widgets.option_tab import OptionTab
from ksearch_tui.widgets.option_tree import OptionTree
from ksearch_tui.widgets.progress_so_far import ProgressSoFar
from ksearch_tui.widgets.run_header import RunHeader
from ksearch_tui.widgets.status_line import StatusLine
from ksearch_tui.widgets.timing_tab import TimingTab
from ksearch_tui.widgets.too_small import TooSmall
from search import policy, spending
from search.calibration import Calibration
from search.config import RunConfig
from search.kernels.text import program_to_text
from search.problems.definition import Problem
from search.tree import Option, Tree, TreeError

TABS = ("Option", "Kernel", "Mapping", "Timing", "Activity")


class RunScreen(Screen[None]):
    """Shows one run; whoever changes the run calls `refresh_run`. ``elapsed`` gives its seconds so far."""

    CSS_PATH = "../styles/run.tcss"
    AUTO_FOCUS = "#options"

    def __init__(self, config: RunConfig, tree: Tree, elapsed: Callable[[], float]) -> None:
        super().__init__()
        self.config = config
        self.run_state = tree
        self.elapsed = elapsed
        self.problem: Problem | None = None
        self._progress = ProgressSoFar()
        self._last_look: Look | None = None

    def compose(self) -> ComposeResult:
        yield RunHeader(id="header")
        with Container(id="panes"):
            with Vertical(id="options-pane"):
                yield OptionTree(id="options")
                yield Input(placeholder="find an option: Enter next, Esc back", id="find", compact=True)
            with TabbedContent(id="tabs"):
                for number, (title, tab) in enumerate(zip(TABS, self._tabs(), strict=True), start=1):
                    with TabPane(title, id=f"tab-{number}"):
                        yield tab
        yield from self.compose_bottom()
        yield Footer(show_command_palette=False, compact=True)
        yield TooSmall()

    def compose_bottom(self) -> ComposeResult:
        """Compose what stands between the panes and the footer."""
        yield StatusLine(self.elapsed, self.seconds_left, id="status")

    def seconds_left(self) -> float | None:
        """Return how long the run may still go on, None where there is no limit."""
        return spending.seconds_left(spending.Budget.of(self.config), self.run_state, self.now())

    def now(self) -> datetime:
        """Return the moment that the screen shows."""
        return datetime.now(UTC)

    @staticmethod
    def _tabs() -> tuple[OptionTab, KernelTab, MappingTab, TimingTab, ActivityTab]:
        return (
            OptionTab(id="option"),
            KernelTab(id="kernel"),
            MappingTab(id="mapping"),
            TimingTab(id="timing"),
            ActivityTab(id="activity"),
        )

    def on_mount(self) -> None:
        """Name the panes, keep the focus out of the row of tabs, and say at once which run this is."""
        self.query_one("#options-pane").border_title = "Options"
        self.query_one("#tabs Tabs").can_focus = False
        self.refresh_run()

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def options(self) -> OptionTree:
        """The tree of options on the screen."""
        return self.query_one("#options", OptionTree)

    @property
    def option(self) -> Option | None:
        """The option under the cursor; the root before there is a cursor."""
        return self.run_state.options.get(self.options.chosen or self.run_state.root)

    def look(self) -> Look:
        """Return the run as it is now."""
        tree, last = self.run_state, self._last_look
        if last is not None and last.tree is tree and last.seen == len(tree.events):
            # Only the cursor has moved: what takes a walk over all options is still right.
            return replace(last, option=self.option, problem=self.problem)
        calibration = Calibration.of(tree)
        choice = None if tree.autopilot else policy.own_choice(tree, calibration)
        self._last_look = Look(
            config=self.config,
            tree=tree,
            option=self.option,
            problem=self.problem,
            seen=len(tree.events),
            calibration=calibration,
            policy_next=choice.option if choice else "",
            found=self._progress.update(tree),
            best=tree.best(),
        )
        return self._last_look

    def refresh_run(self) -> None:
        """Bring everything in view in line with the run."""
        look = self.look()
        with self.app.batch_update():
            self.options.sync(look)
            self.query_one(RunHeader).show(look)
            self.query_one(StatusLine).show(look)
            self._shown_tab().show(look)
        if self.options.cursor_line < 0 and self.run_state.root:
            self.options.choose(self.run_state.root)

    def _shown_tab(self) -> Tab:
        pane = self.query_one(TabbedContent).active_pane
        return cast(Tab, pane.children[0] if pane is not None else self.query_one(OptionTab))

    @on(TreeWidget.NodeHighlighted)
    def _option_chosen(self) -> None:
        self._shown_tab().show(self.look())
        self.option_changed()

    def option_changed(self) -> None:
        """Called when the cursor is on another option."""

    @on(TabbedContent.TabActivated)
    def _tab_chosen(self) -> None:
        tab = self._shown_tab()
        self.set_class(isinstance(tab, MappingTab), "-two-sides")
        tab.show(self.look())

    # -- moving ------------------------------------------------------------------------------------------------------

    def action_show_tab(self, number: int) -> None:
        """Show a tab by its number, from 1."""
        tabs = self.query_one(TabbedContent)
        inside = self._in_tab()
        tabs.active = f"tab-{number}"
        if inside:
            self.call_after_refresh(self.action_details)

    def action_next_tab(self) -> None:
        """Show the tab to the right, from the last the first."""
        self.action_show_tab(self._tab_number() % len(TABS) + 1)

    def action_previous_tab(self) -> None:
        """Show the tab to the left, from the first the last."""
        self.action_show_tab((self._tab_number() - 2) % len(TABS) + 1)

    def _tab_number(self) -> int:
        return int(self.query_one(TabbedContent).active.removeprefix("tab-"))

    def _in_tab(self) -> bool:
        return self.focused is not None and self.query_one(TabbedContent) in self.focused.ancestors

    def action_details(self) -> None:
        """Move the focus into the tab."""
        pane = self.query_one(TabbedContent).active_pane
        if pane is not None:
            inside = [widget for widget in pane.query("*") if widget.focusable]
            if inside:
                inside[0].focus()

    def action_back(self) -> None:
        """Leave the find line, the zoom or the tab."""
        find = self.query_one("#find", Input)
        if find.display:
            find.display = False
        elif self.has_class("-zoom-tab") or self.has_class("-zoom-options"):
            self.remove_class("-zoom-tab", "-zoom-options")
        self.options.focus()

    def action_zoom(self) -> None:
        """Give the whole screen to the pane with the focus, or share it again."""
        zoomed = "-zoom-tab" if self._in_tab() else "-zoom-options"
        if self.has_class("-zoom-tab") or self.has_class("-zoom-options"):
            self.remove_class("-zoom-tab", "-zoom-options")
        else:
            self.add_class(zoomed)

    def action_next_option(self) -> None:
        """Put the cursor on the option below."""
        self.options.action_cursor_down()

    def action_previous_option(self) -> None:
        """Put the cursor on the option above."""
        self.options.action_cursor_up()

    def action_fold(self) -> None:
        """Fold the option, or go to its parent."""
        self.options.fold()

    def action_unfold(self) -> None:
        """Unfold the option, or go to its first child."""
        self.options.unfold()

    def action_best(self) -> None:
        """Put the cursor on the fastest option."""
        best = self.run_state.best()
        if best is not None:
            self.options.choose(best.id)

    def action_diff(self) -> None:
        """Show the Kernel tab as a diff with the parent, or whole again."""
        kernel = self.query_one(KernelTab)
        if self._shown_tab() is kernel:
            kernel.diff = not kernel.diff
            kernel.show(self.look())
        else:
            kernel.diff = True
            self.action_show_tab(TABS.index("Kernel") + 1)

    def action_evidence(self) -> None:
        """Show the CUDA that the option points at."""
        mapping = self.query_one(MappingTab)
        mapping.show(self.look())
        if mapping.go_to_evidence():
            self.action_show_tab(TABS.index("Mapping") + 1)
            self.call_after_refresh(self.action_details)
        else:
            self.notify("The option points at no line of a CUDA reference.", markup=False)

    def action_save_kernel(self) -> None:
        """Write the option's program into a file in the working folder, as `e` edits it and `check` reads it."""
        option = self.option
        if option is None or not option.program:
            self.notify("There is no program yet.", severity="warning", markup=False)
            return
        stem = f"{self.config.problem_name}-{option.id}"
        try:
            text = program_to_text(self.run_state.program(option.program))
            path = write_new(Path.cwd(), stem, ".metal", text)
        except (OSError, TreeError) as error:
            self.notify(one_line(str(error)), title="Not written", severity="error", markup=False)
            return
        self.notify(str(path), title="Written", timeout=8, markup=False)

    def on_activity_log_opened(self, event: ActivityLog.Opened) -> None:
        """Show a model's reply in full."""
        self.app.push_screen(ReplyScreen(event.replied, self.run_state))

    # -- finding -----------------------------------------------------------------------------------------------------

    def action_find(self) -> None:
        """Open the find line."""
        self.remove_class("-zoom-tab")
        find = self.query_one("#find", Input)
        find.value = ""
        # Shown and focused at once, not with the next refresh: the next key is meant for it already.
        find.display = True
        self.set_focus(find)

    @property
    def finding(self) -> bool:
        """Whether the find line is open; no key does anything to the run then."""
        return self.focused is not None and self.focused.id == "find"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave every key but those that leave it to the find line while it is open."""
        return action == "back" if self.finding else True

    @on(Input.Changed, "#find")
    def _find_as_typed(self, event: Input.Changed) -> None:
        self._find(event.value, after=False)

    @on(Input.Submitted, "#find")
    def _find_next(self, event: Input.Submitted) -> None:
        self._find(event.value, after=True)

    def _find(self, wanted: str, *, after: bool) -> None:
        """Put the cursor on the next option with ``wanted`` in its title: from the cursor on, or only after it."""
        if not wanted or not self.run_state.root:
            return
        order = [option.id for option in self.run_state.subtree(self.run_state.root)]
        at = order.index(self.options.chosen) if self.options.chosen in order else 0
        start = at + 1 if after else at
        for name in (*order[start:], *order[:start]):
            if wanted.casefold() in one_line(self.run_state[name].title).casefold():
                self.options.choose(name)
                return
        self.notify(f"No option has “{one_line(wanted)}” in its title.", severity="warning", markup=False)
