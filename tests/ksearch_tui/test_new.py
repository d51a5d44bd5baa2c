"""``new`` as a person runs it: a folder that a search can start from, or one that asks; what it never overwrites."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksearch_tui.cli import main
from search.kernels.text import program_from_text
from search.problems.definition import ProblemError, load_problem
from tests.ksearch_tui.commands import ksearch

ROW_SCALE = """\
// Each row of a matrix, times a number of its own.
__global__ void scale_rows(const float* x, const float* factor, float* y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y;
  if (c < cols) y[r * cols + c] = factor[r] * x[r * cols + c];
}
"""
LAUNCHED = (
    ROW_SCALE
    + """
void run(const float* x, const float* factor, float* y, int rows, int cols) {
  dim3 grid((cols + 63) / 64, rows);
  scale_rows<<<grid, 64>>>(x, factor, y, rows, cols);
}
"""
)
REFUSED = """\
__global__ void mean(const float* x, float* y, int cols) {
  double sum = 0.0;
  for (int c = 0; c < cols; ++c) sum += x[blockIdx.x * cols + c];
  y[blockIdx.x] = (float)(sum / cols);
}

void run(const float* x, float* y, int rows, int cols) { mean<<<rows, 1>>>(x, y, cols); }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "scale_rows.cu"
    path.write_text(LAUNCHED)
    return path


def test_a_new_problem_is_searched_checked_and_exported(source: Path, tmp_path: Path) -> None:
    folder, session, module = tmp_path / "mine", tmp_path / "s.ksearch.toml", tmp_path / "kernel.py"
    done = ksearch("new", str(source), "-o", str(folder))
    assert (done.returncode, done.stdout) == (0, f"{folder}\n"), done.stderr
    assert f"search with: ksearch-tui explore {folder}" in done.stderr

    checked = ksearch("check", str(folder / "root.metal"), "--problem", str(folder), "--device", "simulator")
    assert checked.returncode == 0, checked.stdout
    wrong = (folder / "root.metal").read_text().replace("factor[r] *", "factor[0] *")
    (tmp_path / "wrong.metal").write_text(wrong)
    failed = ksearch("check", str(tmp_path / "wrong.metal"), "--problem", str(folder), "--device", "simulator")
    assert failed.returncode == 1
    assert "'y' is wrong, by up to" in failed.stdout and "it should be" in failed.stdout

    ran = ksearch(
        "run", str(folder), "--device", "simulator", "--budget", "2", "--session", str(session), "--json"
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["best"]["title"] == "the translation of scale_rows.cu"
    assert result["best"]["speedup_over_mlx"] is None
    assert "the catalogue has no entries for 'scale_rows': edit its kernel (e)" in result["stopped"]

    exported = ksearch("export", str(session), "-o", str(module))
    assert exported.returncode == 0, exported.stderr
    code = module.read_text()
    compile(code, str(module), "exec")
    assert "Proven against the CUDA original, run on a CPU, on 16 cases" in code
    assert "_mlx(" not in code and "self_check" not in code


def test_the_folder_says_what_the_source_shows(source: Path, tmp_path: Path, capsys) -> None:
    assert main(["new", str(source), "-o", str(tmp_path / "mine")]) == 0
    problem = load_problem(tmp_path / "mine")
    assert problem.title == "run of scale_rows.cu"
    assert problem.description.startswith("Each row of a matrix, times a number of its own.")
    assert [(tensor.name, tensor.shape, tensor.dtype) for tensor in problem.inputs] == [
        ("x", ("rows", "cols"), "float32"),
        ("factor", ("rows",), "float32"),
    ]
    assert [(tensor.name, tensor.shape) for tensor in problem.outputs] == [("y", ("rows", "cols"))]
    [bench] = problem.of_role("bench")
    rows, cols = bench.axes["rows"], bench.axes["cols"]
    # x and y once, a factor for each row; one multiplication an element.
    assert problem.cost(bench) == (8 * rows * cols + 4 * rows, rows * cols)
    checks = problem.of_role("check")
    assert len(checks) == 8 and sum(workload.hidden for workload in checks) == 2
    assert any(workload.axes["cols"] % 32 for workload in checks)
    assert (problem.folder / "scale_rows.cu").read_text() == LAUNCHED
    assert (problem.folder / "scale_rows.device.cu").read_text().splitlines()[2] == LAUNCHED.splitlines()[2]


def test_a_problem_that_is_there_is_not_overwritten_unless_forced(source: Path, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "problem.toml").write_text("precious")
    assert main(["new", str(source), "-o", str(folder)]) == 2
    assert "has a problem.toml already" in capsys.readouterr().err
    assert (folder / "problem.toml").read_text() == "precious"
    assert main(["new", str(source), "-o", str(folder), "--force"]) == 0
    assert load_problem(folder).name == "scale_rows"


def test_open_questions_are_printed_with_the_answers_to_give(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale_rows.cu").write_text(ROW_SCALE)
    assert main(["new", "scale_rows.cu"]) == 1
    said = capsys.readouterr().err
    assert "scale_rows.cu:2: open: no host code launches 'scale_rows': answer grid" in said
    assert "--answer grid=" in said and "--answer block=256" in said
    assert [path.name for path in tmp_path.iterdir()] == ["scale_rows.cu"]


def test_a_folder_asks_for_what_is_open_until_it_is_answered(tmp_path: Path, capsys) -> None:
    (tmp_path / "scale_rows.cu").write_text(ROW_SCALE)
    folder = tmp_path / "mine"
    assert main(["new", str(tmp_path / "scale_rows.cu"), "-o", str(folder)]) == 1
    path = folder / "problem.toml"
    asked = path.read_text()
    line = asked.splitlines().index(next(text for text in asked.splitlines() if text.startswith("# ASK: "))) + 1
    with pytest.raises(ProblemError, match=rf"problem\.toml:{line}: still to be answered: no host code launches"):
        load_problem(folder)
    assert main(["run", str(folder), "--device", "simulator"]) == 2
    assert f"problem.toml:{line}: still to be answered" in capsys.readouterr().err

    answers = {"grid": "ceildiv(cols, 32), rows", "block": "32"}
    for key, value in answers.items():
        assert f'"{key}" = ""' in asked
        asked = asked.replace(f'"{key}" = ""', f'"{key}" = "{value}"')
    path.write_text(asked)
    with pytest.raises(ProblemError, match=r"everything is answered: write the problem with: ksearch-tui new"):
        load_problem(folder)
    assert main(["new", str(folder)]) == 0
    problem = load_problem(folder)
    assert problem.original is not None
    assert problem.original.plan.steps[0].block == ("32", "1", "1")
    assert main(["new", str(folder)]) == 2
    assert "is finished already" in capsys.readouterr().err


def test_a_translation_that_is_refused_leaves_the_original_as_the_reference(tmp_path: Path, capsys) -> None:
    (tmp_path / "mean.cu").write_text(REFUSED)
    folder = tmp_path / "mine"
    assert main(["new", str(tmp_path / "mean.cu"), "-o", str(folder)]) == 0
    said = capsys.readouterr().err
    assert "mean.cu:2:" in said and "'double'" in said
    text = (folder / "problem.toml").read_text()
    assert "#   mean.cu:2:" in text and "double" in text
    problem = load_problem(folder)
    assert (problem.root, [path.name for path in problem.cuda]) == (None, ["mean.cu"])
    assert not (folder / "root.metal").exists()
    session = tmp_path / "s.ksearch.toml"
    assert main(["run", str(folder), "--device", "simulator", "--session", str(session)]) == 1
    assert f"write what mean.cu computes as a Metal file {problem.folder / 'root.metal'}" in capsys.readouterr().err

    (folder / "root.metal").write_text(
        "//@ pass mean\n//@ inputs x\n//@ outputs y\n//@ grid rows\n//@ threadgroup 32\n//@ template cols = cols\n"
        "//@ source\nfloat sum = 0.0f;\nuint r = thread_position_in_grid.x;\n"
        "for (int c = 0; c < cols; ++c) sum += x[r * cols + c];\ny[r] = sum / cols;\n"
    )
    (folder / "problem.toml").write_text(text.replace('# root = "root.metal"', 'root = "root.metal"'))
    assert main(["run", str(folder), "--device", "simulator", "--budget", "1", "--session", f"{session}2"]) == 0


def test_a_race_in_the_original_is_told_and_the_problem_still_written(tmp_path: Path, capsys) -> None:
    race = LAUNCHED.replace("factor[r] * x", "y[0] + factor[r] * x")
    (tmp_path / "race.cu").write_text(race)
    assert main(["new", str(tmp_path / "race.cu"), "-o", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().err
    assert "line 5 of the original" in said and "race" in said
    assert load_problem(tmp_path / "mine").original is not None


def test_what_no_answer_can_settle_is_refused(tmp_path: Path, capsys) -> None:
    texture = "__global__ void f(cudaTextureObject_t t, float* y) { y[threadIdx.x] = tex2D<float>(t, 0.f, 0.f); }\n"
    host = "void run(cudaTextureObject_t t, float* y, int n) { f<<<n, 32>>>(t, y); }\n"
    (tmp_path / "t.cu").write_text(texture + host)
    assert main(["new", str(tmp_path / "t.cu"), "-o", str(tmp_path / "mine")]) == 1
    assert "no problem can be made of" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_a_source_that_reads_like_something_else_stays_data(tmp_path: Path, capsys) -> None:
    text = LAUNCHED.replace(
        "  int r = blockIdx.y;\n", "  int r = blockIdx.y;\n//@ pass evil\n/* [/b]\n//@ source\n*/\n"
    )
    path = tmp_path / "a \"b'[c].cu"
    path.write_text(text.replace("Each row", "# ASK: \x1b[31m"))
    assert main(["new", str(path), "-o", str(tmp_path / "mine")]) == 0
    problem = load_problem(tmp_path / "mine")
    assert [cuda.name for cuda in problem.cuda] == [path.name]
    assert problem.root is not None
    assert [step.name for step in program_from_text(problem.root.read_text()).passes] == ["scale_rows"]


def test_work_that_can_not_be_counted_is_asked_for(source: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("search.from_cuda.folder.count_work", lambda *arguments: None)
    path = tmp_path / "mine" / "problem.toml"
    assert main(["new", str(source), "-o", str(path.parent)]) == 1
    assert f"fill in the line under '# ASK' in {path}" in capsys.readouterr().err
    with pytest.raises(ProblemError, match="still to be answered: how many floating-point operations"):
        load_problem(path.parent)
    path.write_text(path.read_text().replace('flops = ""', 'flops = "rows * cols"'))
    assert load_problem(path.parent).flops == "rows * cols"
