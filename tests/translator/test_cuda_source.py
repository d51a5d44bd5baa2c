"""Parsing CUDA: what is found, that spans point at it exactly, and that nothing makes it crash."""

from __future__ import annotations

import pytest

from translator.cuda_source import parse_cuda

FLASH = """\
#include <cuda_runtime.h>
__constant__ float table[2] = {1.0f, 2.0f};
__constant__ int shape[4];
__device__ float total;

template <int D, typename T = float>
static __global__ void __launch_bounds__(128, 2) attend(const T* __restrict__ q, float (&o)[4],
                                                        int n = 3) {
  extern __shared__ float smem[];
  __shared__ alignas(16) float tile[32][D + 1], other[8];
  o[threadIdx.x] = smem[0];
}

__device__ __forceinline__ float twice(float x) { return 2.0f * x; }

int main() {
  attend<64, float><<<dim3(4, 2), 128, 4096, stream>>>(q, o, 7);
  attend<64><<<blocks, threads>>>(q, o, 7);
}
"""


def source(text: str):
    return parse_cuda(text, "attend.cu")


def test_a_kernel_is_read_with_its_signature():
    (kernel,) = source(FLASH).kernels
    assert kernel.name == "attend"
    assert kernel.template == ("int D", "typename T = float")
    assert kernel.launch_bounds == ("128", "2")
    assert [(p.name, p.type) for p in kernel.parameters] == [
        ("q", "const T* __restrict__"),
        ("o", "float (&)[4]"),
        ("n", "int"),
    ]


def test_spans_point_at_exactly_the_text():
    parsed = source(FLASH)
    kernel = parsed.kernels[0]
    body = FLASH[kernel.body.start : kernel.body.end]
    assert body.startswith("{\n  extern __shared__") and body.endswith("smem[0];\n}")
    assert (kernel.span.line, kernel.span.column) == (7, 1)
    q = kernel.parameters[0].span
    assert FLASH[q.start : q.end] == "const T* __restrict__ q"
    launch = parsed.launches[1].span
    assert FLASH[launch.start : launch.end] == "attend<64><<<blocks, threads>>>(q, o, 7)"
    assert (launch.line, launch.column) == (18, 3)


def test_device_functions_are_apart_from_kernels_and_host_functions():
    parsed = source(FLASH)
    assert [function.name for function in parsed.device_functions] == ["twice"]
    (host,) = parsed.host_functions
    assert FLASH[host.start : host.end].startswith("int main()")


def test_memory_declarations_are_read_with_their_extents():
    found = {d.name: (d.space, d.type, d.extents, d.extern, d.filled) for d in source(FLASH).declarations}
    assert found == {
        "table": ("constant", "float", ("2",), False, True),
        "shape": ("constant", "int", ("4",), False, False),
        "total": ("device", "float", (), False, False),
        "smem": ("shared", "float", ("",), True, False),
        "tile": ("shared", "float", ("32", "D + 1"), False, False),
        "other": ("shared", "float", ("8",), False, False),
    }


def test_launches_are_read_with_what_is_left_out():
    first, second = source(FLASH).launches
    assert (first.kernel, first.grid, first.block) == ("attend<64, float>", "dim3(4, 2)", "128")
    assert (first.shared, first.stream, first.arguments) == ("4096", "stream", ("q", "o", "7"))
    assert (second.grid, second.block, second.shared, second.stream) == ("blocks", "threads", "", "")


def test_a_sound_source_has_no_diagnostics():
    assert source(FLASH).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("__global__ void k(int n) {\n  int a = n\n}\n", "';' is missing here", 2, 12),
        ("__global__ void k(int n) {\n  n = = 2;\n}\n", "not understood: '='", 2, 7),
        ("__global__ void k(int n) {\n  n = 2;\n", "'}' is missing here", 2, 9),
        ("int a;\n__global__ void k(\n", "not understood: '__global__ void k('", 2, 1),
    ],
)
def test_a_mistake_is_located(text, message, line, column):
    (diagnostic,) = source(text).diagnostics
    assert (diagnostic.message, diagnostic.span.line, diagnostic.span.column) == (message, line, column)


def test_a_mistake_leaves_the_other_kernels_readable():
    parsed = source("__global__ void a(int n) { n = = 2; }\n" + FLASH)
    assert [kernel.name for kernel in parsed.kernels] == ["a", "attend"]
    assert len(parsed.diagnostics) == 1


@pytest.mark.parametrize(
    "text",
    [
        "extern __shared__ __align__(16) float s[];\n",
        "struct __align__(sizeof(float) * (2 + 2)) V { float x[4]; };\n",
        "__global__ void __cluster_dims__(2, 1, 1) k(int a) { }\n",
        "C10_LAUNCH_BOUNDS_1(1024)\n__global__ void k(int a) { }\n",
        "template <int N> KERNEL_API __global__ void k(int a) { }\n",
        "#define DEVICE_INLINE __device__ __forceinline__\nDEVICE_INLINE float f(float x) { return x; }\n",
        "void CUDART_CB done(void* data) { }\n",
    ],
)
def test_attribute_macros_do_not_hinder(text):
    assert source(text).diagnostics == ()


def test_a_macro_that_stands_for_device_makes_a_device_function():
    text = "#define DEVICE_INLINE __device__ __forceinline__\nDEVICE_INLINE float f(float x) { return x; }\n"
    (function,) = source(text).device_functions
    assert function.name == "f"
    assert text[function.span.start : function.span.end].startswith("DEVICE_INLINE float f")


def test_spans_count_characters_whatever_the_text_is_encoded_in():
    text = "// größer · 日本語\n__global__ void k(float* α) { __shared__ float s[4]; }\n"
    parsed = source(text)
    assert parsed.diagnostics == ()
    (kernel,) = parsed.kernels
    assert [p.name for p in kernel.parameters] == ["α"]
    (declaration,) = parsed.declarations
    assert text[declaration.span.start : declaration.span.end] == "__shared__ float s[4];"


def test_windows_line_ends_are_kept():
    text = "#pragma once\r\n__global__ void k(int n)\r\n{\r\n}\r\n"
    (kernel,) = source(text).kernels
    assert text[kernel.span.start : kernel.span.end] == "__global__ void k(int n)\r\n{\r\n}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\0\0",
        bytes(range(256)).decode("latin-1") * 40,
        b"__global__ void k() { \xff\xfe }".decode("utf-8", "surrogateescape"),
        FLASH[: len(FLASH) // 2],
        "(" * 50_000,
        "__global__ void k(){" + "if (x) {" * 20_000,
        "__global__ void k(){ f" + "(a)" * 20_000 + "; }",
        "__align__(" * 20_000,
        "<<<" * 10_000,
        "/*" + "x" * 100_000,
    ],
    ids=["empty", "nul", "binary", "not-utf-8", "half", "parens", "deep", "calls", "macros", "launches", "comment"],
)
def test_nothing_makes_it_crash(text):
    parsed = source(text)
    assert len(parsed.diagnostics) <= 100
    assert all(d.message.isprintable() for d in parsed.diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k() { typename Traits::Load(memory).Load(x, y, n); }\n",
        "__global__ void k(int a) __launch_bounds__(128);\n",
        "__global__ void k(const __grid_constant__ P p) { }\n",
        '__global__ void k() {\n#pragma unroll N\n  for (;;) { }\n  _Pragma("unroll") for (;;) { }\n}\n',
        "void f() { auto g = [=] __device__ (int i) { return i; }; }\n",
        "__global__ void k(float* RESTRICT x, const float *RESTRICT y) { }\n",
        "NAMESPACE_BEGIN\nnamespace a::b { __global__ void k(int a) { } }\nNAMESPACE_END\n",
        "CUTLASS_DEVICE void f(int a) { }\nstruct S { CUTE_DEVICE int h(int a) { return a; } };\n",
        "void f() { k<A<1, 2>, (3 > 2), B::v><<<dim3((n + 1) / 2, g<2, 3>(4)), {32, 4}, 0, s>>>(h<1>(x), y); }\n",
        "void f() { BOOL_SWITCH(a, A, [&] { BOOL_SWITCH(b, B, [&] { k<A, B><<<1, 2>>>(x); }); }); }\n",
        'void f() { int a = 1; AT_DISPATCH_ALL_TYPES(x, "f", [&] { k<scalar_t><<<1, 2>>>(x); }) }\n',
        'const char* s = R"x(__global__ void k( { " )x";\n__global__ void k(int a) { }\n',
        "#define F(x) \\\n  do { \\\n    x; \\\n  } while (0)\n__global__ void k(int a) { F(a); }\n",
        "__global__ void k() { if (x) [[unlikely]] { y(); } }\n",
    ],
)
def test_what_real_sources_write_is_read_without_a_diagnostic(text):
    assert source(text).diagnostics == ()


def test_a_macro_before_a_device_function_makes_it_one():
    text = "CUTLASS_DEVICE int f(int a) { return a; }\n"
    (function,) = source(text).device_functions
    assert text[function.span.start : function.span.end].startswith("CUTLASS_DEVICE int f")


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("__global__ void k(int n) {\n  n = = 2;\n}\n", "C001", 2, 7),
        ("__global__ void k(int n) {\n  int a = n\n}\n", "C002", 2, 12),
        ("__global__ void k(\n#if A\n  int a) {\n#else\n  int b, int c) {\n#endif\n  f();\n}\n", "C003", 4, 1),
        ("__global__ void k() {\n  FOR_EACH(i) x[i] = 0;\n}\n", "C004", 2, 3),
    ],
)
def test_a_diagnostic_has_a_number_for_its_reason(text, code, line, column):
    (diagnostic,) = source(text).diagnostics
    assert (diagnostic.code, diagnostic.span.line, diagnostic.span.column) == (code, line, column)


def test_nodes_of_several_kinds_come_in_the_order_of_the_text_outer_ones_first():
    parsed = source("void f() { while (a) do { for (;;) g(); } while (b); for (;;) h(); }\n")
    loops = parsed.nodes_of("for_statement", "do_statement", "while_statement", "goto_statement")
    assert [node.type for node in loops] == ["while_statement", "do_statement", "for_statement", "for_statement"]
    sums = source("int x = a + b + c;\n").nodes_of("identifier", "binary_expression")
    assert [node.text for node in sums] == [b"x", b"a + b + c", b"a + b", b"a", b"b", b"c"]
    assert parsed.nodes_of("goto_statement") == ()


def test_one_branch_of_a_conditional_that_splits_a_kernel_is_read_and_no_line_moves():
    text = (
        "#if 0\n__global__ void k(int a) {\n#else\n__global__ void k(int a, int b) {\n#endif\n"
        "  a = 1;\n}\nint after = = 1;\n"
    )
    parsed = source(text)
    assert [p.name for p in parsed.kernels[0].parameters] == ["a", "b"]
    assert [(d.code, d.span.line) for d in parsed.diagnostics] == [("C003", 1), ("C001", 8)]


def test_template_arguments_that_end_before_a_launch_configuration_are_read() -> None:
    source = parse_cuda(
        "void run() { k<half, f<half>><<<grid, block>>>(x); m<P<int, P<int, int>>, (8 >> 1)><<<n >> 6, 1 << 6>>>(y); }",
        "k.cu",
    )
    assert [(launch.kernel, launch.grid, launch.block) for launch in source.launches] == [
        ("k<half, f<half>>", "grid", "block"),
        ("m<P<int, P<int, int>>, (8 >> 1)>", "n >> 6", "1 << 6"),
    ]
    assert source.diagnostics == ()
