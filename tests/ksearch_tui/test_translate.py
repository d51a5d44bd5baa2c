"""``translate`` as a person runs it: what is printed, what is proven, and what is said of a file that is no use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from search.kernels.text import program_from_text
from tests.ksearch_tui.commands import ksearch

SCALE = """\
__global__ void scale(const float* x, float* y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

void run(const float* x, float* y, int n) { scale<<<(n + 63) / 64, 64>>>(x, y, 3.0f, n); }
"""
UNLAUNCHED = SCALE.partition("void run")[0]
# The barrier between writing and reading the tile is left out.
RACE = """\
__global__ void reverse(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

void run(const float* x, float* y, int blocks) { reverse<<<blocks, 64>>>(x, y); }
"""
HALF_A_FILE = SCALE[: SCALE.index("if (i")]
GENERATED = "__global__ void generated(float* x) {\n" + "  x[0] += 1.0f;\n" * 330_000 + "}\n"


@pytest.fixture
def written(tmp_path: Path):
    """Return what writes a file and gives its path."""

    def write(content: str | bytes, name: str = "kernel.cu") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_the_program_goes_to_stdout_as_a_kernel_file(written) -> None:
    done = ksearch("translate", str(written(SCALE)))
    assert done.returncode == 0, done.stderr
    [step] = program_from_text(done.stdout).passes
    assert (step.name, step.grid, step.threadgroup) == ("scale", ("ceildiv(n, 64) * 64", "1", "1"), ("64", "1", "1"))
    assert "primitives" in done.stderr and "Traceback" not in done.stderr


def test_json_has_the_launches_the_primitives_and_the_program(written) -> None:
    done = ksearch("translate", str(written(SCALE)), "--format", "json")
    result = json.loads(done.stdout)
    assert result["launches"]["axes"] == ["n"]
    assert result["launches"]["steps"][0]["grid"] == ["ceildiv(n, 64)", "1", "1"]
    assert [array["role"] for array in result["launches"]["arrays"]] == ["input", "output"]
    first = result["primitives"][0]
    assert SCALE[first["start"] : first["end"]].startswith("__global__")
    assert program_from_text(result["program"]).passes[0].name == "scale"


def test_the_program_can_go_to_a_file(written, tmp_path: Path) -> None:
    done = ksearch("translate", str(written(SCALE)), "-o", str(tmp_path / "out.metal"))
    assert (done.returncode, done.stdout) == (0, "")
    assert program_from_text((tmp_path / "out.metal").read_text()).passes[0].name == "scale"


def test_verifying_runs_both_at_the_sizes_that_are_named(written) -> None:
    done = ksearch("translate", str(written(SCALE)), "--verify", "--size", "n=63", "--size", "n=130", "-o", "/dev/null")
    assert done.returncode == 0, done.stderr
    assert "✓ n=63: the same, 63 elements compared" in done.stderr
    assert "✓ n=130: the same, 130 elements compared" in done.stderr


def test_a_difference_between_the_two_is_found(written, tmp_path: Path, monkeypatch, capsys) -> None:
    from dataclasses import replace

    import search.from_cuda.reading as reading
    from ksearch_tui.cli import main

    def wrong(source, plan):
        found = right(source, plan)
        step = found.passes[0]
        mistaken = replace(step, source=step.source.replace("if (i < n)", "if (i < n - 1)"))
        assert mistaken != step
        return replace(found, passes=(mistaken,))

    right = reading.write_metal
    monkeypatch.setattr(reading, "write_metal", wrong)
    assert main(["translate", str(written(SCALE)), "--verify", "--size", "n=40", "-o", str(tmp_path / "o")]) == 1
    said = capsys.readouterr().err
    assert "✗ n=40: the results differ: y[39]" in said
    assert "1 of 40 elements are wrong" in said


def test_a_race_of_the_original_is_told_with_its_line(written) -> None:
    path = written(RACE)
    done = ksearch("translate", str(path), "--verify", "--size", "blocks=2", "-o", "/dev/null")
    assert done.returncode == 1
    assert f"! blocks=2: {path}:3: in the original: data race on tile" in done.stderr
    assert "reads it in line 4" in done.stderr and "writes it in line 3" in done.stderr


def test_answers_take_the_place_of_a_launch(written) -> None:
    path = str(written(UNLAUNCHED))
    asked = ksearch("translate", path)
    assert (asked.returncode, asked.stdout) == (1, "")
    assert "no host code launches 'scale': answer grid" in asked.stderr
    assert "--answer grid='ceildiv(n, 256)' --answer block=256" in asked.stderr
    done = ksearch("translate", path, "--answer", "grid=ceildiv(n,32) block=32")
    assert done.returncode == 0, done.stderr
    assert program_from_text(done.stdout).passes[0].threadgroup == ("32", "1", "1")


@pytest.mark.parametrize("command", ["translate", "new"])
@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        ("import torch\n\ndef f(x):\n    return x\n", [], "this is Python, not CUDA"),
        ("Dear Sir or Madam,\n", [], "this isn't CUDA"),
        ("", [], "the file is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(400), [], "this is a binary file"),
        (HALF_A_FILE, [], "kernel.cu:2: the file breaks off inside a function; is it whole?"),
        (SCALE[:60], [], "kernel.cu:1: a kernel begins here but can't be read to its end; is the file whole?"),
        (GENERATED, [], "5.3 MB, and at most 4 MB are read; copy the kernel and what it calls into a file"),
        (SCALE, ["--kernel", "scal"], "there is no kernel 'scal' in it; did you mean 'scale'?"),
        (SCALE, ["--answer", "gird=4"], "'gird=4' isn't an answer"),
        (SCALE, ["--answer", "value.n=)"], "an answer can't be used"),
    ],
    ids=["Python", "prose", "empty", "binary", "half", "less", "generated", "kernel", "no answer", "no size"],
)
def test_bad_input_is_one_clear_message(command, content, more, said, written, tmp_path: Path) -> None:
    done = ksearch(command, str(written(content)), *more, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.cu"]


@pytest.mark.parametrize("command", ["translate", "new"])
def test_a_file_that_is_not_there_is_wrong_usage(command, tmp_path: Path) -> None:
    done = ksearch(command, "nowhere.cu", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "ksearch-tui: there is no file nowhere.cu\n")


def test_a_folder_in_place_of_a_file_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").mkdir()
    done = ksearch("translate", "kernels.cu", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "ksearch-tui: kernels.cu is a folder; give a CUDA file\n")
