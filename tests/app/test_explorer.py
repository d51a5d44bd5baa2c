"""What a person does in the explorer, by keyboard and by mouse, at both ends of the sizes that must work."""

from __future__ import annotations

import pytest
from textual.widgets import Input, OptionList, TabbedContent

from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.help import HelpScreen
from ksearch_tui.screens.new_option import NewOptionDialog
from ksearch_tui.screens.redirect import RedirectDialog
from ksearch_tui.widgets.kernel_tab import KernelTab
from ksearch_tui.widgets.option_tree import OptionTree
from ksearch_tui.widgets.page import Page
from search.kernels.text import program_from_text
from search.option import APPROVED, FAILED, PASSED, PROPOSED, PRUNED, RUNNING
from search.proposers.base import ProposerError
from sessions.store import read_session

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])


def chosen(pilot) -> str:
    """Return the title of the option under the cursor."""
    return pilot.app.screen.option.title


async def press(pilot, settle, *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


@SIZES
async def test_a_new_run_evaluates_the_root_and_waits_with_what_is_proposed_under_it(run, settle, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        assert run.tree[run.tree.root].status == PASSED
        assert [run.tree[child].status for child in run.tree[run.tree.root].children] == [PROPOSED, PROPOSED]
        assert pilot.app.screen.query_one(OptionTree).chosen == run.tree.root


@SIZES
async def test_approving_has_the_option_evaluated_and_its_session_recorded(run, settle, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j", "a")
        assert chosen(pilot) == "one simdgroup a row"
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED
        assert run.tree.speedup(run.id_of("one simdgroup a row")) == pytest.approx(1.6)
        await pilot.press("q")
    assert [event.seq for event in read_session(run.session).events] == list(range(1, len(run.tree.events) + 1))
    assert read_session(run.session).events[-1].kind == "stopped"


@SIZES
async def test_pruning_folds_the_option_and_keeps_what_was_measured(run, settle, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j", "a", "x")
        option = run.tree[run.id_of("one simdgroup a row")]
        assert option.status == PRUNED
        assert option.passing is not None
        assert pilot.app.screen.options.cursor_node.is_collapsed


@SIZES
async def test_undo_brings_a_pruned_option_back_and_unfolds_it(run, settle, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j", "a", "x", "u")
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED
        assert pilot.app.screen.options.cursor_node.is_expanded


async def test_undo_of_an_option_of_ones_own_takes_it_off_the_screen_with_the_cursor_on_its_parent(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("n")
        await pilot.pause()
        await press(pilot, settle, *"mine", "enter")
        assert chosen(pilot) == "mine"
        await press(pilot, settle, "u")
        assert "mine" not in [option.title for option in run.tree.options.values()]
        assert chosen(pilot) == "one thread a row"


@SIZES
async def test_redirecting_adds_options_that_follow_the_guidance(run, settle, until, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        await pilot.press(*"two rows", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        await settle(pilot)
        assert [note.message for note in pilot.app._notifications] == ["1 option follows it."]
        added = run.tree[run.id_of("follow: two rows")]
        assert added.parent == run.tree.root
        assert run.tree[run.tree.root].guidance == ("two rows",)


@SIZES
async def test_a_question_is_asked_back_and_its_answer_is_the_guidance(run, settle, until, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        dialog = pilot.app.screen
        await pilot.press(*"go faster", "enter")
        await until(pilot, lambda: dialog.query_one(OptionList).has_focus)
        assert dialog.query_one(OptionList).option_count == 2
        assert run.tree[run.tree.root].guidance == ()
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        assert run.tree[run.tree.root].guidance == ("more rows [/b]",)
        assert "asked" in [event.kind for event in run.tree.events]


async def test_a_proposer_that_fails_is_said_in_the_dialog_and_the_text_stays(run, settle, until):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        dialog = pilot.app.screen
        await pilot.press(*"break", "enter")
        await until(pilot, lambda: "the model is not there" in str(dialog.query_one("#said").content))
        said = str(dialog.query_one("#said").content)
        assert said.endswith("What you said is kept as guidance for 'one thread a row' and all under it.")
        assert dialog.query_one(Input).value == "break"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        assert run.tree[run.tree.root].guidance == ("break",)
        await press(pilot, settle, "u")
        assert run.tree[run.tree.root].guidance == ()


@SIZES
async def test_an_option_of_ones_own_needs_a_title_and_lands_under_the_cursor(run, settle, until, size):
    async with run.app().run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewOptionDialog))
        dialog = pilot.app.screen
        await pilot.press("enter")
        await pilot.pause()
        assert "title" in str(dialog.query_one("#said").content)
        await pilot.press(*"mine", "tab", *"because", "enter")
        await settle(pilot)
        mine = run.tree[run.id_of("mine")]
        assert (mine.why, mine.by, mine.status) == ("because", "person", PROPOSED)
        assert chosen(pilot) == "mine"


async def test_pause_holds_approved_options_back_until_the_run_goes_on(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "space", "j", "a")
        assert run.tree[run.id_of("one simdgroup a row")].status == APPROVED
        await press(pilot, settle, "space")
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED


async def test_autopilot_runs_everything_and_records_who_decided(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "A")
        assert run.tree.stopped
        assert {option.status for option in run.tree.options.values()} == {PASSED, FAILED}
        assert run.tree[run.id_of("simd_sum")].approved_by == "autopilot"
        assert run.tree.best().title == "four elements a load"


async def test_autopilot_from_the_start_needs_no_key(run, settle):
    async with run.app(autopilot=True).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert run.tree.evaluations == 6


async def test_a_running_evaluation_shows_its_stage_and_the_person_can_go_on_deciding(run, settle, until):
    async with run.app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        run.evaluator.gate.clear()
        await press(pilot, settle, "j", "a")
        assert run.tree[run.id_of("one simdgroup a row")].status == RUNNING
        assert "checking 3/9" in str(pilot.app.screen.query_one("#status").content)
        await press(pilot, settle, "j", "x")
        assert run.tree[run.id_of("unroll ×8")].status == PRUNED
        run.evaluator.gate.set()
        await settle(pilot)
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED


async def test_pinning_is_switched_by_the_same_key(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j", "p")
        assert run.tree[run.id_of("one simdgroup a row")].pinned
        await press(pilot, settle, "p")
        assert not run.tree[run.id_of("one simdgroup a row")].pinned


async def test_more_options_are_asked_for_under_the_cursor_and_doubles_are_left_out(run, settle, until):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        run.proposer.proposals["one thread a row"] = [
            ("unroll ×8", "again", 3.0, 0.3, 1, 1.1),
            ("two rows a thread", "new", 5.0, 0.5, 2, 1.2),
        ]
        await pilot.press("m")
        await until(pilot, lambda: "two rows a thread" in [o.title for o in run.tree.options.values()])
        assert [o.title for o in run.tree.options.values()].count("unroll ×8") == 1


async def test_what_cannot_be_done_is_disabled_and_says_nothing(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        before = len(run.tree.events)
        assert pilot.app.screen.check_action("prune", ()) is None
        await press(pilot, settle, "x", "a")
        assert len(run.tree.events) == before


async def test_tabs_are_reached_by_number_and_by_tab(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        tabs = pilot.app.screen.query_one(TabbedContent)
        for number in "2345":
            await press(pilot, settle, number)
            assert tabs.active == f"tab-{number}"
        await press(pilot, settle, "tab")
        assert tabs.active == "tab-1"
        await press(pilot, settle, "shift+tab")
        assert tabs.active == "tab-5"


async def test_enter_goes_into_the_tab_and_escape_back(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "2", "enter")
        assert pilot.app.focused is pilot.app.screen.query_one(KernelTab)
        await press(pilot, settle, "J")
        assert chosen(pilot) == "one simdgroup a row"
        await press(pilot, settle, "escape")
        assert pilot.app.focused is pilot.app.screen.options


async def test_zoom_gives_the_screen_to_the_pane_in_use(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "z")
        assert not pilot.app.screen.query_one("#tabs").display
        assert pilot.app.screen.options.size.height > 15
        await press(pilot, settle, "z", "2", "enter", "z")
        assert not pilot.app.screen.query_one("#options-pane").display
        await press(pilot, settle, "escape")
        assert pilot.app.screen.query_one("#options-pane").display


async def test_finding_goes_to_titles_as_they_are_typed_and_on_with_enter(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j", "a")
        await pilot.press("slash", *"row")
        await pilot.pause()
        assert chosen(pilot) == "one simdgroup a row"
        await pilot.press("enter")
        await pilot.pause()
        assert chosen(pilot) == "one thread a row"
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.focused is pilot.app.screen.options


async def test_folding_and_the_ends_of_the_tree(run, settle):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "G")
        assert chosen(pilot) == "unroll ×8"
        await press(pilot, settle, "h")
        assert chosen(pilot) == "one thread a row"
        await press(pilot, settle, "h")
        assert pilot.app.screen.options.last_line == 0
        await press(pilot, settle, "l", "l")
        assert chosen(pilot) == "one simdgroup a row"
        await press(pilot, settle, "g")
        assert chosen(pilot) == "one thread a row"


async def test_best_goes_to_the_fastest_option_even_when_it_is_folded_away(run, settle):
    async with run.app(autopilot=True).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "h", "b")
        assert chosen(pilot) == "four elements a load"


async def test_help_lists_the_keys_and_closes(run, settle, until):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await until(
            pilot,
            lambda: (
                "Have the option written"
                in " ".join(line.text.plain for line in pilot.app.screen.query_one(Page).lines)
            ),
        )
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))


async def test_the_help_is_never_seen_wrapped_to_a_width_that_it_has_not(run, settle, until, monkeypatch):
    wrapped = []
    set_lines = Page.set_lines

    def watched(page, lines, **how):
        wrapped.append((page.id, len(lines)))
        set_lines(page, lines, **how)

    monkeypatch.setattr(Page, "set_lines", watched)
    async with run.app().run_test(size=(100, 90)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen) and pilot.app.screen.query_one(Page).lines)
        await pilot.pause()
        assert len({lines for page, lines in wrapped if page == "help-text"}) == 1


async def test_the_palette_offers_what_can_be_done_with_the_option_by_its_title(run, settle, until):
    async with run.app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "j")
        await pilot.press("ctrl+p")
        await pilot.pause()
        await pilot.press(*"approve one simd")
        palette = pilot.app.screen
        await until(pilot, lambda: palette.query_one(OptionList).option_count == 1)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: run.tree[run.id_of("one simdgroup a row")].status == PASSED)


async def test_a_click_chooses_an_option_and_a_click_on_the_footer_approves_it(run, settle, until):
    async with run.app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.click("#options", offset=(20, 1))
        await settle(pilot)
        assert chosen(pilot) == "one simdgroup a row"
        await pilot.click("FooterKey")
        await until(pilot, lambda: run.tree[run.id_of("one simdgroup a row")].status == PASSED)


async def test_a_click_on_a_tab_shows_it(run, settle):
    async with run.app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.click("#--content-tab-tab-4")
        await settle(pilot)
        assert pilot.app.screen.query_one(TabbedContent).active == "tab-4"
        assert pilot.app.focused is pilot.app.screen.options


async def test_a_key_of_ones_own_takes_the_place_of_the_default(run, settle, tmp_path):
    keys = tmp_path / "config" / "ksearch-tui" / "keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('approve = "y"\nprun = "z"\n', encoding="utf-8")
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert [note.message for note in pilot.app._notifications] == [
            f"{keys}: there is no action 'prun': did you mean 'prune'?"
        ]
        await press(pilot, settle, "j", "a")
        assert run.tree[run.id_of("one simdgroup a row")].status == PROPOSED
        await press(pilot, settle, "y")
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED


async def test_the_program_is_written_to_a_file_that_reads_back(run, settle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "w", "w")
        [first, second] = sorted(tmp_path.glob("row_sums-*.metal"), key=lambda path: len(path.name))
        assert second.name == f"{first.stem}-2.metal"
        assert program_from_text(first.read_text(encoding="utf-8")) == run.tree.program(run.tree[run.tree.root].program)


async def test_a_proposer_that_fails_to_propose_is_said_and_the_run_goes_on(run, settle, until):
    async def propose(situation, option):
        raise ProposerError("the model [/b] is not there")

    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        run.proposer.propose = propose
        await pilot.press("m")
        await until(pilot, lambda: "the model [/b] is not there" in [note.message for note in pilot.app._notifications])
        await press(pilot, settle, "j", "a")
        assert run.tree[run.id_of("one simdgroup a row")].status == PASSED


async def test_selected_text_is_the_kernels_without_line_numbers(run, settle):
    async with run.app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, settle, "2", "enter")
        kernel = pilot.app.screen.query_one(KernelTab)
        pilot.app.screen.text_select_all()
        await pilot.pause()
        assert "uint row = thread_position_in_grid.x;\nfloat sum = 0.0f;" in pilot.app.screen.get_selected_text()
        assert kernel.lines[4].gutter.plain == "   1 "
