"""The Mapping tab: a CUDA reference and Metal with one cursor, and what is said about the line under it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch_tui.widgets.line_view import LineView

SHUFFLE = 7
"""The line of row_sums.cu, from 0, with its shuffle."""

GRID_BARRIER = """\
#include <cooperative_groups.h>
// [/b] is no markup
__global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
    cooperative_groups::this_grid().sync();
    if (i < n) x[i] += 1.0f;
}
void launch(float* x, int n) { twice<<<(n + 255) / 256, 256>>>(x, n); }
"""

TWO_HELPERS = """\
__device__ float more(float v) { return v + 1.0f; }
__device__ float less(float v) { return v - 1.0f; }
__global__ void both(const float* x, float* y) { y[threadIdx.x] = more(less(x[threadIdx.x])); }
"""


@pytest.fixture
def mapped(run, settle, until):
    """Return what opens the Mapping tab and waits until the reference is read and translated."""

    async def show(pilot) -> LineView:
        await settle(pilot)
        await pilot.press("3", "enter")
        await until(pilot, lambda: cuda(pilot).lines and len(metal(pilot).lines) > 1, seconds=20)
        await pilot.pause()
        return cuda(pilot)

    return show


@pytest.fixture
def of_files(run, tmp_path: Path):
    """Return what gives the run a problem with these CUDA files in place of its own."""

    def give(**contents: str) -> Path:
        folder = tmp_path / "row_sums"
        shutil.copytree(run.config.problem, folder)
        for stem, text in contents.items():
            (folder / f"{stem}.cu").write_text(text, encoding="utf-8")
        run.config = replace(run.config, problem=str(folder))
        return folder

    return give


def cuda(pilot) -> LineView:
    return pilot.app.screen.query_one("#mapping-cuda", LineView)


def metal(pilot) -> LineView:
    return pilot.app.screen.query_one("#mapping-metal", LineView)


def texts(view: LineView) -> list[str]:
    return [line.text.plain for line in view.lines]


def head(pilot, side: str) -> str:
    return str(pilot.app.screen.query_one(f"#mapping-{side}-head").content)


def detail(pilot) -> str:
    return "\n".join(texts(pilot.app.screen.query_one("#mapping-detail", LineView)))


def at_cursor(view: LineView) -> str:
    return texts(view)[view.cursor_line].strip()


async def put(pilot, view: LineView, line: int) -> None:
    """Move the cursor of a side as a person does, line by line from the top."""
    view.focus()
    await pilot.press("g", *["j"] * line)
    await pilot.pause()


# -- moving together ---------------------------------------------------------------------------------------------------


async def test_the_metal_of_the_line_under_the_cursor_is_found(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await put(pilot, await mapped(pilot), SHUFFLE)
        assert at_cursor(cuda(pilot)) == "sum += __shfl_xor_sync(0xffffffff, sum, offset);"
        assert at_cursor(metal(pilot)) == "sum += simd_shuffle_xor(sum, offset);"


async def test_moving_in_the_metal_moves_the_cuda(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        [shuffle] = [number for number, text in enumerate(texts(metal(pilot))) if "simd_shuffle_xor" in text]
        await put(pilot, metal(pilot), shuffle)
        assert cuda(pilot).cursor_line == SHUFFLE
        await pilot.press("j")
        await pilot.pause()
        assert cuda(pilot).cursor_line == SHUFFLE + 1


async def test_a_click_in_either_side_moves_both(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        await pilot.click(cuda(pilot), offset=(30, SHUFFLE))
        await pilot.pause()
        assert cuda(pilot).cursor_line == SHUFFLE
        assert "simd_shuffle_xor" in at_cursor(metal(pilot))
        row = metal(pilot).cursor_line - metal(pilot).scroll_offset.y
        await pilot.click(metal(pilot), offset=(20, row - 1))
        await pilot.pause()
        assert cuda(pilot).cursor_line == SHUFFLE - 1


async def test_a_line_that_is_written_anew_says_so_and_leaves_the_cuda_where_it_was(run, of_files, mapped):
    of_files(row_sums=TWO_HELPERS)
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        between = next(n for n, text in enumerate(texts(metal(pilot))) if text.startswith("inline float less")) - 1
        await put(pilot, metal(pilot), between - 1)
        before = cuda(pilot).cursor_line
        await pilot.press("j")
        await pilot.pause()
        assert (at_cursor(metal(pilot)), cuda(pilot).cursor_line) == ("", before)
        assert detail(pilot).startswith("This line of Metal is written anew")


async def test_what_a_primitive_became_has_its_colour_on_the_other_side(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await put(pilot, await mapped(pilot), SHUFFLE)
        for view, word in ((cuda(pilot), "__shfl_xor_sync"), (metal(pilot), "simd_shuffle_xor")):
            text = view.lines[view.cursor_line].text
            start = text.plain.index(word)
            assert (start, start + len(word), "bold underline $text-success") in [tuple(span) for span in text.spans]


async def test_at_80_columns_one_side_is_shown_and_s_changes_to_the_other(run, mapped):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await mapped(pilot)
        assert (cuda(pilot).region.width, metal(pilot).region.width) == (80, 0)
        await pilot.press("s")
        await pilot.pause()
        assert (cuda(pilot).region.width, metal(pilot).region.width) == (0, 80)
        assert metal(pilot).has_focus


# -- what is said ------------------------------------------------------------------------------------------------------


async def test_the_trap_of_the_primitive_under_the_cursor_is_said(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await put(pilot, await mapped(pilot), SHUFFLE)
        assert "simd_shuffle_xor(v, k)" in detail(pilot)
        assert "trap: k must be the same in all lanes" in detail(pilot)


async def test_jumping_skips_lines_without_anything_to_say_and_goes_round(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        view = await mapped(pilot)
        seen = [view.cursor_line]
        while True:
            await pilot.press("right_square_bracket")
            if view.cursor_line == seen[0]:
                break
            seen.append(view.cursor_line)
        assert seen == sorted(seen)
        assert all(view.lines[line].gutter.plain[-3:].strip() for line in seen)
        await pilot.press("left_square_bracket")
        assert view.cursor_line == seen[-1]


async def test_a_line_of_plain_c_needs_no_mapping(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await put(pilot, await mapped(pilot), 0)
        assert detail(pilot).startswith("line 1 needs no mapping")


async def test_what_the_launch_leaves_open_is_asked_at_the_kernel(run, mapped):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await put(pilot, await mapped(pilot), 1)
        assert "? open        no host code launches 'row_sums': answer grid" in detail(pilot)
        assert "grid ? × ? × ? threads" in "\n".join(texts(metal(pilot)))


async def test_what_has_no_translation_is_refused_in_its_line_with_what_to_do(run, of_files, mapped):
    of_files(row_sums=GRID_BARRIER)
    async with run.app().run_test(size=(120, 40)) as pilot:
        view = await mapped(pilot)
        assert texts(view)[1] == "// [/b] is no markup"
        await put(pilot, view, 5)
        assert "a barrier over the whole grid has no counterpart" in detail(pilot)
        assert "launch one kernel before it and one after it" in " ".join(detail(pilot).split())
        assert at_cursor(metal(pilot)).startswith("✗ twice, line 6: a barrier over the whole grid")
        assert view.lines[5].ground


async def test_the_rest_of_a_long_text_is_read_with_its_keys(run, mapped):
    async with run.app().run_test(size=(80, 24)) as pilot:
        await put(pilot, await mapped(pilot), SHUFFLE)
        before = detail(pilot)
        assert before.endswith("} reads on")
        await pilot.press("right_curly_bracket")
        await pilot.pause()
        assert detail(pilot).split("\n")[0] == before.split("\n")[1]
        await pilot.press("left_curly_bracket")
        await pilot.pause()
        assert detail(pilot) == before


# -- files -------------------------------------------------------------------------------------------------------------


async def test_f_shows_the_next_file_and_comes_round(run, mapped, until):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        assert head(pilot, "cuda").startswith("row_sums.cu (1 of 2")
        await pilot.press("f")
        await until(pilot, lambda: head(pilot, "cuda").startswith("atomic_sums.cu (2 of 2"), seconds=20)
        await until(pilot, lambda: "atomic_fetch_add_explicit" in "\n".join(texts(metal(pilot))), seconds=20)
        await pilot.press("f")
        await until(pilot, lambda: head(pilot, "cuda").startswith("row_sums.cu"), seconds=20)


async def test_a_long_file_can_be_read_while_it_is_translated(run, of_files, settle, until):
    kernel = "__global__ void k{0}(float* x) {{\n" + "    x[threadIdx.x] += 1.0f;\n" * 12 + "}}\n"
    of_files(row_sums="".join(kernel.format(number) for number in range(400)))
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("3", "enter")
        await until(pilot, lambda: "kernels so far" in head(pilot, "metal"), seconds=20)
        assert len(cuda(pilot).lines) == 400 * 14 + 1
        # From the first line with a primitive round to the last.
        await pilot.press("left_square_bracket")
        assert cuda(pilot).cursor_line == 400 * 14 - 2
        assert "kernels so far" in head(pilot, "metal")
        assert "threadIdx" in detail(pilot)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "the file is empty"), (b"\x7fELF\0\0\0\0", "this is a binary file")],
    ids=["empty", "binary"],
)
async def test_a_file_that_is_no_text_says_so_in_its_place(run, of_files, settle, until, content, said):
    folder = of_files()
    (folder / "row_sums.cu").write_bytes(content)
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("3", "enter")
        await until(pilot, lambda: said in head(pilot, "cuda"), seconds=20)
        await pilot.press("f")
        await until(pilot, lambda: cuda(pilot).lines, seconds=20)


async def test_a_file_that_went_away_says_so_in_its_place(run, of_files, settle, until):
    folder = of_files()
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        (folder / "row_sums.cu").unlink()
        await pilot.press("3", "enter")
        await until(pilot, lambda: "No such file" in head(pilot, "cuda"), seconds=20)


async def test_a_file_without_kernels_says_so_beside_it(run, of_files, settle, until):
    of_files(row_sums="def f(x):\n    return x\n")
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("3", "enter")
        await until(pilot, lambda: "this is Python" in " ".join(texts(metal(pilot))), seconds=20)


# -- the option's program ----------------------------------------------------------------------------------------------


async def test_t_shows_the_options_program_and_the_translation_again(run, mapped, until):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        await pilot.press("t")
        await until(pilot, lambda: "uint row = thread_position_in_grid.x;" in texts(metal(pilot)), seconds=20)
        assert head(pilot, "metal").startswith("Metal: candidate")
        await pilot.press("t")
        await until(pilot, lambda: any("simd_shuffle_xor" in text for text in texts(metal(pilot))), seconds=20)


async def test_an_option_without_a_program_says_so_and_one_with_it_takes_its_place(run, mapped, until):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await mapped(pilot)
        await pilot.press("t", "J")
        await until(pilot, lambda: texts(metal(pilot))[0].startswith("Not written yet"), seconds=20)
        await pilot.press("K")
        await until(pilot, lambda: "uint row = thread_position_in_grid.x;" in texts(metal(pilot)), seconds=20)


async def test_v_goes_to_the_cuda_that_the_option_points_at(run, settle, until):
    under_root = [("simd_sum", "The reference does it: row_sums.cu:8 __shfl_xor_sync.", 7.0, 0.7, 2, 2.0)]
    run.proposer.proposals = {"one thread a row": under_root}
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("j")
        option = pilot.app.screen.query_one("#option", LineView)
        await until(
            pilot, lambda: any("sum += __shfl_xor_sync(0xffffffff" in text for text in texts(option)), seconds=20
        )
        await pilot.press("v")
        await until(pilot, lambda: cuda(pilot).lines, seconds=20)
        await until(pilot, lambda: cuda(pilot).cursor_line == SHUFFLE, seconds=20)
        assert cuda(pilot).lines[SHUFFLE].gutter.plain.startswith("◆")
        assert "the option “simd_sum” points here" in detail(pilot)


async def test_v_says_when_the_option_points_at_nothing(run, settle):
    async with run.app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("v")
        await pilot.pause()
        said = [note.message for note in pilot.app._notifications]
        assert said == ["The option points at no line of a CUDA reference."]
