"""The Mapping tab: the CUDA reference with its primitives, and what the line under the cursor becomes."""

from __future__ import annotations

import pytest

from ksearch_tui.widgets.line_view import LineView


@pytest.fixture
def mapped(run, settle, until):
    """Return what opens the Mapping tab and waits until the references are read."""

    async def show(pilot) -> LineView:
        await settle(pilot)
        await pilot.press("3", "enter")
        view = pilot.app.screen.query_one("#mapping-source", LineView)
        await until(pilot, lambda: len(view.lines) > 0)
        await pilot.pause()
        return view

    return show


def detail(pilot) -> str:
    return str(pilot.app.screen.query_one("#mapping-detail").content)


async def test_the_shuffle_is_marked_and_explained_under_the_cursor(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        view = await mapped(pilot)
        assert view.lines[7].text.plain.strip().startswith("sum += __shfl_xor_sync")
        for _ in range(20):
            await pilot.press("right_square_bracket")
            if view.cursor_line == 7:
                break
        await pilot.pause()
        assert "__shfl_xor_sync" in detail(pilot)
        assert "simd_shuffle_xor" in detail(pilot)


async def test_jumping_skips_lines_without_primitives_and_goes_round(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        view = await mapped(pilot)
        seen = [view.cursor_line]
        while True:
            await pilot.press("right_square_bracket")
            if view.cursor_line == seen[0]:
                break
            seen.append(view.cursor_line)
        assert seen == sorted(seen)
        assert all(view.lines[line].gutter.plain[5:].strip() for line in seen)
        await pilot.press("left_square_bracket")
        assert view.cursor_line == seen[-1]


async def test_a_line_of_plain_c_needs_no_mapping(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        await pilot.press("g")
        await pilot.pause()
        assert detail(pilot).startswith("line 1 needs no mapping")


async def test_f_shows_the_next_file_and_comes_round(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        head = pilot.app.screen.query_one("#mapping-head")
        assert str(head.content).startswith("row_sums.cu (1 of 2")
        await pilot.press("f")
        assert str(head.content).startswith("atomic_sums.cu (2 of 2")
        await pilot.press("f")
        assert str(head.content).startswith("row_sums.cu")


async def test_a_click_moves_the_cursor_to_the_line(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        view = await mapped(pilot)
        await pilot.click(view, offset=(30, 7))
        await pilot.pause()
        assert view.cursor_line == 7
        assert "__shfl_xor_sync" in detail(pilot)
