"""What a plan asks where the source doesn't say, and what becomes of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.translator.launch_texts import SCALE, array, host, kernel, plan
from translator.cuda_source import CudaSource, parse_cuda
from translator.launch_plan import LaunchPlan, Role
from translator.launches import answered_plan, launch_from_text, read_launches
from translator.mistakes import CudaInputError

CORPUS = Path(__file__).parent.parent / "corpus" / "cuda"


def test_what_nothing_bounds_is_asked_and_the_answer_settles_it():
    text = kernel("y[threadIdx.x] = table[ids[threadIdx.x] * d];",
                  "const int* ids, const float* table, float* y, int d", "1, 32")  # fmt: skip
    assert {question.answer for question in plan(text).questions} == {"below.ids", "extent.table"}
    found = plan(text, below__ids="vocab")
    assert found.questions == ()
    assert (array(found, "table").extent, found.axes) == ("d * vocab - d + 1", ("d", "vocab"))
    found = plan(text, extent__table="rows * d", below__ids="rows")
    assert array(found, "table").extent == "d * rows"


def test_a_choice_that_no_size_decides_is_asked():
    text = host("if (is_aligned(x)) scale<<<n, 64>>>(x, y, n); else scale<<<n, 32>>>(x, y, n);")
    found = plan(text)
    assert found.questions[0].answer == "branch.5"
    assert found.steps[0].block[0] == "32"
    assert plan(text, branch__5="then").steps[0].block[0] == "64"
    with pytest.raises(CudaInputError, match=r"'branch.5=up' can't be used: answer then or else"):
        plan(text, branch__5="up")


def test_a_kernel_that_nothing_launches_is_asked_for_and_answered():
    questions = plan(SCALE).questions
    assert [question.answer for question in questions] == ["grid", "block"]
    assert "no host code launches 'scale'" in questions[0].message
    found = answered_plan(parse_cuda(SCALE, "k.cu"), "scale", launch_from_text("grid=ceildiv(n, 256) block=256"))
    assert found.questions == ()
    assert (found.steps[0].grid, found.axes) == (("ceildiv(n, 256)", "1", "1"), ("n",))
    assert [(a.extent, a.role) for a in found.arrays] == [("n", Role.INPUT), ("n", Role.OUTPUT)]


def test_a_line_of_answers_is_taken_apart():
    line = 'grid=ceildiv(n, 256),heads block=64 shared=4 * n extent.x = "n * d" below.idx=vocab'
    assert launch_from_text(line) == {
        "grid": "ceildiv(n, 256),heads", "block": "64", "shared": "4 * n", "extent.x": "n * d", "below.idx": "vocab"
    }  # fmt: skip


@pytest.mark.parametrize("line", ["grid", "grid=", "frid=3", "grid=3 oops"])
def test_a_line_that_is_no_answer_is_refused(line):
    with pytest.raises(CudaInputError, match=r"write key=value|is no answer|can't be used"):
        answered_plan(parse_cuda(SCALE, "k.cu"), None, launch_from_text(line))


def test_sizes_that_only_the_gpu_knows_are_asked_for():
    text = host(
        "int sms; cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); scale<<<sms * 2, 64>>>(x, y, n);"
    )
    (question,) = plan(text).questions
    assert (question.answer, question.span.line) == ("grid", 5)
    assert "cudaDeviceGetAttribute" in question.message
    assert plan(text, value__sms="40").steps[0].grid[0] == "80"


def test_a_type_that_the_source_leaves_open_is_asked_for():
    text = """\
template <typename T> __global__ void k(T* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = T(0); }
template <typename T> void run(T* y, int n) { k<T><<<1, 64, 64 * sizeof(T)>>>(y, n); }
"""
    assert {question.answer for question in plan(text).questions} == {"type.T"}
    found = plan(text, type__T="half")
    assert found.questions == ()
    assert (found.steps[0].template, found.steps[0].shared, found.arrays[0].dtype) == (("half",), "128", "float16")
    instantiated = text + "template void run<double>(double*, int);\n"
    assert plan(instantiated).steps[0].template == ("double",)


def test_an_answer_about_what_is_not_there_is_refused():
    with pytest.raises(
        CudaInputError, match=r"'extent.z' answers nothing, there is no 'z' in the plan; there are x, y"
    ):
        plan(host("scale<<<n, 64>>>(x, y, n);"), extent__z="n")


def keys(found: LaunchPlan) -> list[str]:
    return [question.answer for question in found.questions]


def test_all_that_no_answer_can_change_is_asked_at_once():
    text = """\
template <typename T>
__global__ void gather(const T* x, const int* ids, T* y, int n, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[ids[i] * d];
}
"""
    assert keys(plan(text)) == ["type.T", "grid", "block", "extent.x", "below.ids"]
    answers = {"type.T": "half", "grid": "ceildiv(n, 64)", "block": "64", "extent.x": "rows * d", "below.ids": "rows"}
    found = answered_plan(parse_cuda(text, "k.cu"), None, answers)
    assert found.questions == ()
    assert [(a.name, a.dtype, a.extent) for a in found.arrays] == [
        ("x", "float16", "d * rows"), ("ids", "int32", "n"), ("y", "float16", "n")
    ]  # fmt: skip


def test_what_follows_from_an_open_launch_size_is_not_asked():
    text = "__global__ void k(float* y, float* z) { y[blockIdx.x] = 0; z[blockIdx.x * 64 + threadIdx.x] = 0; }"
    assert keys(plan(text)) == ["grid", "block"]
    found = plan(text, grid="rows", block="64")
    assert [(a.name, a.extent) for a in found.arrays] == [("y", "rows"), ("z", "64 * rows")]


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("Params p", "'k' takes 'p' as a Params, which this source doesn't define: put its definition into the file"),
        (
            "cudaTextureObject_t p",
            "'k' can't be given 'p': 'p' is a cudaTextureObject_t, which isn't followed: "
            "pass pointers, numbers, or a struct of them",
        ),
    ],
)
def test_what_a_kernel_takes_that_no_plan_holds_is_said_once(parameter: str, message: str):
    text = kernel("y[threadIdx.x] = 0;", f"float* y, {parameter}", "1, 32")
    assert [question.message for question in plan(text).questions] == [message]


def without_host(source: CudaSource) -> CudaSource:
    """Return a source with blanks for its host functions."""
    text = list(source.text)
    for span in source.host_functions:
        text[span.start : span.end] = (c if c == "\n" else " " for c in source.text[span.start : span.end])
    return parse_cuda("".join(text), source.path)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.cu")), ids=lambda path: path.stem)
def test_one_round_of_questions_is_enough_for_a_kernel_of_the_corpus(path: Path):
    """What is asked besides the launch sizes is what is still open when they have been answered."""
    source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
    if not source.kernels:
        pytest.skip("no kernel")
    launch = read_launches(source).steps[0]
    alone = without_host(source)
    first = keys(answered_plan(alone, launch.kernel, {}))
    sizes = {"grid": ", ".join(launch.grid), "block": ", ".join(launch.block)}
    assert set(sizes) <= set(first)
    assert set(first) - set(sizes) == set(keys(answered_plan(alone, launch.kernel, sizes)))
