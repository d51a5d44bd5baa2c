"""A problem from a CUDA file, in the app: the file is named, what it doesn't say is asked, and the search begins."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Input

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.new_problem import NewProblemDialog, OpenQuestion
from ksearch_tui.screens.start import StartScreen
from ksearch_tui.start_at import AtStart
from search.from_cuda.reading import read_cuda
from search.problems.definition import load_problem

DOUBLE = """\
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: [])
    path = tmp_path / "twice.cu"
    path.write_text(DOUBLE)
    return path


def text(pilot, name: str) -> str:
    return str(pilot.app.screen.query_one(f"#{name}").content)


async def open_dialog(pilot, until) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
    await pilot.press("c")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewProblemDialog))


async def answer(pilot, until, **values: str) -> None:
    """Answer the questions by their keys, in their order, each with Enter."""
    await until(pilot, lambda: pilot.app.screen.query("#questions Input:focus"), seconds=30)
    assert len(pilot.app.screen.query(OpenQuestion)) == len(values)
    for question in pilot.app.screen.query(OpenQuestion):
        assert pilot.app.focused is question.query_one(Input)
        question.query_one(Input).value = values[question.key]
        await pilot.press("enter")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])
async def test_what_a_file_leaves_open_is_asked_and_the_search_begins(run, until, settle, source, tmp_path, size):
    app = KsearchApp(AtStart(run.config), open_engine=run.open_engine)
    async with app.run_test(size=size) as pilot:
        await open_dialog(pilot, until)
        screen = pilot.app.screen
        screen.query_one("#source", Input).value = str(source)
        screen.query_one("#folder", Input).value = str(tmp_path / "mine")
        await pilot.press("enter")
        await until(pilot, lambda: "2 to answer" in text(pilot, "said"), seconds=30)
        asked = [str(line.content) for line in screen.query("#questions Static")]
        assert asked[0].endswith("answer grid, how many blocks it is launched with")
        assert asked[1] == "twice.cu:1: __global__ void twice(const float* x, float* y, int n) {"
        assert asked[2].endswith("answer block, how many threads a block it is launched with")
        await answer(pilot, until, grid="ceildiv(n, 64)", block="64")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen), seconds=60)
        await settle(pilot)
        assert pilot.app.screen.config.problem == str((tmp_path / "mine").resolve())
        assert (pilot.app.screen.config.device, pilot.app.screen.config.budget) == ("simulator", 40)
        await pilot.press("q")
    problem = load_problem(tmp_path / "mine")
    assert [tensor.name for tensor in (*problem.inputs, *problem.outputs)] == ["x", "y"]
    assert problem.root == problem.folder / "root.metal"


async def test_a_wrong_answer_is_said_and_the_question_stays(run, until, source, tmp_path):
    async with KsearchApp(AtStart(run.config), open_engine=run.open_engine).run_test(size=(100, 30)) as pilot:
        await open_dialog(pilot, until)
        pilot.app.screen.query_one("#source", Input).value = str(source)
        await pilot.press("enter")
        await answer(pilot, until, grid="n **", block="64")
        await until(pilot, lambda: "an answer can't be used" in text(pilot, "said"), seconds=30)
        assert [question.answer for question in pilot.app.screen.query(OpenQuestion)] == ["n **", "64"]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no file"), ("", "the file is empty"), ("import torch\n", "this is Python, not CUDA")],
)
async def test_what_is_no_cuda_is_said_in_place(run, until, source, content, said):
    source.unlink()
    if content is not None:
        source.write_text(content)
    async with KsearchApp(AtStart(run.config), open_engine=run.open_engine).run_test(size=(100, 30)) as pilot:
        await open_dialog(pilot, until)
        await pilot.press("enter")
        assert "Name the file" in text(pilot, "said")
        pilot.app.screen.query_one("#source", Input).value = str(source)
        await pilot.press("enter")
        await until(pilot, lambda: said in text(pilot, "said"), seconds=30)
        assert isinstance(pilot.app.screen, NewProblemDialog)


async def test_no_key_reaches_a_field_while_the_file_is_read(run, until, source, monkeypatch):
    reading, go_on = threading.Event(), threading.Event()

    def read_slowly(*args):
        reading.set()
        go_on.wait(60)
        return read_cuda(*args)

    monkeypatch.setattr("search.from_cuda.reading.read_cuda", read_slowly)
    async with KsearchApp(AtStart(run.config), open_engine=run.open_engine).run_test(size=(100, 30)) as pilot:
        await open_dialog(pilot, until)
        field = pilot.app.screen.query_one("#source", Input)
        field.value = str(source)
        await pilot.press("enter")
        await until(pilot, reading.is_set, seconds=30)
        await pilot.press("x", "tab", "x")
        assert [field.value for field in pilot.app.screen.query(Input)] == [str(source), "", ""]
        go_on.set()
        await until(pilot, lambda: pilot.app.screen.query("#questions Input:focus"), seconds=30)
        await pilot.press("escape")
