"""``ksearch-tui simulate``: a program is run as Python would, then what its kernels did is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ksearch_tui.commands import ksearch

MADE = """
import sys
import mlx.core as mx

def copy(shift):
    kernel = mx.fast.metal_kernel(
        name="copy", input_names=["x"], output_names=["y"],
        source=f"uint i = thread_position_in_grid.x;\\ny[i + {shift}] = x[i];",
    )
    x = mx.arange(8, dtype=mx.float32)
    return kernel(inputs=[x], grid=(8, 1, 1), threadgroup=(8, 1, 1), output_shapes=[(8,)], output_dtypes=[mx.float32])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "made.py").write_text(MADE)
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nfrom made import copy\nprint(copy(int(sys.argv[1]))[0], __name__)\nsys.exit(sys.argv[2])"
    )
    return path


def test_a_program_gets_its_arguments_and_its_exit_code_counts(program, tmp_path):
    program.write_text(program.read_text().replace("sys.argv[2])", "int(sys.argv[2]))"))
    ran = ksearch("simulate", str(program), "0", "7", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (7, "array([0, 1, 2, ..., 5, 6, 7], dtype=float32) __main__\n")
    assert "1 Metal kernels, 1 launches" in ran.stderr and "nothing was found wrong" in ran.stderr


def test_what_the_checked_mode_finds_makes_it_fail(program, tmp_path):
    program.write_text(program.read_text().replace("sys.exit(sys.argv[2])", ""))
    ran = ksearch("simulate", "--checked", str(program), "1", home=tmp_path)
    assert ran.returncode == 1
    assert "✗ copy, line 2 of its source: bounds: thread 7" in ran.stderr


def test_a_module_is_run_and_found_from_here(program, tmp_path):
    test = "from made import copy\n\ndef test_copy():\n    assert copy(0)[0][3].item() == 3\n"
    (tmp_path / "test_made.py").write_text(test)
    ran = ksearch("simulate", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path, home=tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout and "1 Metal kernels, 1 launches" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["simulate"], 2, "name the program to run"),
        (["simulate", "nowhere.py"], 2, "there is no file nowhere.py"),
        (["simulate", "-m", "no_such_module"], 1, "No module named no_such_module"),
        (["simulate", "program.py", "0", "a word"], 1, "a word\n"),
        (["simulate", "program.py"], 1, "IndexError"),
    ],
)
def test_what_goes_wrong_is_said(program, tmp_path, arguments, code, said):
    ran = ksearch(*arguments, cwd=tmp_path, home=tmp_path)
    assert ran.returncode == code
    assert said in ran.stderr


def test_with_a_profile_each_kernel_has_a_modelled_time(program, tmp_path):
    ran = ksearch("simulate", "--profile", "apple-m1", str(program), "0", "", home=tmp_path)
    head, line, *_ = ran.stderr.strip().splitlines()
    assert head.split() == ["modelled", "for", "apple-m1", "launches", "one", "all", "bound", "by"]
    assert line.split()[:2] == ["copy", "1"] and line.split()[3] == line.split()[5] == "µs"
    wrong = ksearch("simulate", "--profile", "apple-m33", str(program), "0", "", home=tmp_path)
    assert wrong.returncode == 2 and "unknown hardware profile 'apple-m33'" in wrong.stderr
