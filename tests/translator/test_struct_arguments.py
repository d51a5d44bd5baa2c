"""Launch plans of kernels that take a struct by value: its members as the host fills them."""

from __future__ import annotations

import pytest

from search.kernels.cuda_program import ArrayValue, IntegerValue, RealValue, StructValue, bind_launches
from translator.cuda_source import parse_cuda
from translator.device_text import device_text
from translator.launch_plan import ArrayArgument, LaunchPlan, ScalarArgument, SizeArgument, StructArgument
from translator.launches import read_launches

STRUCTS = """\
struct Dims { int rows, cols; };
struct Params { const float* x; float* y; Dims dims; float scale; int unused; };
__global__ void k(const Params p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.dims.rows * p.dims.cols) p.y[i] = p.scale * p.x[i];
}
"""
PARAMETERS = "const float* a, float* b, int m, int n"


def plan(text: str) -> LaunchPlan:
    found = read_launches(parse_cuda(text, "k.cu"))
    assert [question.message for question in found.questions] == []
    return found


def leaves(found: LaunchPlan) -> dict[str, object]:
    (argument,) = found.steps[0].arguments
    assert isinstance(argument, StructArgument)
    return {path: None if member.unset else member.argument for path, member in argument.leaves()}


FILLED = {
    "x": ArrayArgument("a"), "y": ArrayArgument("b"), "dims.rows": SizeArgument("m"), "dims.cols": SizeArgument("n"),
    "scale": ScalarArgument("scale"), "unused": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "fill",
    [
        "Params p; p.x = a; p.y = b; p.dims.rows = m; p.dims.cols = n; p.scale = 0.5f;",
        "Params p{a, b, {m, n}, 0.5f, 1};",
        "Params p = {a, b, m, n, 0.5f};",
        "Params p = {.x = a, .y = b, .dims = {.rows = m, .cols = n}, .scale = 0.5f};",
        "Params p{}; Params* q = &p; p.x = a; p.y = b; p.dims = Dims{m, n}; p.scale = 0.5f;",
        "Dims d{m, n}; auto p = Params{a, b, d, 0.5f};",
        "Dims d; d.cols = n; d.rows = m; Params o = {a, b, d, 0.5f}; Params p = o;",
        "Params p; memset(&p, 0, sizeof(p)); p.x = a; p.y = b; p.dims.rows = m; p.dims.cols = n; p.scale = 0.5f;",
        "Params p; p = Params{a, b, {m, n}, 0.25f}; p.scale = 0.5f;",
        "Params p; if (m > 3) { p.dims.rows = m; } else { p.dims.rows = m; } p.dims.cols = n; p.x = a; p.y = b; "
        "p.scale = 0.5f;",
    ],
)  # fmt: skip
def test_however_the_host_fills_a_struct_its_members_are_the_same(fill: str) -> None:
    found = plan(f"{STRUCTS}void run({PARAMETERS}) {{ {fill} k<<<(m * n + 63) / 64, 64>>>(p); }}")
    assert leaves(found) == FILLED
    assert {array.name: (array.extent, array.role.value) for array in found.arrays} == {
        "a": ("m * n", "input"), "b": ("m * n", "output")
    }  # fmt: skip
    assert [(scalar.name, scalar.value) for scalar in found.scalars] == [("scale", "0.5")]


@pytest.mark.parametrize(
    "host",
    [
        "void fill(Params& p, const float* x, float* y, int r, int c) { p.x = x; p.y = y; p.dims = {r, c}; "
        "p.scale = 0.5f; }\nvoid run(PARAMETERS) { Params p; fill(p, a, b, m, n); LAUNCH }",
        "void fill(Params* p, const float* x, float* y, int r, int c) { p->x = x; p->y = y; p->dims.rows = r; "
        "p->dims.cols = c; p->scale = 0.5f; }\nvoid run(PARAMETERS) { Params p; fill(&p, a, b, m, n); LAUNCH }",
        "Params made(const float* x, float* y, int r, int c) { Params p; p.x = x; p.y = y; p.dims.rows = r; "
        "p.dims.cols = c; p.scale = 0.5f; return p; }\nvoid run(PARAMETERS) { auto p = made(a, b, m, n); LAUNCH }",
        "Params made(const float* x, float* y, int r, int c) { return {x, y, {r, c}, 0.5f}; }\n"
        "void run(PARAMETERS) { const Params p = made(a, b, m, n); LAUNCH }",
        "void go(const Params& p, cudaStream_t s) { LAUNCH }\n"
        "void run(PARAMETERS) { Params q{a, b, {m, n}, 0.5f}; go(q, 0); }",
    ],
)
def test_a_function_of_the_host_may_fill_or_launch_it(host: str) -> None:
    launch = "k<<<(p.dims.rows * p.dims.cols + 63) / 64, 64>>>(p);"
    found = plan(STRUCTS + host.replace("PARAMETERS", PARAMETERS).replace("LAUNCH", launch))
    assert leaves(found) == FILLED
    assert found.steps[0].grid == ("ceildiv(m * n, 64)", "1", "1")


def test_members_of_a_struct_that_nothing_fills_are_axes_and_arrays_of_their_own() -> None:
    found = plan(f"{STRUCTS}void run(Params& p) {{ k<<<p.dims.rows, 64>>>(p); }}")
    assert found.axes == ("rows", "cols")
    assert leaves(found)["x"] == ArrayArgument("x")
    assert leaves(found)["dims.cols"] == SizeArgument("cols")
    assert [(scalar.name, scalar.value) for scalar in found.scalars] == [("scale", "")]


def test_a_void_pointer_holds_what_the_kernel_casts_it_to() -> None:
    found = plan(
        "struct P { void* __restrict__ u_ptr; const void* w_ptr; int n; };\n"
        "__device__ float at(const P& q, int i) { return ((const __half*)q.w_ptr)[i] * 1.f; }\n"
        "__global__ void k(P p) { float* u = reinterpret_cast<float*>(p.u_ptr); int i = threadIdx.x;\n"
        "  if (i < p.n) u[i] = at(p, 2 * i); }\n"
        "void run(void* u, const void* w, int n) { P p; p.u_ptr = u; p.w_ptr = w; p.n = n; k<<<1, 256>>>(p); }"
    )
    assert {(a.name, a.dtype, a.extent) for a in found.arrays} == {
        ("u", "float32", "n"), ("w", "float16", "2 * n - 1")
    }  # fmt: skip


def test_a_template_struct_has_the_types_of_its_arguments() -> None:
    found = plan(
        "template <typename T> struct P { const T* x; T* y; int n; };\n"
        "template <typename Args> __global__ void k(Args a) { int i = threadIdx.x; if (i < a.n) a.y[i] = a.x[i]; }\n"
        "void run(const __half* x, __half* y, int n) { P<__half> a{x, y, n}; k<<<1, 64>>>(a); }"
    )
    assert found.steps[0].template == ("P<__half>",)
    assert [member.type for _, member in found.steps[0].arguments[0].leaves()] == ["const __half*", "__half*", "int"]


def test_arrays_and_base_classes_in_a_struct_are_opened() -> None:
    found = plan(
        "struct Base { int n; };\nstruct P : public Base { float* x; int stride[2]; };\n"
        "__global__ void k(P p) { int i = threadIdx.x; if (i < p.n) p.x[i * p.stride[1]] = 0.f; }\n"
        "void run(float* x, int n, int s) { P p; p.n = n; p.x = x; p.stride[0] = 1; p.stride[1] = s; k<<<1, 64>>>(p); }"
    )
    assert leaves(found) == {
        "n": SizeArgument("n"), "x": ArrayArgument("x"), "stride[0]": SizeArgument("1"), "stride[1]": SizeArgument("s")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (
            "Params p; p.x = a; p.y = b; p.dims.rows = m; p.scale = 1.f;",
            "'dims.cols' of a Params: the host gives it no",
        ),
        ("Params p; read_from_file(&p);", "the host gives it no value"),
    ],
)
def test_members_that_are_not_known_are_asked_for(fill: str, said: str) -> None:
    found = read_launches(parse_cuda(f"{STRUCTS}void run({PARAMETERS}) {{ {fill} k<<<1, 64>>>(p); }}", "k.cu"))
    assert any(said in question.message for question in found.questions)


def test_a_struct_with_a_constructor_is_asked_about() -> None:
    found = read_launches(parse_cuda(
        "struct P { int n, twice; P(int a) : n(a), twice(2 * a) {} };\n"
        "__global__ void k(float* x, P p) { if (threadIdx.x < p.twice) x[threadIdx.x] = 0.f; }\n"
        "void run(float* x, int n) { P p(n); k<<<1, 64>>>(x, p); }", "k.cu"
    ))  # fmt: skip
    assert "has a constructor" in found.questions[0].message


def test_a_struct_becomes_one_value_of_its_members() -> None:
    text = f"{STRUCTS}void run({PARAMETERS}) {{ Params p{{a + n, b, {{m, n}}, 0.5f}}; k<<<1, 64>>>(p); }}"
    source = parse_cuda(text, "k.cu")
    found = read_launches(source)
    program = bind_launches(found, device_text(source), {"m": 2, "n": 3})
    assert program.launches[0].arguments == (
        StructValue((
            ArrayValue("a", 3), ArrayValue("b", 0), StructValue((IntegerValue(2), IntegerValue(3))), RealValue(0.5),
            IntegerValue(0),
        )),
    )  # fmt: skip
