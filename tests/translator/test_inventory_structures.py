"""Each form that the table's structures and atomics stand for, on code that shows it and on code that only looks so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.cuda_source import parse_cuda
from translator.inventory import take_inventory
from translator.primitives import FORM_MATCHES, load_primitives


def found(text: str, id: str) -> list[str]:
    return [o.text for o in take_inventory(parse_cuda(text, "kernel.cu")).occurrences if o.primitive.id == id]


def kernel(statements: str, parameters: str = "const float* x, float* y, int n") -> str:
    return f"__global__ void kernel({parameters}) {{ {statements} }}\n"


SHOWN = [
    ("bounds_check", kernel("int i = threadIdx.x; if (i >= n) return; y[i] = 0;"), ["if (i >= n) return;"]),
    ("bounds_check", kernel("if (i < n) return; y[i] = 0;"), []),
    ("bounds_check", kernel("if (i >= n) { y[0] = 1; return; } y[1] = 2;"), ["if (i >= n) { y[0] = 1; return;"]),
    ("bounds_check", kernel("if (i >= n) return; __syncthreads();"), []),
    ("early_return", kernel("if (i >= n) return; __syncthreads();"), ["return;"]),
    ("scalar_parameter", kernel("", "const float* x, const int n, float scale"), ["const int n", "float scale"]),
    ("scalar_parameter", "template <typename T> " + kernel("", "T* x, T scale"), ["T scale"]),
    ("struct_parameter", kernel("", "Params p, const Params q, float* x, int n"), ["Params p", "const Params q"]),
    ("struct_parameter", kernel("", "ptrdiff_t stride, cudaTextureObject_t image"), []),
    ("function_pointer", "__device__ float f(float (*op)(float), float (*rows)[4]) { return 0; }\n",
     ["float (*op)(float)"]),
    ("pointer_parameter", "__device__ float f(const float* p, float (*rows)[4], int n) { return 0; }\n",
     ["const float* p", "float (*rows)[4]"]),
    ("template_parameter", "template <int N> " + kernel("") + "template <int N> __device__ void f() { }\n", ["kernel"]),
    ("in_place_array", kernel("y[i] += x[i];"), ["float* y"]),
    ("in_place_array", kernel("y[i] = y[i + 1] * 2;"), ["float* y"]),
    ("in_place_array", kernel("y[i] = x[i]; y[i + 1] = x[i];"), []),
    ("launch_sequence", "void h() { first<<<1, 32>>>(x); second<float><<<1, 32>>>(y); }\n",
     ["second<float><<<1, 32>>>(y)"]),
    ("launch_sequence", "void h() { if (n) k<32><<<1, 32>>>(x); else k<64><<<1, 32>>>(x); }\n", []),
    ("launch_sequence", "void g() { first<<<1, 32>>>(x); }\nvoid h() { second<<<1, 32>>>(x); }\n", []),
    ("ragged_block", kernel("__any_sync(~0u, n);") + "constexpr int kT = 100;\nvoid h() { kernel<<<1, kT>>>(x); }\n",
     ["kernel<<<1, kT>>>(x)"]),
    ("ragged_block", kernel("__any_sync(~0u, n);") + "void h() { kernel<<<1, 96>>>(x); kernel<<<1, t>>>(x); }\n", []),
    ("ragged_block", kernel("y[0] = 1;") + "void h() { kernel<<<1, 1>>>(x); }\n", []),
    ("program_constant", "constexpr int kA = 1;\nstruct S { static constexpr int kB = 2; };\n",
     ["constexpr int kA = 1;", "static constexpr int kB = 2;"]),
    ("program_constant", kernel("constexpr int kA = 1;") + "const int kB = 2;\n", []),
    ("local_array", kernel("float acc[4] = {}; float rows[2][3];"), ["acc[4]", "rows[2][3]"]),
    ("local_array", kernel("__shared__ float s[32]; s[n] = x[3];") + "float table[4];\n", []),
    ("divergent_shuffle", kernel("if (lane < 16) { v = __shfl_sync(~0u, v, 0); }"), ["__shfl_sync(~0u, v, 0)"]),
    ("divergent_shuffle", kernel("if (threadIdx.x < 8) v = __shfl_down_sync(~0u, v, 4);"),
     ["__shfl_down_sync(~0u, v, 4)"]),
    ("divergent_shuffle", kernel("if (warp == 0) v = __shfl_down_sync(~0u, v, 4);"), []),
    ("divergent_shuffle", kernel("if (threadIdx.x < 32) v = __shfl_down_sync(~0u, v, 4);"), []),
    ("spin_lock", kernel("while (atomicCAS(&lock, 0, 1) != 0) { }"), ["(atomicCAS(&lock, 0, 1) != 0)"]),
    ("spin_lock", kernel("do { } while (atomicExch(lock, 1u));"), ["(atomicExch(lock, 1u))"]),
    ("spin_lock", kernel("do { old = got; got = atomicCAS(p, old, old + 1); } while (got != old);"), []),
    ("last_block", kernel("__threadfence(); last = atomicAdd(&count, 1) == gridDim.x - 1;"), ["atomicAdd(&count, 1)"]),
    ("last_block", kernel("atomicAdd(&count, 1); if (blockIdx.x == gridDim.x - 1) y[0] = 1;"), []),
    ("recursion", "__device__ int f(int n) { return n ? f(n - 1) : 0; }\n", ["f(n - 1)"]),
    ("recursion", "__device__ int g(int n);\n__device__ int f(int n) { return g(n); }\n"
     "__device__ int g(int n) { return f(n); }\n__device__ int h(int n) { return f(n); }\n", ["g(n)", "f(n)"]),
    ("recursion", "__device__ int f(int n) { return n; }\n__device__ int f(float n) { return f(int(n)); }\n", []),
    ("recursion", "__device__ float __ldcs(const bf* p) { return __ldcs((const short*)p); }\n", []),
    ("recursion", "template <int N> __device__ int f() { return f<N - 1>(); }\n", []),
    ("non_ascii", "// größer\n" + kernel("y[0] = 1; // größer"), ["öß"]),
    ("index_in_function", "__device__ int f() { return threadIdx.x + blockIdx.x; }\n" + kernel("f();"), ["threadIdx"]),
    ("member_function", "struct S { __device__ int get() const { return 1; } };\n__device__ int get() { return 1; }\n",
     ["get"]),
    ("reserved_name", kernel("int grid_size = n; y[grid_size] = 1;"), ["grid_size", "grid_size"]),
    ("linear_index", kernel("int t = threadIdx.y * blockDim.x + threadIdx.x;"),
     ["threadIdx.y * blockDim.x + threadIdx.x"]),
    ("nibbles", kernel("y[0] = (q >> 4) & 0xF;"), ["(q >> 4) & 0xF"]),
    ("nibbles", kernel("y[0] = threadIdx.x & 15;"), []),
    ("cg_rank", kernel("int r = block.thread_rank();"), ["thread_rank"]),
    ("fragment_elements", kernel("for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 2;"), ["num_elements"]),
    ("atomic_shared", kernel("__shared__ unsigned bins[256]; atomicAdd(&bins[n], 1u);"), ["atomicAdd("]),
    ("atomic_shared_float", kernel("__shared__ float sum; atomicAdd(&sum, 1.0f);"), ["atomicAdd("]),
    ("atomic_half", kernel("atomicAdd(z + n, h);", "__half2* z, int n"), ["atomicAdd("]),
    ("atomic_double", kernel("atomicAdd(z + n, 1.0);", "double* z, int n"), ["atomicAdd("]),
    ("atomic_wide", kernel("atomicAdd(z, 1ull);", "unsigned long long* z"), ["atomicAdd("]),
    ("atomic_add", kernel("__shared__ float s; atomicAdd(&s, 1.0f); atomicAdd(y, __expf(1));"), ["atomicAdd"]),
]  # fmt: skip


@pytest.mark.parametrize(("id", "text", "expected"), SHOWN)
def test_a_form_is_found_where_it_stands(id, text, expected):
    assert found(text, id) == expected


def test_every_form_has_a_row_and_a_test():
    rows = {p.words[0]: p.id for p in load_primitives() if p.match in ("structure", "atomic")}
    assert set(rows) == {*FORM_MATCHES["structure"], *FORM_MATCHES["atomic"]}
    elsewhere = {"pointer_array", "reference_parameter"}  # test_inventory_occurrences.py
    assert set(rows.values()) - elsewhere <= {id for id, _, expected in SHOWN if expected}


def test_an_atomic_on_shared_memory_is_not_counted_twice_and_hides_nothing_in_its_arguments():
    text = kernel("__shared__ int s[4]; atomicAdd(&s[0], __popc(n));")
    taken = take_inventory(parse_cuda(text, "kernel.cu"))
    ids = [o.primitive.id for o in taken.occurrences]
    assert ids == ["kernel_function", "scalar_parameter", "shared", "atomic_shared", "popcount"]


def test_a_long_chain_of_calls_is_looked_through_in_time():
    chain = "".join(f"__device__ int f{n}(int n) {{ return f{n + 1}(n); }}\n" for n in range(3000))
    assert found(chain + "__device__ int f3000(int n) { return f2999(n); }\n", "recursion") == ["f3000(n)", "f2999(n)"]


WORDS = [
    "__global__", "__device__", "void", "f", "(", "float", "*", "x", ",", "int", "n", ")", "{", "}",
    "[", "]", ";", "threadIdx", ".", "x", "__shared__", "if", "return", "for", "while", "atomicAdd", "&", "s",
    "0", "1", "__shfl_sync", "<<<", ">>>", "template", "<", "N", ">", "constexpr", "static", "struct", "=", "+",
    "min", "blockIdx", "*", "-",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=120).map(" ".join))
def test_any_text_is_inventoried_without_a_crash(text):
    for occurrence in take_inventory(parse_cuda(text, "kernel.cu")).occurrences:
        assert text[occurrence.start : occurrence.end] == occurrence.text
