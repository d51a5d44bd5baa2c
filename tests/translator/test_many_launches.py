"""Files of many kernels: the work to plan and write them grows as their number does, not as its square."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from translator.cuda_source import CudaSource, parse_cuda
from translator.launches import read_launches
from translator.metal_writer import write_metal

HEAD = """#include <cuda_runtime.h>
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define CHECK(x) do { if ((x) != cudaSuccess) abort(); } while (0)
"""
KERNEL = """
__device__ float scaled_N(const float* x, int at, float by) { return x[at] * by; }

__global__ void kernel_N(const float* __restrict__ x, float* __restrict__ y, int cols, float by) {
    __shared__ float partial[32];
    float total = 0.f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) total += scaled_N(x, blockIdx.x * cols + i, by);
    for (int offset = 16; offset > 0; offset >>= 1) total += __shfl_down_sync(0xffffffffu, total, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.f;
        for (int w = 0; w < CEIL_DIV(256, 32); w++) sum += partial[w];
        y[blockIdx.x] = sum;
    }
}
"""
HOST = """
void launch_N(const float* x, float* y, int rows, int cols, float by) {
    kernel_N<<<rows, 256>>>(x, y, cols, by);
}
"""


def numbered(text: str, count: int) -> str:
    return "".join(text.replace("_N", f"_{number}") for number in range(count))


def one_by_one(count: int) -> None:
    """Write each kernel by a plan of its own, as the Mapping tab does."""
    source = parse_cuda(HEAD + numbered(KERNEL + HOST, count), "many.cu")
    for number in range(count):
        check(source, f"kernel_{number}", 1)


def all_at_once(count: int) -> None:
    """Write the kernels that one host function launches."""
    arrays = "".join(f", float* y_{number}" for number in range(count))
    launches = numbered("    kernel_N<<<rows, 256>>>(x, y_N, cols, by);\n", count)
    host = f"\nvoid launch(const float* x{arrays}, int rows, int cols, float by) {{\n{launches}}}\n"
    check(parse_cuda(HEAD + numbered(KERNEL, count) + host, "many.cu"), None, count)


def check(source: CudaSource, kernel: str | None, passes: int) -> None:
    plan = read_launches(source, kernel)
    assert not plan.questions
    written = write_metal(source, plan)
    assert len(written.passes) == passes and not written.refusals


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Count the Python functions that are called meanwhile: unlike time, the same on every machine."""
    count = [0]

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        count[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield count
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("write", [one_by_one, all_at_once])
def test_four_times_the_kernels_are_about_four_times_the_work(write: Callable[[int], None]):
    write(1)  # tables are read with the first one
    with counted_calls() as few:
        write(8)
    with counted_calls() as many:
        write(32)
    assert many[0] < 5 * few[0]
