"""The inventory: which primitives stand where, and what share of them Metal covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from translator.cuda_source import parse_cuda
from translator.inventory import Inventory, take_inventory

PROBLEMS = Path(__file__).parents[2] / "search" / "problems"


def inventory(text: str) -> Inventory:
    return take_inventory(parse_cuda(text, "some/folder/kernel.cu"))


def in_kernel(statements: str, before: str = "") -> Inventory:
    return inventory(f"{before}__global__ void kernel(float* x, int n) {{ {statements} }}\n")


def found(taken: Inventory) -> list[tuple[str, str]]:
    """What the frame of `in_kernel` doesn't show by itself."""
    frame = ("kernel_function", "scalar_parameter")
    return [(o.primitive.id, o.text) for o in taken.occurrences if o.primitive.id not in frame]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("int i = threadIdx.y;", [("thread_index", "threadIdx.y")]),
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x;",
            [("global_index", "blockIdx.x * blockDim.x + threadIdx.x")],
        ),
        ("int i = threadIdx.x + (blockDim.x*blockIdx.x);", [("global_index", "threadIdx.x + (blockDim.x*blockIdx.x)")]),
        ("int i = blockIdx.x * blockDim.y;", [("block_index", "blockIdx.x"), ("block_dim", "blockDim.y")]),
        ("int l = threadIdx.x & 31;", [("lane_index", "threadIdx.x & 31")]),
        ("int w = threadIdx.x / warpSize;", [("warp_index", "threadIdx.x / warpSize"), ("warp_size", "warpSize")]),
        ("__syncthreads();", [("syncthreads", "__syncthreads")]),
        ("v = __shfl_xor_sync(m, v, 16);", [("shfl_xor", "__shfl_xor_sync")]),
        ("v = __shfl_down_sync(m, v, 4);", [("shfl_down", "__shfl_down_sync")]),
        ("v = __shfl_down_sync(m, v, 4, 8);", [("shfl_down_width", "__shfl_down_sync")]),
        ("atomicAdd(&x[0], 1.0f);", [("atomic_add", "atomicAdd")]),
        ("v = std::max(a, b);", [("minmax", "std::max")]),
        ("v = std::numeric_limits<float>::lowest();", [("standard_library", "std::numeric_limits<float>::lowest")]),
        ("float4 v = reinterpret_cast<const float4*>(x)[i];",
         [("vector_type", "float4"), ("vector_access", "reinterpret_cast<const float4*>")]),
        ("v = *(float4*)(x + i);", [("vector_access", "(float4*)")]),
        ("v = (float)i;", []),
        ("__shared__ float4 s[32];", [("shared", "__shared__ float4 s[32];"), ("vector_type", "float4")]),
        ("extern __shared__ float s[];", [("dynamic_shared", "extern __shared__ float s[];")]),
        ("#pragma unroll 4\n for (;;) ;", [("unroll", "#pragma unroll 4")]),
        ('asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(a), "l"(b));',
         [("async_copy_ptx", 'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(a), "l"(b))')]),
        ('asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));',
         [("exp2_ptx", 'asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x))')]),
        ('asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));',
         [("packed_ptx", 'asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b))')]),
        ('asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(a), "f"(b));',
         [("fp8_ptx", 'asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(a), "f"(b))')]),
        ('asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(a));',
         [("inline_ptx", 'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(a))')]),
        ('asm("ld.global.nc.v4.f32 {%0}, [%1];" : "=f"(d) : "l"(p));',
         [("memory_ptx", 'asm("ld.global.nc.v4.f32 {%0}, [%1];" : "=f"(d) : "l"(p))')]),
        ('asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a));',
         [("bits_ptx", 'asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a))')]),
        ('asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(a));',
         [("ldmatrix", 'asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(a))')]),
        ('asm("vote.all.pred p, q;");', [("inline_ptx", 'asm("vote.all.pred p, q;")')]),
        ("wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;", [("wmma_fragment", "fragment")]),
        ("wmma::mma_sync(d, a, b, c);", [("wmma_multiply", "wmma::mma_sync")]),
        ("typedef cub::BlockReduce<float, 128> Reduce;", [("cub_block_reduce", "BlockReduce")]),
        ("s = cg::reduce(tile, v, cg::plus<float>());", [("cg_reduce", "cg::reduce")]),
        ("cg::this_grid().sync();", [("grid_sync", "cg::this_grid")]),
        ("double d = 0;", [("double", "double")]),
        ("__half2 h = __hfma2(a, b, c);", [("half2", "__half2"), ("half2_arithmetic", "__hfma2")]),
        ("int half = n / 2;", []),
        ("object.exp(3);", []),
        ('printf("%d", n);', [("print", "printf")]),
        ("child<<<1, 32>>>(x);", [("device_launch", "child<<<1, 32>>>(x)")]),
        ("if (n) return; __syncthreads();", [("early_return", "return;"), ("syncthreads", "__syncthreads")]),
        ("__syncthreads(); if (n) return;", [("syncthreads", "__syncthreads")]),
    ],
)  # fmt: skip
def test_a_primitive_is_found_where_it_stands(statement, expected):
    assert found(in_kernel(statement)) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("__device__ float f(float& x) { return x; }",
         [("device_function", "__device__"), ("reference_parameter", "float& x")]),
        ("__constant__ float c[2] = {1, 2};", [("constant_table", "__constant__ float c[2] = {1, 2};")]),
        ("__constant__ float c[2];", [("constant", "__constant__ float c[2];")]),
        ("__device__ int counter;", [("device_global", "__device__ int counter;")]),
        ("__global__ void k(float** rows) { }", [("pointer_array", "float** rows")]),
        ("__global__ void __launch_bounds__(64) k() { }", [("launch_bounds", "__launch_bounds__(64)")]),
        ("void host() { k<<<g, b, bytes, s>>>(x); }",
         [("launch", "k<<<g, b, bytes, s>>>(x)"), ("launch_shared", "k<<<g, b, bytes, s>>>(x)"),
          ("launch_stream", "k<<<g, b, bytes, s>>>(x)")]),
        ("void host() { k<<<g, b>>>(x); cudaMalloc(&x, 4); }",
         [("launch", "k<<<g, b>>>(x)"), ("host_memory", "cudaMalloc")]),
    ],
)  # fmt: skip
def test_what_stands_outside_of_kernels_is_found(statement, expected):
    assert found(inventory(statement + "\n")) == expected


def test_comments_and_strings_are_not_code():
    text = 'const char* s = "__syncthreads() float4";  // atomicAdd(x, 1)\n  /* __shfl_sync(m, v, 0) */'
    assert found(in_kernel(text)) == []


def test_host_code_counts_only_as_host_code():
    assert found(inventory('int main() { double t = exp(1.0); printf("%f", t); }\n')) == []


def test_an_occurrence_knows_its_line_column_and_text():
    text = "// ä\n__global__ void k(float* x) {\n  x[0] = __expf(x[1]);\n}\n"
    (occurrence,) = [o for o in inventory(text).occurrences if o.primitive.id == "fast_math"]
    assert (occurrence.line, occurrence.column, occurrence.text) == (3, 10, "__expf")
    assert text[occurrence.start : occurrence.end] == "__expf"


def test_coverage_is_the_share_of_direct_and_idiom_by_occurrence():
    # __global__, int n, __syncthreads, expf are direct; float4* cast is a rewrite; __ldg is dropped, doesn't count.
    taken = in_kernel("__syncthreads(); y = expf(__ldg(x)); z = ((float4*)x)[0];")
    assert sorted(o.primitive.kind for o in taken.occurrences) == [*["direct"] * 4, "drop", "rewrite"]
    assert taken.coverage == 4 / 5


def test_host_calls_do_not_count_towards_coverage():
    # The kernel's word is direct, the launch a rewrite; the timing calls, rewrites too, are the host's.
    taken = inventory("__global__ void k() { }\nvoid h() { cudaEventRecord(a); k<<<1, 32>>>(); cudaEventRecord(b); }\n")
    assert taken.coverage == 1 / 2


def test_a_source_without_primitives_is_covered():
    assert inventory("int x;\n").coverage == 1.0


REFERENCES = sorted(PROBLEMS.glob("*/cuda/*.cu"))


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.name)
def test_every_cuda_word_of_the_built_in_references_has_its_row(path):
    taken = take_inventory(parse_cuda(path.read_text(), str(path)))
    assert taken.source.diagnostics == ()
    names = taken.source.nodes_of("identifier", "type_identifier")
    spoken = {taken.source.text_of(name) for name in names}
    cuda = {
        word for word in spoken if word.startswith(("__", "atomic", "threadIdx", "blockIdx", "blockDim", "gridDim"))
    }
    assert {word for word in cuda if not any(word in o.text for o in taken.occurrences)} == set()


EXPECTED_PATTERNS = {
    "flash.cu": {"shuffle", "warp_reduce", "shared_tile", "padded_tile", "exp2", "vector_load", "unroll", "async_copy",
                 "double_buffer", "online_softmax"},
    "naive.cu": set(),
    "block_scan.cu": {"shuffle", "scan_ladder", "shared_tile", "fast_math", "unroll"},
    "channel_per_thread.cu": {"fast_math", "unroll"},
    "block_tree.cu": {"block_reduce", "vector_load", "grid_stride"},
    "online.cu": {"shuffle", "warp_reduce", "block_reduce", "fast_math", "unroll", "online_softmax"},
    "warp_per_row.cu": {"shuffle", "warp_reduce", "exp2", "fast_math", "unroll"},
}  # fmt: skip


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.name)
def test_the_built_in_references_show_the_patterns_that_they_are_written_for(path):
    hints = take_inventory(parse_cuda(path.read_text(), str(path))).hints()
    assert set(hints) == EXPECTED_PATTERNS[path.name]
    for hint in hints.values():
        file, _, rest = hint.partition(":")
        line, _, text = rest.partition(" ")
        assert file == path.name
        assert path.read_text().splitlines()[int(line) - 1].strip().find(text.split("(")[0].split("…")[0]) >= 0
