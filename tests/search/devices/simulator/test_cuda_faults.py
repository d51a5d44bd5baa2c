"""Mistakes planted in CUDA files: what is told of each, and at which line of the file."""

from __future__ import annotations

import numpy as np
import pytest

from search.devices.simulator.compilers import find_compiler

X = {"x": np.arange(64, dtype=np.float32)}
OUT = {"out": (64, "float32")}


def only(checked):
    (report,) = checked.reports
    return report


@pytest.fixture
def check(cuda):
    """Return a function that checks a file with one kernel over 64 threads."""

    def run(text, *, block=64, grid=1, shared=0, seed=0, template=()):
        launch = cuda.launch("k", grid, block, "x", "out", 64, shared=shared, template=template)
        return cuda.check(text, launch, inputs=X, outputs=OUT, seed=seed)

    return run


def kernel(*lines):
    """A kernel whose body begins in line 3."""
    return "\n".join(["", "__global__ void k(const float* x, float* out, int n) { int t = threadIdx.x;", *lines, "}"])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_missing_syncthreads_is_a_race_between_its_two_lines(check, seed):
    report = only(check(kernel("__shared__ float s[64];", "s[t] = x[t];", "", "out[t] = s[63 - t];"), seed=seed))
    assert (report.stage, {report.line, report.other_line}, report.certain) == ("race", {4, 6}, True)
    assert "data race on s[" in report.message
    assert "Put __syncthreads() between line 4 and line 6" in report.message


def test_a_race_within_a_warp_is_cured_by_syncwarp(check):
    text = kernel("__shared__ float s[32];", "s[t] = x[t];", "out[t] = s[31 - t];")
    report = only(check(text, block=32))
    assert "Put __syncwarp() between line 4 and line 5" in report.message


def test_the_same_file_with_its_barrier_is_free_of_findings(check):
    text = kernel("__shared__ float s[64];", "s[t] = x[t];", "__syncthreads();", "out[t] = s[63 - t];")
    assert check(text, seed=4).reports == ()


def test_blocks_that_write_one_element_race_and_are_called_blocks(check):
    report = only(check(kernel("out[t % 8] = blockIdx.x;"), grid=2, block=8))
    assert (report.stage, report.line) == ("race", 3)
    assert "Blocks run in any order and at once" in report.message
    assert "; block (" in report.message


def test_a_race_in_dynamic_shared_memory_names_it(check):
    text = kernel("extern __shared__ float smem[];", "smem[t] = x[t];", "out[t] = smem[t ^ 1];")
    report = only(check(text, shared=256))
    assert (report.stage, {report.line, report.other_line}) == ("race", {4, 5})
    assert "data race on smem[" in report.message


@pytest.mark.parametrize(
    ("shared", "access", "line"),
    [(256, "out[t] = smem[t + 1];", 6), (128, "out[t] = smem[t];", 4)],
)
def test_an_index_past_dynamic_shared_memory_is_told_with_what_the_launch_gave(check, shared, access, line):
    text = kernel("extern __shared__ float smem[];", "smem[t] = 0;", "__syncthreads();", access)
    reports = check(text, shared=shared).reports
    assert (reports[0].stage, reports[0].line) == ("bounds", line)
    assert f"it has {shared // 4} elements" in reports[0].message


def test_an_index_past_a_static_array_is_found_although_memory_follows(check):
    text = kernel("__shared__ float a[64], b[64];", "b[t] = 0; a[t + 1] = x[t];", "out[t] = b[t];")
    report = only(check(text))
    assert (report.stage, report.line) == ("bounds", 4)
    assert "a[64]" in report.message


def test_a_missing_guard_is_an_index_past_the_array(check):
    report = check(kernel("int i = blockIdx.x * blockDim.x + t;", "out[i] = x[i] + n;"), grid=2, block=48).reports[0]
    assert (report.stage, report.line) == ("bounds", 4)
    assert "x[64]" in report.message and "it has" not in report.message.split("the input")[0]


def test_without_watching_an_index_far_outside_still_ends_the_run(cuda):
    launch = cuda.launch("k", 1, 64, "x", "out", 64)
    fault = cuda.fault(kernel("out[t * 100000] = x[t];"), launch, inputs=X, outputs=OUT)
    assert (fault.stage, fault.pass_name) == ("bounds", "k")
    assert "writes 'out' at element" in fault.message


def test_a_read_of_shared_memory_that_nobody_wrote(check):
    report = only(check(kernel("__shared__ float s[64];", "if (t) s[t] = x[t];", "__syncthreads();", "out[t] = s[t];")))
    assert (report.stage, report.line) == ("uninitialised", 6)
    assert "shared memory begins with any contents" in report.message


@pytest.mark.skipif(find_compiler().clang, reason="clang looks at no vector that is copied whole")
def test_a_misaligned_vector_access(check):
    report = check(kernel("if (t == 1) { float4 v = *(const float4*)(x + t); out[0] = v.x; }")).reports[0]
    assert (report.stage, report.line) == ("misaligned", 3)


def test_a_lane_that_a_mask_names_and_that_is_elsewhere(check):
    report = only(
        check(
            kernel(
                "float v = x[t];",
                "if (t < 20) v += __shfl_down_sync(0xffffffff, v, 1, 4);",
                "__syncthreads();",
                "out[t] = v;",
            ),
            block=32,
        )
    )
    assert (report.stage, report.line, report.certain) == ("divergence", 4, True)
    assert "names 32 live lanes in line 4, and 12 of them do not come: lane 20" in report.message


def test_a_lane_that_its_own_mask_does_not_name(check):
    report = only(check(kernel("unsigned votes = __ballot_sync(0xffff, 1);", "out[t] = votes;"), block=32))
    assert (report.stage, report.line, report.certain) == ("divergence", 3, True)
    assert "a mask that does not name it" in report.message


def test_lanes_that_have_returned_may_be_named(check):
    text = kernel("if (t >= 20) return;", "float v = x[t];", "out[t] = v + __shfl_xor_sync(0xffffffff, v, 1);")
    assert check(text, block=32).reports == ()


def test_syncwarp_in_one_branch_only_is_told_at_its_line(check):
    text = kernel(
        "if (t < 8)", "  __syncwarp();", "else", "  out[t] = __shfl_sync(0xffffff00u, x[t], 9);", "__syncthreads();"
    )
    report = only(check(text, block=32))
    assert (report.stage, report.line) == ("divergence", 4)


def test_a_value_of_a_lane_outside_of_the_mask_is_only_suspected(check):
    text = kernel(
        "float v = x[t];", "if (t < 16) v += __shfl_down_sync(0xffff, v, 8);", "__syncthreads();", "out[t] = v;"
    )
    report = only(check(text, block=32))
    assert (report.stage, report.line, report.certain) == ("divergence", 4, False)


def test_a_value_of_a_lane_that_has_returned_or_never_was_is_suspected(check):
    text = kernel("if (t >= 40) return;", "float v = x[t];", "out[t] = v + __shfl_down_sync(0xffffffff, v, 8, 16);")
    report = only(check(text, block=48))
    assert (report.stage, report.line, report.certain) == ("divergence", 5, False)
    assert "that lane has returned or never was" in report.message


def test_a_return_before_a_barrier_is_told_and_condemns_nothing(check):
    report = only(check(kernel("if (t >= 40) return;", "__syncthreads();", "out[t] = x[t];")))
    assert (report.stage, report.line, report.certain) == ("divergence", 4, False)
    assert "24 others never come: thread 40, for one, had returned before it" in report.message


def test_barriers_of_two_branches_end_the_run(cuda):
    text = kernel("if (t < 32)", "  __syncthreads();", "else", "  __syncthreads();", "out[t] = x[t];")
    fault = cuda.fault(text, cuda.launch("k", 1, 64, "x", "out", 64), inputs=X, outputs=OUT)
    assert (fault.stage, fault.line) == ("divergence", 4)
    assert "thread 0 of the block at the one in line 4, thread 32 at the one in line 6" in fault.message


@pytest.mark.parametrize("checked", [False, True])
def test_an_assertion_that_fails_is_told_with_its_line_and_thread(cuda, checked):
    text = "#include <cassert>\n" + kernel("assert(x[t] < 40);", "out[t] = x[t];")
    launch = cuda.launch("k", 1, 64, "x", "out", 64)
    if checked:
        found = only(cuda.check(text, launch, inputs=X, outputs=OUT))
    else:
        found = cuda.fault(text, launch, inputs=X, outputs=OUT)
    assert (found.stage, found.line) == ("crash", 4)
    assert "thread 40 of block (0, 0, 0) in line 4: `assert(x[t] < 40);`" in found.message


def test_a_loop_without_end_and_a_division_by_zero(cuda):
    launch = cuda.launch("k", 1, 64, "x", "out", 64)
    fault = cuda.fault(kernel("while (n) __threadfence();"), launch, inputs=X, outputs=OUT, seconds=1.0)
    assert fault.stage == "timeout" and "kernel 'k' was still running" in fault.message
    fault = cuda.fault(kernel("out[t] = t / (n - 64);"), launch, inputs=X, outputs=OUT)
    assert (fault.stage, fault.message) == ("crash", "an integer was divided by zero")


def test_more_shared_memory_than_a_block_has(cuda):
    text = kernel("__shared__ double s[29000];", "s[t] = 0;", "out[t] = s[0];")
    fault = cuda.fault(text, cuda.launch("k", 1, 64, "x", "out", 64, shared=1024), inputs=X, outputs=OUT)
    assert fault.stage == "memory"
    assert "bytes of shared memory are declared; the limit is 232448" in fault.message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("out[t] = undefined_name;", "'undefined_name' was not declared"),
        ("__shared__ float s[4] = {1, 2, 3, 4};", "'s' is in shared memory, which can't be initialized"),
        ("child<<<1, 1>>>(out);", "launch them from the host"),
        ("out[t] = tex2D<float>(0, 1, 2);", "no textures"),
        ("nvcuda::wmma::fragment<int> f;", "no tensor cores"),
        ("out[t] = clock();", "no clock"),
    ],
)
def test_what_does_not_compile_is_told_at_its_line(cuda, line, says):
    fault = cuda.fault(kernel("", line), cuda.launch("k", 1, 64, "x", "out", 64), inputs=X, outputs=OUT)
    assert (fault.stage, fault.line) == ("compile", 4)
    assert says in fault.message


def test_a_kernel_that_is_not_there_has_its_neighbour_suggested(cuda):
    text = "__global__ void soft_max(float* out) {}\n__global__ void other(float* out) {}"
    fault = cuda.fault(text, cuda.launch("softmax", 1, 1, "out"), outputs=OUT)
    assert "there is no kernel 'softmax' in the device code: did you mean 'soft_max'?" in fault.message


def test_a_launch_with_too_few_arguments(cuda):
    text = "template <int N, class T = float> __global__ void k(float* out, const Pair<int, T>* (&x)[2], int n) {}"
    fault = cuda.fault(text, cuda.launch("k", 1, 1, "out"), outputs=OUT)
    assert (fault.stage, fault.message) == ("launch", "the launch gives 'k' 1 arguments, and it has 3 parameters")


def test_constant_memory_that_nothing_fills(cuda):
    text = "__constant__ float taps[4];\n__global__ void k(float* out) { out[0] = taps[0]; }"
    fault = cuda.fault(text, cuda.launch("k", 1, 1, "out"), outputs=OUT)
    assert "nothing gives the __constant__ 'taps' its value" in fault.message


def test_a_device_variable_that_changes_is_refused_over_several_launches(cuda):
    text = "__device__ int counter;\n__global__ void k(float* out) { out[0] = counter++; }"
    launch = cuda.launch("k", 1, 1, "out")
    assert "'counter' is a __device__ variable" in cuda.fault(text, launch, launch, outputs=OUT).message
