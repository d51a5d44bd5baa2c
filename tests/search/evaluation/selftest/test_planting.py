"""The judge on kernels whose verdict is known: every planted fault is caught, no right kernel is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.cases import RANDOM, make_case
from search.evaluation.correctness import compare
from search.evaluation.selftest.planted import CATEGORIES, FOLDER, PlantingError, load_kernels
from search.evaluation.selftest.trials import Trial, judge, trials_of
from search.kernels.dtypes import DTYPES
from search.problems.definition import Tolerance, load_problem

KERNELS = load_kernels()
TRIALS = trials_of(KERNELS)
PROFILE = load_profile("apple-m3-max")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorDevice]:
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if folder.name.startswith("popen-") else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSEARCH_CACHE", str(shared / "planting-cache"))
        yield SimulatorDevice(PROFILE, workers=1)


def each_third_fast() -> list[object]:
    """Every trial; two of three are slow ones, always the same."""
    return [
        pytest.param(trial, id=trial.name, marks=[] if number % 3 == 0 else pytest.mark.slow)
        for number, trial in enumerate(TRIALS)
    ]


@pytest.mark.parametrize("trial", each_third_fast())
def test_the_verdict_is_the_known_one(simulator, trial: Trial):
    verdict = judge(trial, simulator, PROFILE)
    assert verdict.complaint == ""
    assert verdict.caught == (trial.fault is not None)


def test_the_list_is_as_long_and_as_broad_as_it_should_be():
    faults = [fault for kernel in KERNELS for fault in kernel.faults]
    categories = Counter(fault.category for fault in faults)
    assert len(faults) >= 80
    assert sum(bool(kernel.faults) for kernel in KERNELS) >= 12
    assert set(categories) == set(CATEGORIES) and min(categories.values()) >= 10
    assert len(KERNELS) >= 40
    names = [trial.name for trial in TRIALS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_every_fault_changes_the_text_where_it_says_and_no_two_do_the_same(kernel):
    texts = [kernel.with_fault(fault) for fault in kernel.faults]
    assert len({kernel.text, *texts}) == 1 + len(texts)


@pytest.mark.parametrize("folder", sorted({kernel.folder for kernel in KERNELS}), ids=lambda folder: folder.name)
def test_the_reference_says_what_mlx_says(folder: Path):
    problem = load_problem(folder)
    workload = problem.of_role("check")[0]
    specs, case = problem.arrays(workload), make_case(problem, workload, RANDOM, 5)
    given = {}
    for name, stored in case.inputs.items():
        array = mx.array(stored)
        given[name] = array.view(mx.bfloat16) if specs[name].dtype.name == "bfloat16" else array
    results = problem.baseline(**given, axes=problem.bind_axes(workload))
    for tensor, result in zip(problem.outputs, results, strict=True):
        # MLX may keep sums in the type of its inputs: that is as near as two ways of computing get.
        wide = np.array(result.astype(mx.float32), np.float64)
        near = Tolerance(1e-4, 1e-2)
        assert compare(wide, case.want[tensor.name], DTYPES["float32"], near).mismatch is None


def planted(folder: Path, toml: str) -> Path:
    """Write a list with one kernel, as a person would, and return its folder."""
    (folder / "softmax_rows").mkdir()
    (folder / "softmax_rows" / "tree.metal").write_text((FOLDER / "softmax_rows" / "tree.metal").read_text())
    (folder / "softmax_rows" / "kernels.toml").write_text(toml)
    return folder


ONE = """[[kernel]]
file = "tree.metal"
what = "a tree"

[[kernel.fault]]
name = "a sum in half"
category = "precision"
what = "too coarse"
stages = ["correctness"]
find = "float sum = 0;"
replace = "half sum = 0;"
"""


def test_what_a_fault_replaces_must_occur_as_often_as_it_says(tmp_path):
    (kernel,) = load_kernels(planted(tmp_path, ONE + "times = 2\n"))
    with pytest.raises(PlantingError, match=r"'a sum in half': 'float sum = 0;' occurs 1 times, not 2"):
        kernel.with_fault(kernel.faults[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"precision"', '"style"', "'a sum in half' has the category 'style'; there are boundary, synch"),
        ('["correctness"]', "[]", "'a sum in half' has no stage that may catch it"),
        ('what = "too coarse"\n', "", "kernels.toml: what is missing"),
        ('"tree.metal"', '"bush.metal"', "bush.metal"),
        ("[[kernel]]", "[[kernel", "kernels.toml: "),
    ],
)
def test_a_mistake_in_the_list_is_told_with_its_file(tmp_path, old: str, new: str, message: str):
    with pytest.raises(PlantingError, match=message):
        load_kernels(planted(tmp_path, ONE.replace(old, new, 1)))


def test_a_kernel_that_nobody_lists_is_told(tmp_path):
    folder = planted(tmp_path, ONE)
    (folder / "softmax_rows" / "lost.metal").write_text("")
    with pytest.raises(PlantingError, match=r"lost\.metal is not in the list"):
        load_kernels(folder)


def test_a_fault_that_passes_or_is_refused_for_another_reason_is_a_complaint(simulator, tmp_path):
    folder = planted(tmp_path, ONE) / "softmax_rows"
    for name in ("problem.toml", "reference.py"):
        (folder / name).write_text((FOLDER / "softmax_rows" / name).read_text())
    toml = folder / "kernels.toml"

    def complaint(old: str, new: str) -> str:
        toml.write_text(ONE.replace(old, new))
        (kernel,) = load_kernels(tmp_path)
        return judge(Trial(kernel, kernel.faults[0]), simulator, PROFILE).complaint

    assert complaint("half sum = 0;", "float sum = 0.0f;") == "passed: too coarse"
    assert complaint("half sum = 0;", "flat sum = 0;").startswith("refused at compile, not at correctness: ")
    assert complaint("half sum = 0;", "half sum = 0;") == ""


def test_a_right_kernel_that_is_refused_is_a_complaint(simulator):
    kernel = next(kernel for kernel in KERNELS if kernel.name == "softmax_rows/tree")
    fault = next(fault for fault in kernel.faults if fault.name == "the sum is kept in half")
    broken = Trial(replace(kernel, text=kernel.with_fault(fault)))
    assert judge(broken, simulator, PROFILE).complaint.startswith("falsely refused at correctness: ")
