"""What kernels say of the elements of arrays: bounds, numbers they are compared with, what is surely written."""

from __future__ import annotations

from tests.translator.launch_texts import array, kernel, plan
from translator.launch_plan import Role


def test_what_elements_are_compared_with_is_no_bound_on_them():
    text = kernel("int m = mode[threadIdx.x]; if (lens[threadIdx.x] < 0) return; y[threadIdx.x] = m == 3 ? 1 : 0;",
                  "const int* mode, const int* lens, float* y", "1, 32")  # fmt: skip
    found = plan(text)
    assert [(array(found, name).below, array(found, name).met) for name in ("mode", "lens")] == [
        ("", (3, 4)), ("", (-1, 0)),
    ]  # fmt: skip


def test_elements_that_index_shared_memory_without_a_bound_are_asked_about():
    body = """__shared__ int h[64]; extern __shared__ int g[];
if (known[threadIdx.x] < 64) h[known[threadIdx.x]] = 1;
atomicAdd(&g[bins[threadIdx.x]], 1); g[masked[threadIdx.x] & 63] = small[threadIdx.x] + h[small[threadIdx.x]];
y[threadIdx.x] = g[threadIdx.x];"""
    parameters = "const int* known, const int* bins, const int* masked, const unsigned char* small, int* y"
    found = plan(kernel(body, parameters, "1, 32, 256"))
    assert [question.answer for question in found.questions] == ["below.bins"]


def test_a_case_or_a_round_that_may_be_left_out_has_not_surely_written():
    for body in (
        "switch (mode[i]) { case 0: y[i] = 1; break; default: y[i] += 2; }",
        "do { if (mode[i] == 1) break; y[i] = 2; } while (0); y[i] += 1;",
        "for (int j = 0; j < 2; ++j) { if (mode[i] == j) continue; y[i] = 2; } y[i] += 1;",
    ):
        text = kernel(f"int i = threadIdx.x; {body}", "const int* mode, float* y", "1, 32")
        assert array(plan(text), "y").role == Role.INOUT, body


def test_a_shape_may_go_on_in_the_next_comment_and_divide_by_a_size():
    text = """\
__global__ void fill(float* keys,  // [blocks, heads, dim/x,
                                   //  block_size, x]
                     const long* slots, int heads, int dim, int block_size, const int x) {
  keys[slots[blockIdx.x] * heads * dim + threadIdx.x] = 1.f;
}
void run(float* keys, const long* slots, int blocks, int heads, int dim, int block_size, int tokens) {
  fill<<<tokens, 64>>>(keys, slots, heads, dim, block_size, 16 / sizeof(float));
}
"""
    found = array(plan(text), "keys")
    assert found.shape == ("blocks", "heads", "dim // 4", "block_size", "4")
