"""The problems that come with the program: what they say is right, and that their parts fit together."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from search.kernels.dtypes import DTYPES
from search.problems.definition import Problem, Workload, load_problem
from translator.cuda_source import parse_cuda

BUILT_IN = ("attention_prefill", "selective_scan", "softmax")


def drawn_inputs(problem: Problem, workload: Workload) -> dict[str, np.ndarray]:
    """Standard normal inputs, rounded to the workload's dtypes and decoded to float64."""
    generator = np.random.default_rng(7)
    inputs = {}
    for tensor in problem.inputs:
        spec = problem.arrays(workload)[tensor.name]
        drawn = generator.standard_normal(spec.shape) if spec.shape else np.array(workload.scalars[tensor.name])
        inputs[tensor.name] = spec.dtype.decode(spec.dtype.encode(drawn))
    return inputs


def worst_error(problem: Problem, workload: Workload, output: str, got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference in units of what the problem tolerates."""
    tolerance = problem.tolerance[problem.arrays(workload)[output].dtype.name]
    scale = np.abs(want).max(axis=-1, keepdims=True)
    return float(np.max(np.abs(got - want) / (tolerance.atol + tolerance.rtol * scale)))


def checks(name: str) -> list[object]:
    return [
        pytest.param(name, workload, id=f"{name}-{workload.name}") for workload in load_problem(name).of_role("check")
    ]


def test_softmax_of_zero_and_log_two_is_a_third_and_two_thirds() -> None:
    reference = load_problem("softmax").reference
    got = reference(axes={"rows": 1, "n": 2}, x=np.array([[0.0, math.log(2.0)]]))["y"]
    np.testing.assert_allclose(got, [[1 / 3, 2 / 3]], rtol=1e-15)


def test_softmax_reference_survives_logits_that_overflow_an_exponential() -> None:
    got = load_problem("softmax").reference(axes={"rows": 1, "n": 2}, x=np.array([[1000.0, 1000.0]]))["y"]
    np.testing.assert_array_equal(got, [[0.5, 0.5]])


def test_attention_weighs_values_by_the_softmax_of_scaled_scores() -> None:
    # Scores of the only query are scale * (0, 2) = (0, log 3): weights 1/4 and 3/4 of the values 4 and 8 give 7.
    arrays = {
        "q": np.array([[[[1.0], [0.0]]]]),
        "k": np.array([[[[0.0], [2.0]]]]),
        "v": np.array([[[[4.0], [8.0]]]]),
    }
    reference = load_problem("attention_prefill").reference
    got = reference(axes={"causal": 0}, scale=math.log(3.0) / 2, **arrays)["o"]
    np.testing.assert_allclose(got[0, 0, :, 0], [7.0, 6.0], rtol=1e-15)


def test_a_causal_query_sees_nothing_after_itself() -> None:
    generator = np.random.default_rng(3)
    q, k, v = generator.standard_normal((3, 1, 2, 4, 8))
    reference = load_problem("attention_prefill").reference
    whole = reference(axes={"causal": 1}, q=q, k=k, v=v, scale=0.5)["o"]
    np.testing.assert_allclose(whole[..., 0, :], v[..., 0, :])
    first_two = reference(axes={"causal": 1}, q=q[..., :2, :], k=k[..., :2, :], v=v[..., :2, :], scale=0.5)["o"]
    np.testing.assert_allclose(whole[..., :2, :], first_two)


@pytest.mark.parametrize(("name", "workload"), [*checks("softmax"), *checks("attention_prefill")])
def test_mlx_agrees_with_the_reference(name: str, workload: Workload) -> None:
    problem = load_problem(name)
    axes, inputs = problem.bind_axes(workload), drawn_inputs(problem, workload)
    arrays = problem.arrays(workload)
    given = {
        key: mx.array(value.astype(np.float32)).astype(getattr(mx, arrays[key].dtype.name))
        for key, value in inputs.items()
    }
    (output,) = problem.outputs
    (result,) = problem.baseline(axes=axes, **given)
    want = problem.reference(axes=axes, **inputs)[output.name]
    assert result.shape == arrays[output.name].shape
    # Off Metal, MLX's attention falls back to operations that round the weights to the element type too.
    allowed = 6.0 if name == "attention_prefill" and arrays["o"].dtype.itemsize == 2 else 1.0
    got = np.array(result.astype(mx.float32)).astype(np.float64)
    assert worst_error(problem, workload, output.name, got, want) <= allowed


@pytest.mark.parametrize("name", ["softmax", "attention_prefill"])
def test_rounding_the_right_answer_is_tolerated_and_summing_in_half_precision_is_not(name: str) -> None:
    problem = load_problem(name)
    wanted = "long odd rows" if name == "softmax" else "wide heads"
    (workload,) = [work for work in problem.workloads if work.name == wanted]
    inputs = drawn_inputs(problem, workload)
    want = next(iter(problem.reference(axes=problem.bind_axes(workload), **inputs).values()))
    half = DTYPES["float16"]
    output = problem.outputs[0].name
    assert worst_error(problem, workload, output, half.decode(half.encode(want)), want) < 0.8

    x = inputs["x"] if name == "softmax" else (inputs["q"] @ np.swapaxes(inputs["k"], -1, -2)) * inputs["scale"]
    weights = np.exp(x - x.max(axis=-1, keepdims=True)).astype(np.float16)
    total = np.add.accumulate(weights, axis=-1)[..., -1:]
    if name == "softmax":
        rough = weights / total
    else:
        rough = np.zeros(want.shape, np.float16)
        for key in range(weights.shape[-1]):
            rough += weights[..., key : key + 1] * inputs["v"].astype(np.float16)[..., key : key + 1, :]
        rough /= total
    assert worst_error(problem, workload, output, rough.astype(np.float64), want) > 1.0


def test_costs_are_what_a_person_counts() -> None:
    softmax = load_problem("softmax")
    (wide,) = [work for work in softmax.workloads if work.name.startswith("attention scores")]
    # 4096 * 4096 halves in and out; five operations an element.
    assert softmax.cost(wide) == (2 * 2 * 4096 * 4096, 5 * 4096 * 4096)

    attention = load_problem("attention_prefill")
    (causal,) = [work for work in attention.workloads if work.name == "causal tail"]
    # Four arrays of 2 heads * 67 * 64 halves; 67 * 68 / 2 = 2278 pairs, two products of 2 * 64 FLOPs each, 2 heads.
    assert attention.cost(causal) == (4 * 2 * 67 * 64 * 2, 2278 * 2 * 2 * 64 * 2)


@pytest.mark.parametrize("name", BUILT_IN)
def test_cuda_references_parse_without_a_complaint(name: str) -> None:
    problem = load_problem(name)
    assert problem.cuda
    for path in problem.cuda:
        source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
        assert not source.diagnostics
        assert source.kernels


def test_check_shapes_leave_the_grid_and_reach_the_small_input_rule() -> None:
    softmax = load_problem("softmax").of_role("check")
    assert min(work.axes["rows"] * work.axes["n"] for work in softmax) < 8
    assert {work.dtypes["T"] for work in softmax} == {"float32", "float16", "bfloat16"}
    assert sum(work.axes["n"] % 4 != 0 for work in softmax) >= 6

    attention = load_problem("attention_prefill").of_role("check")
    assert {(work.axes["D"], work.axes["causal"]) for work in attention} == {(64, 0), (64, 1), (128, 0), (128, 1)}
    assert sum(work.axes["L"] % 4 != 0 for work in attention) >= 5
    assert {work.axes["D"] for work in attention if work.hidden} == {128}


@pytest.mark.parametrize("name", BUILT_IN)
def test_hidden_workloads_bring_no_new_types_so_that_nothing_more_has_to_be_compiled(name: str) -> None:
    problem = load_problem(name)
    shown = {work.dtypes["T"] for work in problem.workloads if not work.hidden}
    assert {work.dtypes["T"] for work in problem.workloads} == shown
