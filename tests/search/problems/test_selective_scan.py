"""The selective scan: its reference by hand, MLX's loop and the CUDA references against it."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from search.devices.simulator.cuda_device import CudaSimulator
from search.evaluation.cases import RANDOM, make_case
from search.evaluation.correctness import compare
from search.kernels.cuda_program import bind_launches
from search.kernels.dtypes import DTYPES
from search.problems.definition import Workload, load_problem
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launches import read_launches

PROBLEM = load_problem("selective_scan")
CHECKS = [pytest.param(workload, id=workload.name) for workload in PROBLEM.of_role("check")]


def test_a_state_decays_by_the_step_and_takes_its_share_of_the_input() -> None:
    # softplus(0) = log 2, so A = -1 halves a state and A = -2 quarters it. h: 0 -> 2 log 2 -> that halved + 3 * 4 log 2
    # in state 0, and the same with 1/4 and B = 0 in state 1.
    zero = np.zeros((1, 2, 1))
    got = PROBLEM.reference(
        {"batch": 1, "len": 2},
        x=np.array([[[2.0], [4.0]]]),
        dt=zero,
        A=np.array([[-1.0, -2.0]]),
        B=np.array([[[1.0, 1.0], [3.0, 0.0]]]),
        C=np.array([[[1.0, 10.0], [5.0, 100.0]]]),
        D=np.array([0.5]),
    )
    log2 = math.log(2)
    first, second = (2 * log2, 2 * log2), (13 * log2, 0.5 * log2)
    np.testing.assert_allclose(got["last_state"][0, 0], second, rtol=1e-14)
    np.testing.assert_allclose(
        got["y"][0, :, 0], [11 * first[0] + 1.0, 5 * second[0] + 100 * second[1] + 2.0], rtol=1e-14
    )


def test_a_step_that_overflows_an_exponential_forgets_what_was() -> None:
    one = np.ones((1, 2, 1))
    got = PROBLEM.reference(
        {"batch": 1, "len": 2}, x=one, dt=1000 * one, A=-np.ones((1, 1)), B=one, C=one, D=np.zeros(1)
    )
    np.testing.assert_allclose(got["last_state"], [[[1000.0]]], rtol=1e-14)


@pytest.mark.parametrize("workload", CHECKS)
def test_the_loop_in_mlx_agrees_with_the_reference(workload: Workload) -> None:
    case, arrays = make_case(PROBLEM, workload, RANDOM, 3), PROBLEM.arrays(workload)
    given = {
        name: mx.array(arrays[name].dtype.decode(value).astype(np.float32)).astype(getattr(mx, arrays[name].dtype.name))
        for name, value in case.inputs.items()
    }
    results = PROBLEM.baseline(PROBLEM.bind_axes(workload), **given)
    for tensor, result in zip(PROBLEM.outputs, results, strict=True):
        dtype = arrays[tensor.name].dtype
        assert result.shape == arrays[tensor.name].shape
        got = dtype.encode(np.array(result.astype(mx.float32)))
        assert compare(got, case.want[tensor.name], dtype, PROBLEM.tolerance[dtype.name]).mismatch is None


@pytest.mark.parametrize("file", ["channel_per_thread.cu", "block_scan.cu"])
def test_the_cuda_references_compute_it_without_a_race(file: str) -> None:
    axes = {"batch": 2, "len": 130, "dim": 5}
    source = parse_cuda((PROBLEM.folder / "cuda" / file).read_text(encoding="utf-8"), file)
    program = bind_launches(read_launches(source), device_text(source), axes)
    workload = Workload("two blocks", "check", axes, {"T": "float16"})
    case = make_case(PROBLEM, workload, RANDOM, 5)
    given = {name: value.reshape(-1) for name, value in case.inputs.items()}
    checked = CudaSimulator().check(program, given, time_limit=60.0, seed=2)
    assert checked.reports == ()
    for name, want in case.want.items():
        dtype = DTYPES["float16" if name == "y" else "float32"]
        found = compare(checked.outputs[name].reshape(want.shape), want, dtype, PROBLEM.tolerance[dtype.name])
        assert found.mismatch is None


def test_costs_are_what_a_person_counts() -> None:
    workload = next(work for work in PROBLEM.workloads if work.name.startswith("mamba-130m"))
    moved, flops = PROBLEM.cost(workload)
    # x, dt and y of 1024 * 1536 halves; B and C of 1024 * 16; A and the last state of 1536 * 16 floats, D of 1536.
    assert moved == 3 * 1024 * 1536 * 2 + 2 * 1024 * 16 * 2 + 2 * 1536 * 16 * 4 + 1536 * 4
    assert flops == 1024 * 1536 * (7 * 16 + 7)
