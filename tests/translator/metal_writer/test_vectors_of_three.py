"""Vectors of three: packed ones in Metal, which take as much memory as in CUDA."""

from __future__ import annotations

import numpy as np
import pytest

from tests.translator.metal_writer.conftest import Runner, launch, plan, refusals, translate
from translator.cuda_source import parse_cuda
from translator.launches import read_launches
from translator.metal_writer import write_metal

OPERATORS = """\
__device__ float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ float3 operator*(float s, float3 a) { return make_float3(a.x * s, a.y * s, a.z * s); }
__device__ void operator+=(float3& a, float3 b) { a.x += b.x; a.y += b.y; a.z += b.z; }
__device__ float3 cross(float3 a, float3 b) {
  return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
"""
NORMALS = (
    OPERATORS
    + """\
__global__ void normals(const float3* at, const uint3* faces, float3* out, int n) {
  __shared__ float3 s[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = make_float3(1.f, 1.f, 1.f);
  if (i < n) {
    uint3 f = faces[i];
    float3 a = at[f.x];
    s[threadIdx.x] += 2.f * cross(at[f.y] - a, at[f.z] - a);
    float3 own = s[threadIdx.x];
    out[i] = own.x > 0.f ? own : own - a;
  }
}
"""
)
COUNT = {"at": "in float32 3 * p", "faces": "in uint32 3 * n", "out": "out float32 3 * n"}


def test_arrays_and_shared_memory_of_float3_are_packed(run: Runner, random: np.random.Generator) -> None:
    launches = plan([launch("normals", "ceildiv(n, 32)", "32", "at, faces, out, =n")], COUNT, axes="n p")
    made = translate(NORMALS, launches)
    assert "threadgroup packed_float3 s[32];" in made.passes[0].source
    at = random.standard_normal((9, 3)).astype(np.float32)
    faces = np.stack([random.permutation(9)[:3] for _ in range(40)]).astype(np.uint32)
    a, b, c = (at[faces[:, k]] for k in range(3))
    own = 1 + 2 * np.cross(b - a, c - a)
    want = np.where(own[:, :1] > 0, own, own - a)
    got = run(made, {"at": at.reshape(-1), "faces": faces.reshape(-1)}, n=40, p=9)["out"]
    np.testing.assert_allclose(got.reshape(40, 3), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        # a product of quaternions has all of a.x * b.x, a.y * b.y ... in it
        """make_float4(a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z)""",
        "make_float4(a.x * b.x, a.y * b.y, a.z * b.z, 0.5f * a.w * b.w)",
        "make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w)",
    ],
)
def test_an_operator_that_is_not_componentwise_is_refused(body: str) -> None:
    source = f"""\
__device__ float4 operator*(float4 a, float4 b) {{ return {body}; }}
__global__ void k(const float4* p, float4* q) {{ q[threadIdx.x] = p[threadIdx.x] * p[0]; }}
"""
    found = refusals(source, plan([launch("k", "1", "32", "p, q")], {"p": "in float32 128", "q": "out float32 128"}))
    assert any("'operator*' of vectors is not componentwise" in text for text in found)


def test_flags_beside_float3_are_refused() -> None:
    source = """\
__global__ void k(float* x, const int* at) {
  float3* p = reinterpret_cast<float3*>(x);
  float3 v = p[at[threadIdx.x]];
  v.x += 1.f;
  p[at[threadIdx.x]] = v;
}
"""
    arrays = {"x": "inout float32 3 * n", "at": "in int32 32"}
    found = refusals(source, plan([launch("k", "1", "32", "x, at")], arrays))
    assert any("changed in place are written as 'packed_float3'" in text for text in found)


@pytest.mark.parametrize(
    ("declared", "used", "said"),
    [
        ("__constant__ float gain;", "x[threadIdx.x] * gain", "'gain' is a variable of the device that the host fills"),
        ("__constant__ float w[4];\n__device__ float f(float v) { return v * w[1]; }", "f(x[threadIdx.x])",
         "'f' reads 'w', a variable of the device"),
    ],
)  # fmt: skip
def test_constants_of_the_host_that_no_pass_can_read_are_refused(declared: str, used: str, said: str) -> None:
    source = parse_cuda(f"""\
{declared}
__global__ void k(const float* x, float* y) {{ y[threadIdx.x] = {used}; }}
void run(const float* x, float* y) {{ k<<<1, 32>>>(x, y); }}
""", "k.cu")  # fmt: skip
    found = write_metal(source, read_launches(source))
    assert found.passes == () and any(said in str(refusal) for refusal in found.refusals)


def test_bits_of_64_bit_integers_are_counted(run: Runner) -> None:
    source = """\
__global__ void bits(const unsigned long long* x, int* y, unsigned long long* z) {
  y[threadIdx.x] = 100 * __popcll(x[threadIdx.x]) + __clzll(x[threadIdx.x]);
  z[threadIdx.x] = __brevll(x[threadIdx.x]);
}
"""
    arrays = {"x": "in uint64 8", "y": "out int32 8", "z": "out uint64 8"}
    made = translate(source, plan([launch("bits", "1", "8", "x, y, z")], arrays))
    x = np.array([0, 1, 3, 1 << 63, (1 << 64) - 1, 1 << 40, 5, 1 << 32], np.uint64)
    got = run(made, {"x": x})
    assert list(got["y"]) == [100 * v.bit_count() + 64 - v.bit_length() for v in map(int, x)]
    assert list(got["z"]) == [int(f"{int(v):064b}"[::-1], 2) for v in x]
