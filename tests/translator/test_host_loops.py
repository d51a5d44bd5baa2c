"""What the host does between launches: loops, swapped pointers, numbers that change, copies and libraries."""

from __future__ import annotations

import pytest

from tests.translator.launch_texts import plan
from translator.cuda_source import parse_cuda
from translator.launch_plan import ArrayArgument, LaunchPlan, ScalarArgument, SizeArgument
from translator.launches import answered_plan

KERNELS = """\
__global__ void step(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1.f;
}
__global__ void axpy(float* x, const float* g, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] -= rate * g[i];
}
"""
SWAPPED = [("a", "b"), ("b", "a"), ("a", "b")]


def source(body: str, before: str = "") -> str:
    return f"""{KERNELS}{before}
void run(float* a, float* b, float* x, const float* g, float rate, int n, int rounds, bool fast) {{
  int grid = (n + 127) / 128;
  {body}
}}
"""


def arrays(found: LaunchPlan) -> list[tuple[str, ...]]:
    return [tuple(a.array for a in step.arguments if isinstance(a, ArrayArgument)) for step in found.steps]


@pytest.mark.parametrize(
    ("swap", "before"),
    [
        ("std::swap(a, b);", ""),
        ("float* t = a; a = b; b = t;", ""),
        ("exchange(a, b);", "void exchange(float*& p, float*& q) { float* t = p; p = q; q = t; }"),
    ],
)
@pytest.mark.parametrize("loop", ["for (int i = 0; i < 3; ++i)", "int k = 0; for (; k < 3; k++)"])
def test_buffers_that_are_swapped_in_each_round_are_followed(swap: str, before: str, loop: str) -> None:
    found = plan(source(f"{loop} {{ step<<<grid, 128>>>(a, b, n); {swap} }}", before))
    assert arrays(found) == SWAPPED
    assert not found.choices


def test_a_loop_that_repeats_the_same_launch_is_taken_once_and_says_so() -> None:
    found = plan(source("for (int i = 0; i < 3; ++i) step<<<grid, 128>>>(a, b, n);"))
    assert arrays(found) == [("a", "b")]
    assert "repeats these launches unchanged" in found.choices[0].message


def test_a_counter_that_is_declared_before_the_loop_has_its_first_value() -> None:
    found = plan(source("int k; for (k = 2; k <= 8; k <<= 1) step<<<grid, 128>>>(a, b, k);"))
    assert [step.arguments[2] for step in found.steps] == [SizeArgument("2"), SizeArgument("4"), SizeArgument("8")]


def test_how_many_rounds_are_taken_is_asked_and_can_be_answered() -> None:
    text = source("for (int i = 0; i < rounds; ++i) { step<<<grid, 128>>>(a, b, n); std::swap(a, b); }")
    (asked,) = plan(text).questions
    assert (asked.answer, asked.message.partition(":")[0]) == (
        "rounds.12", "how often the host launches in this loop depends on sizes or data, which a plan can't say"
    )  # fmt: skip
    assert arrays(answered_plan(parse_cuda(text, "k.cu"), None, {"rounds.12": "3"})) == SWAPPED


def test_pointers_that_a_function_changes_by_address_are_asked_about() -> None:
    before = "void exchange(float** p, float** q) { float* t = *p; *p = *q; *q = t; }"
    found = plan(source("step<<<grid, 128>>>(a, b, n); exchange(&a, &b); step<<<grid, 128>>>(a, b, n);", before))
    assert "'a' is changed by 'exchange', which isn't followed" in found.questions[0].message


@pytest.mark.parametrize(
    "changed",
    ["rate *= 0.5f; {};", "rate = rate * 0.5f; {};", "float half = rate / 2; {half};", "{-rate};", "{0.1f * rate};"],
)
def test_numbers_that_differ_between_launches_are_two(changed: str) -> None:
    launched = "axpy<<<grid, 128>>>(x, g, {}, n)"
    head, _, tail = changed.partition("{")
    given, _, tail = tail.partition("}")
    found = plan(source(f"{launched.format('rate')}; {head}{launched.format(given or 'rate')}{tail}"))
    names = [a.scalar for step in found.steps for a in step.arguments if isinstance(a, ScalarArgument)]
    assert len(set(names)) == 2 == len(found.scalars)


def test_a_number_that_stays_is_one() -> None:
    found = plan(source("for (int i = 0; i < 2; ++i) { axpy<<<grid, 128>>>(x, g, rate, n); std::swap(a, b); }"))
    assert len(found.steps) == 2 and [s.name for s in found.scalars] == ["rate"]


def test_a_number_is_not_called_like_an_array() -> None:
    text = """\
__global__ void scale(float* x, float a, int n) { if (threadIdx.x < n) x[threadIdx.x] *= a; }
void run(float* a, int n) { scale<<<1, 32>>>(a, 2.f, n); }
"""
    found = plan(text)
    assert [array.name for array in found.arrays] == ["a"] and [s.name for s in found.scalars] == ["a_value"]


@pytest.mark.parametrize(
    ("between", "array"),
    [
        ("cudaMemset(b, 0, n * sizeof(float));", "b"),
        ("cudaMemcpy(b, x, n * sizeof(float), cudaMemcpyHostToDevice);", "b"),
        ("cudaMemcpy(b, x, n * sizeof(float), cudaMemcpyDefault);", "b"),
        ("cublasSscal(handle, n, &rate, b, 1);", "b"),
        ("thrust::sort(thrust::device, b, b + n);", "b"),
    ],
)
def test_what_changes_an_array_between_two_launches_is_asked_about(between: str, array: str) -> None:
    found = plan(source(f"step<<<grid, 128>>>(a, b, n); {between} step<<<grid, 128>>>(b, x, n);"))
    (asked,) = found.questions
    assert asked.about == array and "between two launches" in asked.message
    assert not plan(source(f"step<<<grid, 128>>>(a, b, n); {between}")).questions


def test_an_integer_that_is_read_back_is_no_longer_what_it_was() -> None:
    found = plan(source("int m = 0; cudaMemcpy(&m, x, 4, cudaMemcpyDeviceToHost); step<<<grid, 128>>>(a, b, m);"))
    assert "'m' is changed by 'cudaMemcpy'" in found.questions[0].message


def test_chained_assignments_give_each_its_value() -> None:
    found = plan(source("int p, q; p = q = n; step<<<p, 128>>>(a, b, q);"))
    assert (found.steps[0].grid[0], found.steps[0].arguments[2]) == ("n", SizeArgument("n"))


def test_a_bool_of_the_host_is_one_or_nought() -> None:
    text = """\
__global__ void k(const float* x, float* y, int n, bool fast) { if (threadIdx.x < n && fast) y[0] = x[threadIdx.x]; }
void run(const float* x, float* y, int n, bool fast) { k<<<1, 32>>>(x, y, n, fast); }
"""
    assert plan(text).requires == (("most", "fast", "1"),)


def test_a_constant_that_a_driver_passes_is_an_example_of_a_size() -> None:
    text = f"""\
const int COUNT = 4000000;
{KERNELS}
int main() {{
  float *a, *b;
  cudaMalloc(&a, COUNT * sizeof(float));
  cudaMalloc(&b, COUNT * sizeof(float));
  step<<<(COUNT + 127) / 128, 128>>>(a, b, COUNT);
}}
"""
    found = plan(text)
    assert (found.axes, found.given) == (("COUNT",), (("COUNT", 4000000),))
    fixed = plan(text.replace("a[i] + 1.f", "a[i] + COUNT"))
    assert fixed.axes == ()


def test_a_pointer_at_file_scope_is_an_array() -> None:
    text = f"""\
static float *scratch;
{KERNELS}
void prepare(int n) {{ cudaMalloc((void **)&scratch, n * sizeof(float)); }}
void run(float* a, float* b, int n) {{
  step<<<(n + 127) / 128, 128>>>(a, scratch, n);
  step<<<(n + 127) / 128, 128>>>(scratch, b, n);
}}
"""
    assert arrays(plan(text)) == [("a", "scratch"), ("scratch", "b")]


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("for (int i = 0; i < 5; i++) { step<<<grid, 128>>>(a, b, n + i); if (i == 1) break; }", ["n", "n + 1"]),
        ("for (int i = 0; i < 4; i++) { if (i % 2) continue; step<<<grid, 128>>>(a, b, n + i); }", ["n", "n + 2"]),
        ("for (int i = 0; i < 4; i++) { switch (i) { case 0: case 2: step<<<grid, 128>>>(a, b, n + i); break; } }",
         ["n", "n + 2"]),
        ("for (int i = 0; i < 4; i++) { step<<<grid, 128>>>(a, b, n + i); if (i == 1) return; }\n"
         "step<<<grid, 128>>>(a, b, 7);", ["n", "n + 1"]),
        ("for (int i = 0; i < 2; i++) { for (int j = 0; j < 3; j++) { if (j == 1) break; "
         "step<<<grid, 128>>>(a, b, n + i); } }", ["n", "n + 1"]),
    ],
)  # fmt: skip
def test_rounds_end_where_the_host_leaves_them(body: str, sizes: list[str]) -> None:
    found = plan(source(body))
    assert [step.arguments[2] for step in found.steps] == [SizeArgument(size) for size in sizes]
    assert not found.questions


def test_a_loop_that_data_ends_is_asked_about() -> None:
    text = source("for (int i = 0; i < 5; i++) { step<<<grid, 128>>>(a, b, n + i); if (*x < 0.1f) break; }")
    (asked,) = plan(text).questions
    assert asked.answer == "rounds.12"
    assert len(answered_plan(parse_cuda(text, "k.cu"), None, {"rounds.12": "4"}).steps) == 4


def test_a_way_that_returns_is_said_to_be_for_some_sizes_only() -> None:
    found = plan(source("if (fast) { step<<<grid, 128>>>(a, b, n); return; } step<<<grid, 128>>>(b, x, n);"))
    assert arrays(found) == [("a", "b")]
    assert "this plan is for sizes where (fast)" in found.choices[0].message
