"""Strides of PyTorch's tensors: what a contiguous tensor of these sizes has."""

from __future__ import annotations

import pytest

from translator.cuda_source import parse_cuda
from translator.launch_plan import LaunchPlan, SizeArgument
from translator.launches import answered_plan

KERNEL = (
    "__global__ void k(const float* x, float* y, int d, long a, long b) { y[blockIdx.x * a + threadIdx.x] = x[b]; }\n"
)


def plan_of(checks: str, arguments: str, **answers: str) -> LaunchPlan:
    """Return the plan of a launch that is given ``d`` and two strides."""
    text = f"""{KERNEL}
torch::Tensor f(torch::Tensor x) {{
  {checks}
  auto y = torch::empty_like(x);
  k<<<4, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), d, {arguments});
  return y;
}}
"""
    return answered_plan(parse_cuda(text, "k.cu"), None, {f"value.{key}": size for key, size in answers.items()})


def strides(plan: LaunchPlan) -> list[str]:
    return [argument.size for argument in plan.steps[0].arguments[3:] if isinstance(argument, SizeArgument)]


@pytest.mark.parametrize(
    ("checks", "arguments", "expected"),
    [
        ("int n = x.size(0), m = x.size(1), d = x.size(2);", "x.stride(0), x.stride(1)", ["m * d", "d"]),
        ("int n = x.size(0), m = x.size(1), d = x.size(2);", "y.stride(-2), x.stride(-1)", ["d", "1"]),
        ("TORCH_CHECK(x.dim() == 3); int m = x.size(1), d = x.size(2);", "x.stride(0), x.stride(2)", ["m * d", "1"]),
        ("int d = x.size(-1); int n = x.numel() / d;", "x.stride(0), y.stride(0)", ["d", "d"]),
        ("int d = x.size(-1), m = x.size(-2);", "x.stride(-3), x.stride(-2)", ["d * m", "d"]),
    ],
)
def test_strides_follow_from_sizes(checks: str, arguments: str, expected: list[str]) -> None:
    plan = plan_of(checks, arguments)
    assert [question.message for question in plan.questions] == []
    assert strides(plan) == expected
    assert any("is taken to" in choice.message and "contiguous" in choice.message for choice in plan.choices)


def test_the_elements_of_a_tensor_with_all_its_dimensions_are_their_product() -> None:
    plan = plan_of("TORCH_CHECK(x.dim() == 2); int n = x.size(0), d = x.size(1);", "x.numel(), 1")
    assert strides(plan) == ["n * d", "1"]


def test_a_tensor_that_may_have_more_dimensions_is_asked_about() -> None:
    sizes = "int n = x.size(0), c = x.size(1); int d = x.numel() / (n * c);"
    plan = plan_of(sizes, "x.stride(0), x.stride(1)")
    assert {question.answer for question in plan.questions} >= {"value.x_stride0", "value.x_stride1"}
    answered = plan_of(sizes, "x.stride(0), x.stride(1)", x_stride0="c * d", x_stride1="d")
    assert strides(answered) == ["c * d", "d"]
