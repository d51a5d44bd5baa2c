"""Constants of structs and of their templates in launches and kernels; kernels that a condition chooses."""

from __future__ import annotations

import pytest

from tests.translator.launch_texts import SCALE, array, host, plan
from translator.launch_plan import LaunchPlan

TRAITS = """\
template <int kThreads_, typename T_, int kItems_ = 2>
struct Traits {
  using T = T_;
  static constexpr int kThreads = kThreads_;
  static constexpr int kBytes = sizeof(T);
  static constexpr int kVector = kBytes == 4 ? 4 : 8;
  static constexpr int kTile = kThreads * kVector * kItems_;
};
template <typename Tr> __global__ void k(typename Tr::T* out, int n) {
  using T = typename Tr::T;
  constexpr int kTile = Tr::kTile;
  T* y = out + blockIdx.x * kTile;
  y[threadIdx.x] = T(0);
}
"""


def launch(found: LaunchPlan) -> tuple[str, str, str]:
    (step,) = found.steps
    return step.grid[0], step.block[0], step.shared


@pytest.mark.parametrize(
    ("definition", "block"),
    [
        ("struct C { static constexpr int kThreads = 96; };", "96"),
        ("struct C { static const int kWarps = 3, kThreads = kWarps * 32; };", "96"),
        ("struct C { enum { kThreads = 96 }; };", "96"),
        ("struct B { static constexpr int kThreads = 96; }; struct C : B {};", "96"),
        ("template <int N> struct B { static constexpr int kThreads = N; }; struct C : public B<96> {};", "96"),
        ("namespace config { struct C { static constexpr int kThreads = 96; }; } using config::C;", "96"),
        ("template <int N> struct B { static constexpr int kThreads = N; }; using C = B<3 * 32>;", "96"),
        ("struct A { static constexpr int kThreads = 64; }; struct C { static constexpr int kThreads = 96; };", "96"),
        ("struct C { static constexpr int kThreads = 96; }; struct A { static constexpr int kThreads = 64; };", "96"),
    ],
)
def test_a_constant_of_a_struct_is_read(definition, block):
    found = plan(f"{definition}\n{host('scale<<<n, C::kThreads>>>(x, y, n);')}")
    assert launch(found) == ("n", block, "0")
    assert found.questions == ()


@pytest.mark.parametrize(
    ("kind", "arguments", "block", "shared"),
    [("float", "128, T", "128", "1024"), ("half", "64, T", "64", "1024"), ("float", "32, T, 5", "32", "640")],
)
def test_the_constants_of_an_instance_of_a_template_are_read(kind, arguments, block, shared):
    text = f"""{TRAITS}
template <typename T> void launch(T* out, int n) {{
  using Tr = Traits<{arguments}>;
  k<Tr><<<n, Tr::kThreads, Tr::kTile>>>(out, n);
}}
void run({kind}* out, int n) {{ launch<{kind}>(out, n); }}
"""
    found = plan(text)
    assert launch(found) == ("n", block, shared)
    assert found.steps[0].template == (f"Traits<{arguments.replace('T', kind)}>",)
    assert found.questions == ()


def test_a_kernel_knows_the_constants_and_types_of_its_traits():
    found = plan(TRAITS + "void run(half* out, int n) { k<Traits<64, half>><<<n, 64>>>(out, n); }")
    out = array(found, "out")
    # the last block begins at (n - 1) * 64 * 8 * 2, and has 64 threads
    assert (out.dtype, out.extent) == ("float16", "1024 * n - 960")


def test_numbers_of_the_host_are_put_into_the_arguments_of_a_template():
    text = TRAITS + "template <int N> void go(float* out, int n) { using Tr = Traits<N * 2, float>; "
    text += "k<Tr><<<n, Tr::kThreads>>>(out, n); }\nvoid run(float* out, int n) { go<48>(out, n); }"
    found = plan(text)
    assert (found.steps[0].template, found.steps[0].block[0]) == (("Traits<48 * 2, float>",), "96")


def test_a_whole_specialisation_is_taken_and_one_with_parameters_is_asked_about():
    text = """\
template <typename T> struct Threads { static constexpr int kCount = 64; };
template <> struct Threads<double> { static constexpr int kCount = 32; };
"""
    assert launch(plan(text + host("scale<<<n, Threads<double>::kCount>>>(x, y, n);")))[1] == "32"
    assert launch(plan(text + host("scale<<<n, Threads<float>::kCount>>>(x, y, n);")))[1] == "64"
    text += "template <typename T> struct Threads<T*> { static constexpr int kCount = 16; };\n"
    (question,) = plan(text + host("scale<<<n, Threads<float*>::kCount>>>(x, y, n);")).questions
    assert question.answer == "block"
    assert "which specialisation 'Threads<float*>' is isn't followed" in question.message


def test_a_constant_that_hangs_on_an_unknown_argument_names_it():
    text = "template <int N_> struct Tr { static constexpr int kN = 32 * N_; static constexpr int kOne = 32; };\n"
    (question,) = plan(text + host("scale<<<Tr<W>::kOne, Tr<W>::kN>>>(x, y, n);")).questions
    assert question.answer == "block"
    assert "the source doesn't say what 'W' is" in question.message


@pytest.mark.parametrize(
    "definition",
    [
        "struct C { static constexpr int kA = kB; static constexpr int kB = kA; };",
        "struct C : C { };",
        "template <int N> struct D { static constexpr int kA = D<N + 1>::kA; }; using C = D<0>;",
        "struct C { using T = typename C::T; static constexpr int kA = sizeof(T); };",
    ],
)
def test_constants_that_lead_to_themselves_are_asked_about(definition):
    (question,) = plan(f"{definition}\n{host('scale<<<n, C::kA>>>(x, y, n);')}").questions
    assert question.answer == "block"


def test_names_that_lead_to_ever_more_names_come_to_an_end():
    """Without a limit the aliases would be looked up 4 ** 30 times."""
    traits = "template <typename A, typename B, typename C, typename D> struct S { using T = A; };\nusing U0 = float;\n"
    chain = "".join(f"using U{at + 1} = typename S<U{at}, U{at}, U{at}, U{at}>::T;\n" for at in range(30))
    assert len(plan(traits + chain + host("scale<<<n, sizeof(U30)>>>(x, y, n);")).steps) == 1


CHOICE = """\
template <bool kMasked> __global__ void k(const int* mask, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = kMasked ? mask[i] : 0;
}
void run(const int* mask, float* y, int n) {
  auto kernel = CONDITION ? &k<true> : &k<false>;
  kernel<<<(n + 63) / 64, 64>>>(mask, y, n);
}
"""


@pytest.mark.parametrize(
    ("condition", "template", "requires"),
    [
        ("(2 > 1)", "true", ()),
        ("mask != nullptr", "true", ()),
        ("mask == nullptr", "false", ()),
        ("!mask", "false", ()),
        ("n <= 4096", "true", (("most", "n", "4096"),)),
        ("n % 4 != 0", "false", (("multiple", "n", "4"),)),
    ],
)
def test_a_kernel_is_chosen_by_a_condition_that_can_be_read(condition, template, requires):
    found = plan(CHOICE.replace("CONDITION", condition))
    assert (found.steps[0].template, found.requires, found.questions) == ((template,), requires, ())
    assert len(found.choices) == len(requires)


def test_a_choice_between_kernels_is_answered_by_its_line():
    text = CHOICE.replace("CONDITION", "n <= 4096")
    assert plan(text, branch__6="else").steps[0].template == ("false",)
    asked = plan(CHOICE.replace("CONDITION", "is_aligned(y)"))
    assert [question.answer for question in asked.questions] == ["branch.6"]
    assert "the host launches one way or another by 'is_aligned(y)'" in asked.questions[0].message
    assert plan(CHOICE.replace("CONDITION", "is_aligned(y)"), branch__6="then").questions == ()


def test_a_kernel_that_no_condition_tells_is_named_with_the_reason():
    text = f"{SCALE}void run(const float* x, float* y, int n) {{ auto f = find_kernel(n); f<<<n, 1>>>(x, y, n); }}\n"
    (question,) = plan(text).questions
    assert question.message == "which kernel 'f' is can't be read: what 'find_kernel' gives isn't known"


@pytest.mark.parametrize(
    ("condition", "template", "requires"),
    [
        ("n % 8 == 0", "1", (("multiple", "n", "8"),)),
        ("mask == nullptr", "0", ()),
        ("causal", "1", (("equal", "causal", "1"),)),
    ],
)
def test_a_switch_over_a_condition_takes_a_way_that_can_be_required(condition, template, requires):
    text = f"""{CHOICE.partition("void run")[0]}
void run(const int* mask, float* y, int n, bool causal) {{
  BOOL_SWITCH({condition}, kMasked, [&] {{ k<kMasked><<<(n + 63) / 64, 64>>>(mask, y, n); }});
}}
"""
    found = plan(text)
    assert (found.steps[0].template, found.requires, found.questions) == ((template,), requires, ())
    assert plan(text, value__kMasked="0").steps[0].template == ("0",)


def test_a_switch_over_numbers_asks_which_one():
    text = """\
template <int kDim> __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x % kDim]; }
void run(const float* x, float* y, int dim) { DISPATCH_DIM(dim, kDim, [&] { k<kDim><<<1, kDim>>>(x, y); }); }
"""
    asked = plan(text).questions
    assert [question.answer for question in asked] == ["block", "value.kDim"]
    assert "'kDim' is a number that the macro chooses by dim" in asked[0].message
    found = plan(text, value__kDim="64")
    assert (found.questions, found.steps[0].block[0], found.steps[0].template) == ((), "64", ("64",))
