"""Problems made of the CUDA corpus: the translation passes the judge, and one that was tampered with doesn't."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.evaluation.judge import evaluate
from search.evaluation.record import Evaluation
from search.from_cuda.draft import draft_of
from search.from_cuda.folder import write_problem
from search.from_cuda.reading import read_cuda
from search.kernels.expressions import evaluate as value_of
from search.kernels.text import program_from_text
from search.problems.definition import Problem, load_problem

CORPUS = Path(__file__).parents[2] / "corpus" / "cuda"
PROFILE = load_profile("apple-m3-max")

# Of each file: what of its translation is changed, so that another number comes out.
QUICK = {
    "vector_add": ("d_a[i] + d_b[i]", "d_a[i] - d_b[i]"),
    "softmax_warp": ("simd_shuffle_xor", "simd_shuffle_down"),
    "dot_shuffle": ("d_x[", "2 * d_x["),
    "embedding_gather": ("ids[", "1 + ids["),
}
SLOW = (
    "adamw", "attention_naive", "bf16_residual_add", "causal_conv1d", "cross_entropy", "decode_attention_splitk",
    "flash_attention", "fused_add_rmsnorm", "histogram_shared", "kv_cache_append", "matmul_half", "matvec_int4",
    "moe_permute", "moe_topk_gating", "paged_attention", "philox_normal", "rope_inplace", "scan_three_pass",
    "selective_scan", "spmv_csr", "stream_compact", "transpose_tiled",
)  # fmt: skip


def new_problem(name: str, folder: Path) -> Problem:
    write_problem(read_cuda(CORPUS / f"{name}.cu", None, {}), folder, PROFILE, lambda said: None)
    return load_problem(folder)


def judged(problem: Problem, text: str) -> Evaluation:
    return evaluate(program_from_text(text), problem, SimulatorDevice(PROFILE), PROFILE)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_translation_passes_on_the_problem_of_its_original(name: str, tmp_path: Path) -> None:
    problem = new_problem(name, tmp_path)
    assert problem.root is not None
    found = judged(problem, problem.root.read_text())
    assert found.passed, found.failure
    assert found.cases == len(problem.of_role("check")) + 8
    assert [time.baseline_seconds for time in found.times] == [0.0]


@pytest.mark.parametrize("name", QUICK)
def test_a_root_that_computes_something_else_fails_with_the_reason(name: str, tmp_path: Path) -> None:
    problem = new_problem(name, tmp_path)
    assert problem.root is not None
    right, wrong = QUICK[name]
    text = problem.root.read_text()
    assert right in text
    failure = judged(problem, text.replace(right, wrong)).failure
    assert failure is not None
    assert (failure.stage, "is wrong" in failure.message) == ("correctness", True) or failure.stage == "bounds"


SHAPES = {
    "transpose_tiled": {"d_in": ("rows", "cols"), "d_out": ("cols", "rows")},
    "matmul_tiled": {"d_A": ("M", "K"), "d_B": ("K", "N"), "d_C": ("M", "N")},
    "rope_inplace": {"query": ("tokens", "heads", "head_dim"), "cos_sin": ("max_position", "head_dim")},
    "causal_conv1d": {"x": ("batch", "dim", "len"), "weight": ("dim", "4"), "bias": ("dim",)},
    "kv_cache_append": {"key_cache": ("batch", "kv_heads", "max_len", "head_dim"), "cache_position": ("batch",)},
    "selective_scan": {"B": ("batch", "16", "len"), "last_state": ("batch", "dim", "16")},
    "matvec_int4": {"packed": ("rows", "cols // 8"), "x": ("cols",)},
    "dropout_hash": {"x": ("n",)},
}


@pytest.mark.parametrize("name", SHAPES)
def test_comments_and_strides_give_arrays_their_shape(name: str) -> None:
    plan = read_cuda(CORPUS / f"{name}.cu", None, {}).plan
    found = {array.name: array.shape or (array.extent,) for array in plan.arrays}
    assert {array: found[array] for array in SHAPES[name]} == SHAPES[name]


# What one run of each takes, worked out by hand: multiplications, additions, comparisons of floats, special functions.
WORK = {
    "matmul_tiled": ({"M": 64, "N": 32, "K": 16}, 2 * 64 * 32 * 16),
    "softmax_block": ({"rows": 10, "cols": 100}, 5 * 10 * 100),  # largest, subtract, exp, sum, scale
    "vector_add": ({"n": 1000}, 1000),
    "transpose_naive": ({"width": 30, "height": 20}, 0),
}


@pytest.mark.parametrize("name", WORK)
def test_the_work_of_an_original_is_counted(name: str, tmp_path: Path) -> None:
    axes, work = WORK[name]
    problem = new_problem(name, tmp_path)
    assert value_of(problem.flops, axes) == work
    assert "roughly" not in (tmp_path / "problem.toml").read_text()


# The bytes of one run at least: a table that is read only where indices say isn't counted, logits that are also summed
# are; an array that is changed in place is read and written.
BYTES = {
    "embedding_gather": ({"tokens": 3, "dim": 8, "vocab": 100}, 4 * 3 + 4 * 3 * 8),
    "cross_entropy": ({"tokens": 5, "vocab": 30}, 2 * 4 * 5 * 30 + 2 * 4 * 5),
    "saxpy_grid_stride": ({"n": 1000}, 3 * 4 * 1000),
}


@pytest.mark.parametrize("name", BYTES)
def test_every_array_moves_once_at_least(name: str) -> None:
    axes, moved = BYTES[name]
    assert value_of(draft_of(read_cuda(CORPUS / f"{name}.cu", None, {})).bytes, axes) == moved
