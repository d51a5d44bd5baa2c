"""Input that nothing can be done with: one sentence that says what is wrong, where, and what to do."""

from __future__ import annotations

import pytest

from translator.cuda_source import parse_cuda
from translator.launches import read_launches
from translator.mistakes import MOST_CHARACTERS, CudaInputError, decode_cuda

KERNELS = "__global__ void scale_rows(float* x) { }\n__global__ void add_rows(float* x) { }\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "k.cu: the file is empty"),
        (b" \n\t\r\n", "k.cu: the file is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(100), "k.cu: this is a binary file"),
        (bytes(range(1, 32)) * 9 + b"\xff", "k.cu: this is a binary file"),
        (b"x" * (MOST_CHARACTERS + 1), "k.cu: the file has 4.0 MB, and at most 4 MB are read"),
    ],
)
def test_a_file_that_is_no_text_is_refused(content, said):
    with pytest.raises(CudaInputError) as caught:
        decode_cuda(content, "k.cu")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfint a;", "int a;"),
        ("// größer".encode("latin-1"), "// größer"),
        ("int a;".encode("utf-16"), "int a;"),
        ("// größer".encode(), "// größer"),
    ],
)
def test_text_is_decoded_whatever_wrote_it(content, text):
    assert decode_cuda(content, "k.cu").lstrip("\ufeff") == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "k.cu: the file is empty"),
        ("import torch\n\ndef f(x):\n    return x\n", "k.cu: this is Python, not CUDA"),
        ("#include <metal_stdlib>\nkernel void f(uint i [[thread_position_in_grid]]) { }", "k.cu: this is Metal"),
        ("__kernel void f(__global float* x) { }", "k.cu: this is OpenCL"),
        ("int main() { return 0; }", "k.cu: this isn't CUDA"),
        ("Dear reader,\nplease find the kernel enclosed.\n", "k.cu: this isn't CUDA"),
        ("__device__ int f(int a) { return a; }", "k.cu: there are device functions but no kernel in it"),
        ('#include "kernels.cuh"\ntemplate void run<float>();\n', "k.cu: there is no kernel in it, but it includes"),
        ("int a;\n__global__ void k(float* x, int n", "k.cu:2: a kernel begins here but can't be read to its end"),
    ],
)
def test_a_source_without_a_kernel_says_what_it_is(text, said):
    with pytest.raises(CudaInputError) as caught:
        read_launches(parse_cuda(text, "k.cu"))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("scale_row", "there is no kernel 'scale_row' in it; did you mean 'scale_rows'"),
        ("zzz", "there is no kernel 'zzz' in it; it has 'scale_rows' and 'add_rows'"),
    ],
)
def test_a_kernel_that_is_not_there_gets_suggestions(wanted, said):
    with pytest.raises(CudaInputError, match=said):
        read_launches(parse_cuda(KERNELS, "k.cu"), wanted)
