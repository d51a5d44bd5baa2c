"""Launch plans of small sources: what each spelling means, worked out by hand."""

from __future__ import annotations

import pytest

from tests.translator.launch_texts import SCALE, array, host, kernel, plan
from translator.cuda_source import parse_cuda
from translator.launch_plan import ArrayArgument, Role, ScalarArgument, SizeArgument
from translator.launches import read_launches


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        ("scale<<<(n + 255) / 256, 256>>>(x, y, n);", "ceildiv(n, 256)", "256"),
        ("int b = 256; int g = (n + b - 1) / b; scale<<<g, b>>>(x, y, n);", "ceildiv(n, 256)", "256"),
        ("scale<<<1 + (n - 1) / 128, 128>>>(x, y, n);", "ceildiv(n, 128)", "128"),
        ("scale<<<n / 64 + (n % 64 != 0), 64>>>(x, y, n);", "ceildiv(n, 64)", "64"),
        ("scale<<<n / 64 + (n % 64 ? 1 : 0), 64>>>(x, y, n);", "ceildiv(n, 64)", "64"),
        ("scale<<<(n + 31) >> 5, 1 << 5>>>(x, y, n);", "ceildiv(n, 32)", "32"),
        ("scale<<<ceil(n / 256.0), 256>>>(x, y, n);", "ceildiv(n, 256)", "256"),
        ("scale<<<(int)ceilf((float)n / 256), 256>>>(x, y, n);", "ceildiv(n, 256)", "256"),
        ("scale<<<cdiv(n, 256), dim3(256)>>>(x, y, n);", "ceildiv(n, 256)", "256"),
        ("int g = std::min((n + 255) / 256, 1024); scale<<<g, 256>>>(x, y, n);", "min(ceildiv(n, 256), 1024)", "256"),
        ("int g = n < 512 ? n : 512; scale<<<g, 64>>>(x, y, n);", "min(n, 512)", "64"),
        ("int g = n; if (g > 512) g = 512; scale<<<g, 64>>>(x, y, n);", "min(n, 512)", "64"),
        ("int g = n; if (n > 512) { g = 512; } else { g = n; } scale<<<g, 64>>>(x, y, n);", "min(n, 512)", "64"),
        ("dim3 g; g.x = n; scale<<<g, 64>>>(x, y, n);", "n", "64"),
        ("dim3 g{(unsigned)n}; const auto b = dim3(64, 1); scale<<<g, b>>>(x, y, n);", "n", "64"),
        ("unsigned g = n; g += 3; g *= 2; scale<<<g - 6, 64>>>(x, y, n);", "2 * n", "64"),
        ("scale<<<(n & ~31) / 32, 32>>>(x, y, n);", "n // 32", "32"),
        ("const size_t g = static_cast<size_t>(n); scale<<<g, {32}>>>(x, y, n);", "n", "32"),
    ],
)
def test_launch_sizes_are_what_a_person_would_write(body, grid, block):
    (step,) = plan(host(body)).steps
    assert (step.grid, step.block) == ((grid, "1", "1"), (block, "1", "1"))


@pytest.mark.parametrize(
    "definition",
    [
        "#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))\n",
        "int CEIL_DIV(int a, int b) { return (a + b - 1) / b; }\n",
        "template <typename T> constexpr T CEIL_DIV(T a, T b) { return a / b + (a % b != 0 ? 1 : 0); }\n",
        "static inline int CEIL_DIV(int a, int b) { int up = a + b - 1; return up / b; }\n",
        "",
    ],
)
@pytest.mark.parametrize(
    "constant", ["#define B 96", "constexpr int B = 3 * 32;", "const int B = 96;", "enum { B = 96 };"]
)
def test_helpers_and_constants_of_the_source_are_followed(definition, constant):
    (step,) = plan(f"{constant}\n{definition}" + host("scale<<<CEIL_DIV(n, B), B>>>(x, y, n);")).steps
    assert (step.grid[0], step.block[0]) == ("ceildiv(n, 96)", "96")


def test_arguments_go_with_the_kernels_parameters():
    text = """\
__global__ void axpy(int n, float a, const float* x, float* y) {
  if (threadIdx.x < n) y[threadIdx.x] += a * x[threadIdx.x];
}
void run(const float* x, float* y, int rows, int cols, float alpha) {
  axpy<<<1, 256>>>(cols, alpha, x + (rows - 1) * cols, y);
  axpy<<<1, 256>>>(cols, 0.5f, &x[cols], y);
}
"""
    found = plan(text)
    first, second = found.steps
    assert first.arguments == (
        SizeArgument("cols"), ScalarArgument("alpha"), ArrayArgument("x", "rows * cols - cols"), ArrayArgument("y")
    )  # fmt: skip
    assert second.arguments[2] == ArrayArgument("x", "cols")
    assert [(s.name, s.dtype, s.value) for s in found.scalars] == [("alpha", "float32", ""), ("a", "float32", "0.5")]
    assert found.axes == ("rows", "cols")


def test_template_arguments_are_given_deduced_and_defaulted():
    text = """\
template <typename T, int N, bool FAST = true> __global__ void k(const T* x, T* y) { y[threadIdx.x] = x[threadIdx.x]; }
template <int N> void launch(const half* x, half* y) { k<half, N * 2><<<1, N>>>(x, y); }
void run(const half* x, half* y) { launch<64>(x, y); }
"""
    (step,) = plan(text).steps
    assert step.template == ("half", "128", "true")
    assert step.block == ("64", "1", "1")
    deduced = "template <typename T> __global__ void k(T* y, int n) { y[threadIdx.x] = n; }\n"
    (step,) = plan(deduced + "void run(double* y, int n) { k<<<1, 32>>>(y, n); }").steps
    assert step.template == ("double",)


def test_dynamic_shared_memory_counts_bytes_of_its_types():
    text = host("scale<<<n, 64, (n + 2 * 64) * sizeof(float) + 64 * sizeof(float4)>>>(x, y, n);")
    (step,) = plan(text).steps
    assert step.shared == "4 * n + 1536"


def test_scratch_between_two_launches_is_no_result():
    text = """\
__global__ void sum(const float* x, float* out, int n) {
  if (threadIdx.x == 0) out[blockIdx.x] = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(out + blockIdx.x, x[i]);
}
void run(const float* x, float* result, int n) {
  float* part = nullptr;
  const int blocks = (n + 1023) / 1024;
  cudaMalloc(&part, blocks * sizeof(float));
  sum<<<blocks, 256>>>(x, part, n);
  sum<<<1, 256>>>(part, result, blocks);
  cudaFree(part);
}
"""
    found = plan(text)
    assert found.questions == ()
    roles = {a.name: (a.role, a.extent) for a in found.arrays}
    assert roles["part"] == (Role.SCRATCH, "ceildiv(n, 1024)")
    assert roles["x"] == (Role.INPUT, "n")
    assert [step.arguments[2] for step in found.steps] == [SizeArgument("n"), SizeArgument("ceildiv(n, 1024)")]


@pytest.mark.parametrize(
    ("body", "parameters", "name", "role"),
    [
        ("y[threadIdx.x] = x[threadIdx.x];", "const float* x, float* y", "x", Role.INPUT),
        ("y[threadIdx.x] = x[threadIdx.x];", "float* x, float* y", "x", Role.INPUT),
        ("y[threadIdx.x] = x[threadIdx.x];", "const float* x, float* y", "y", Role.OUTPUT),
        ("y[threadIdx.x] += 1;", "float* y", "y", Role.INOUT),
        ("y[threadIdx.x]++;", "int* y", "y", Role.INOUT),
        ("atomicAdd(&y[threadIdx.x], 1.0f);", "float* y", "y", Role.INOUT),
        ("y[threadIdx.x] = 1; y[threadIdx.x] *= 2;", "float* y", "y", Role.OUTPUT),
        ("if (threadIdx.x < 3) y[threadIdx.x] = 1; y[threadIdx.x] *= 2;", "float* y", "y", Role.INOUT),
        ("for (int i = 0; i < 9; ++i) y[i] = i; for (int i = 0; i < 9; ++i) y[i] += 1;", "int* y", "y", Role.OUTPUT),
        ("y[y[threadIdx.x]] = 1;", "int* y", "y", Role.INOUT),
        ("float4* v = reinterpret_cast<float4*>(y); v[threadIdx.x] = v[threadIdx.x + 1];", "float* y", "y", Role.INOUT),
    ],
)
def test_roles_follow_from_what_the_kernel_does(body, parameters, name, role):
    assert array(plan(kernel(body, parameters, "1, 32")), name).role == role


def test_a_scattered_write_keeps_what_it_does_not_reach():
    text = kernel("cache[slot[blockIdx.x] * 8 + threadIdx.x] = x[threadIdx.x];",
                  "const int* slot, const float* x, float* cache, int n", "n, 8")  # fmt: skip
    assert array(plan(text), "cache").role == Role.INOUT


def test_an_array_that_the_host_clears_is_an_output():
    text = """\
__global__ void count(const unsigned char* x, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}
void run(const unsigned char* x, int* bins, int n) {
  cudaMemset(bins, 0, 256 * sizeof(int));
  count<<<(n + 127) / 128, 128>>>(x, bins, n);
}
"""
    bins = array(plan(text), "bins")
    assert (bins.role, bins.zeroed, bins.extent, bins.dtype) == (Role.OUTPUT, True, "256", "int32")


@pytest.mark.parametrize(
    ("body", "extent"),
    [
        ("int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; y[i] = 0;", "n"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { y[i + 1] = 0; }", "n + 1"),
        ("y[blockIdx.x * blockDim.x + threadIdx.x] = 0;", "256 * ceildiv(n, 256)"),
        (
            "for (int c = threadIdx.x; c < cols; c += blockDim.x) y[blockIdx.x * cols + c] = 0;",
            "cols * ceildiv(n, 256)",
        ),
        ("int r = threadIdx.x / 32, l = threadIdx.x % 32; y[r * 32 + l] = 0;", "256"),
        ("int i = threadIdx.x; while (i < n) { y[i] = 0; i += blockDim.x; }", "n"),
        ("for (int i = n - 1; i >= 0; --i) y[i] = 0;", "n"),
        ("for (int i = 0; i < n; i += 4) for (int j = 0; j < 4; ++j) if (i + j < n) y[i + j] = 0;", "n"),
        (
            "int i = threadIdx.x; if (i < n / 4) reinterpret_cast<float4*>(y)[i] = make_float4(0, 0, 0, 0);",
            "4 * (n // 4)",
        ),
        ("int i = min(blockIdx.x * 256 + threadIdx.x, n - 1); y[i] = 0;", "n"),
        (
            "float* row = y + blockIdx.x * n; row += 3; for (int c = 0; c < n; ++c) row[c] = 0;",
            "n * ceildiv(n, 256) + 3",
        ),
        ("int r = threadIdx.x, c = blockIdx.x; bool in = r < n && c < cols; if (in) y[r * cols + c] = 0;", "n * cols"),
        ("if (threadIdx.x < n) *(y + threadIdx.x) = 0;", "n"),
        (
            "int i = threadIdx.x; if (i < n * cols) { int r = i / cols; int c = i - r * cols; y[c * n + r] = 0; }",
            "n * cols",
        ),
        ("int i = threadIdx.x; if (i < n * cols) { int r = i / cols, c = i % cols; y[r * cols + c] = 0; }", "n * cols"),
        ("for (int i = threadIdx.x; i < n; i += 256) y[i] = i + 1 < n ? y[i + 1] : 0;", "n"),
        ("if (threadIdx.x == 0) y[n] = 0;", "n + 1"),
    ],
)
def test_extents_are_the_largest_index_and_one(body, extent):
    text = kernel(body, "float* y, int n, int cols", "(n + 255) / 256, 256")
    assert array(plan(text), "y").extent == extent


def test_helpers_on_the_device_are_followed_into():
    text = """\
__device__ int at(int r, int c, int ld) { return r * ld + c; }
__device__ void put(float* p, int n) { for (int i = threadIdx.x; i < n; i += 32) p[i] = 0; }
__global__ void k(float* y, const float* x, int rows, int cols) {
  put(y + blockIdx.x * cols, cols);
  if (threadIdx.x < cols) y[0] = x[at(blockIdx.x, threadIdx.x, cols)];
}
void run(float* y, const float* x, int rows, int cols) { k<<<rows, 32>>>(y, x, rows, cols); }
"""
    found = plan(text)
    assert (array(found, "y").extent, array(found, "x").extent) == ("rows * cols", "rows * cols")


def test_a_multiple_that_the_host_checks_makes_vector_extents_whole():
    text = """\
__global__ void k(float4* y, int n4) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n4) y[i] = float4(); }
void run(float* y, int n) {
  if (n % 4 != 0) return;
  k<<<(n / 4 + 63) / 64, 64>>>((float4*)y, n / 4);
}
"""
    found = plan(text)
    assert (array(found, "y").extent, array(found, "y").dtype) == ("n", "float32")
    assert found.requires == (("multiple", "n", "4"),)


def test_vector_loads_of_rows_require_what_keeps_them_aligned():
    body = "const float4* r = (const float4*)(x + blockIdx.x * n); if (threadIdx.x < n / 4) y[0] = r[threadIdx.x].x;"
    text = kernel(body, "const float* x, float* y, int n, int rows", "rows, 64")
    assert plan(text).requires == (("multiple", "n", "4"),)


def test_comments_beside_parameters_give_shapes_and_bounds():
    text = """\
__global__ void gather(const float* table,  // [vocab, dim]
                       const int* ids,      // [tokens]
                       float* out,          // [tokens, dim]
                       int dim) {
  out[blockIdx.x * dim + threadIdx.x] = table[ids[blockIdx.x] * dim + threadIdx.x];
}
void run(const float* table, const int* ids, float* out, int tokens, int dim) {
  gather<<<tokens, dim>>>(table, ids, out, dim);
}
"""
    found = plan(text)
    assert found.questions == ()
    assert (array(found, "table").extent, array(found, "ids").below) == ("dim * vocab", "vocab")
    assert found.axes == ("tokens", "dim", "vocab")


def test_a_guard_bounds_the_elements_used_as_indices():
    text = kernel("int id = ids[threadIdx.x]; if (id < 0 || id >= vocab) return; y[id] = 1;",
                  "const int* ids, float* y, int vocab", "1, 32")  # fmt: skip
    found = plan(text)
    assert (array(found, "ids").below, array(found, "y").extent) == ("vocab", "vocab")


@pytest.mark.parametrize(
    ("check", "requires"),
    [
        ("if (n % 8) return;", ("multiple", "n", "8")),
        ("assert(n % 8 == 0 && \"whole\");", ("multiple", "n", "8")),
        ("TORCH_CHECK(n <= 1024, \"too long\");", ("most", "n", "1024")),
        ("if (n > 1024) { throw std::runtime_error(\"too long\"); }", ("most", "n", "1024")),
        ("if (!(n < 1024)) exit(1);", ("most", "n", "1023")),
        ("if (n < 32) return;", ("least", "n", "32")),
    ],
)  # fmt: skip
def test_checks_of_the_host_are_required(check, requires):
    assert plan(host(f"{check} scale<<<n, 64>>>(x, y, n);")).requires == (requires,)


def test_checks_that_say_nothing_about_sizes_are_left_out():
    checks = "if (n <= 0 || x == nullptr) return; if (cudaPeekAtLastError() != cudaSuccess) return;"
    found = plan(host(f"{checks} scale<<<n, 64>>>(x, y, n);"))
    assert (found.requires, found.questions) == ((), ())


SWITCHED = """\
template <int D, bool C>
__global__ void k(float* y, int n) { if (threadIdx.x < D) y[blockIdx.x * D + threadIdx.x] = n; }
void run(float* y, int n, int d, bool causal) {
  switch (d) {
    case 64: k<64, false><<<n, 64>>>(y, n); break;
    case 128:
      if (causal) k<128, true><<<n, 128>>>(y, n);
      else k<128, false><<<n, 128>>>(y, n);
      break;
    default: throw 1;
  }
}
"""


def test_a_switch_gives_its_first_variant_and_says_which_others_there_are():
    found = plan(SWITCHED)
    assert found.steps[0].template == ("64", "false")
    assert (found.requires, array(found, "y").extent) == ((("equal", "d", "64"),), "64 * n")
    assert found.choices[0].answer == "value.d"


def test_an_answer_chooses_another_variant():
    found = plan(SWITCHED, value__d="128")
    assert found.steps[0].template == ("128", "true")
    assert found.requires == (("equal", "causal", "1"),)
    found = plan(SWITCHED, value__d="128", branch__7="else")
    assert found.steps[0].template == ("128", "false")


def test_naming_a_kernel_chooses_the_branch_that_launches_it():
    text = (
        SCALE
        + """\
__global__ void other(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }
void run(const float* x, float* y, int n) {
  if (n <= 1024) other<<<1, 1024>>>(x, y, n);
  else scale<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""
    )
    assert [step.kernel for step in plan(text).steps] == ["other"]
    assert plan(text).requires == (("most", "n", "1024"),)
    found = plan(text, "scale")
    assert [step.kernel for step in found.steps] == ["scale"]
    assert found.requires == (("least", "n", "1025"),)


def test_a_pytorch_extension_is_read():
    text = """\
#include <torch/extension.h>
template <typename scalar_t>
__global__ void gate(const scalar_t* in, scalar_t* out, int d) {
  for (int i = threadIdx.x; i < d; i += blockDim.x)
    out[blockIdx.x * d + i] = in[blockIdx.x * 2 * d + i] * in[blockIdx.x * 2 * d + d + i];
}
torch::Tensor run(torch::Tensor in) {
  TORCH_CHECK(in.dim() == 2 && in.is_contiguous(), "shape");
  const int rows = in.size(0);
  const int d = in.size(1) / 2;
  auto out = torch::empty({rows, d}, in.options());
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "gate", ([&] {
    gate<scalar_t><<<rows, std::min(d, 1024)>>>(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), d);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
    found = plan(text)
    assert found.questions == ()
    assert [(a.name, a.dtype, a.extent, a.role) for a in found.arrays] == [
        ("in", "float32", "2 * rows * d", Role.INPUT), ("out", "float32", "rows * d", Role.OUTPUT)
    ]  # fmt: skip
    assert found.steps[0].block == ("min(d, 1024)", "1", "1")
    assert plan(text, type__scalar_t="at::Half").arrays[0].dtype == "float16"


def test_the_sizes_of_a_main_are_axes_with_an_example():
    text = (
        SCALE
        + """\
int main(int argc, char** argv) {
  int n = 1 << 20, threads = 128;
  if (argc > 1) n = atoi(argv[1]);
  float *dx, *dy;
  CHECK(cudaMalloc((void**)&dx, n * sizeof(float)));
  CHECK(cudaMalloc(&dy, n * sizeof(*dy)));
  cudaMemcpy(dx, hx, n * sizeof(float), cudaMemcpyHostToDevice);
  for (int i = 0; i < 10; ++i) scale<<<(n + threads - 1) / threads, threads>>>(dx, dy, n);
  cudaMemcpy(hy, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
    )
    found = plan(text)
    assert (found.axes, found.given, len(found.steps)) == (("n",), (("n", 1048576),), 1)
    assert [(a.extent, a.role) for a in found.arrays] == [("n", Role.INPUT), ("n", Role.OUTPUT)]


def test_constant_memory_that_the_host_fills_is_an_input():
    text = """\
__constant__ float taps[3 * 3];
__global__ void k(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = taps[threadIdx.x % 9]; }
void run(const float* h, float* y, int n) { cudaMemcpyToSymbol(taps, h, sizeof(taps)); k<<<1, 64>>>(y, n); }
"""
    found = plan(text)
    assert found.symbols == ("taps",)
    assert (array(found, "taps").extent, array(found, "taps").role) == ("9", Role.INPUT)


def test_a_loop_with_a_known_number_of_rounds_gives_a_step_a_round():
    text = """\
__global__ void pass(float* y, int stride) { y[threadIdx.x] += y[threadIdx.x + stride]; }
void run(float* y) { for (int s = 4; s > 0; s >>= 1) pass<<<1, 8>>>(y, s); }
"""
    assert [step.arguments[1] for step in plan(text).steps] == [SizeArgument("4"), SizeArgument("2"), SizeArgument("1")]


def test_a_launch_by_call_is_read_as_one():
    text = (
        SCALE
        + """\
void run(const float* x, float* y, int n) {
  void* args[] = {(void*)&x, (void*)&y, &n};
  cudaLaunchKernel((void*)scale, dim3((n + 63) / 64), dim3(64), args, 0, 0);
}
"""
    )
    (step,) = plan(text).steps
    assert (step.kernel, step.grid[0], step.arguments[2]) == ("scale", "ceildiv(n, 64)", SizeArgument("n"))


def test_a_plan_of_the_first_kernel_names_its_host_function():
    assert read_launches(parse_cuda(host("scale<<<n, 1>>>(x, y, n);"), "k.cu")).function == "run"


@pytest.mark.parametrize(
    "body",
    [
        "float* both[2] = {x, y}; both[threadIdx.x & 1][threadIdx.x] = 1;",
        "P p = {x, 3}; p.x[threadIdx.x] = 1;",
        "P p; p.x = x; p.x[threadIdx.x] = 1;",
        'asm volatile("st.global.f32 [%0], %1;" :: "l"(x), "f"(1.0f));',
        "somewhere_else(x);",
        "for (int i = 0; i < n; ++i) { x[0] = 1; x += stride; }",
    ],
)
def test_a_pointer_that_leaves_what_is_followed_has_no_extent_from_indices(body):
    text = "struct P { float* x; int n; };\n" + kernel(body, "float* x, float* y, int n, int stride", "1, 32")
    found = plan(text)
    assert array(found, "x").extent == ""
    assert array(found, "x").role in (Role.INOUT, Role.OUTPUT)
    assert "extent.x" in {question.answer for question in found.questions}
