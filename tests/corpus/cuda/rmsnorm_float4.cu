#include <cassert>

#include <cuda_runtime.h>

__global__ void rmsnorm_kernel(const float* __restrict__ input,   // [tokens, hidden]
                               const float* __restrict__ weight,  // [hidden]
                               float* __restrict__ output,        // [tokens, hidden]
                               float eps, int hidden) {
  __shared__ float warp_sums[8];
  __shared__ float inverse_rms;

  const int vectors = hidden / 4;
  const float4* in4 = reinterpret_cast<const float4*>(input + (size_t)blockIdx.x * hidden);
  const float4* w4 = reinterpret_cast<const float4*>(weight);
  float4* out4 = reinterpret_cast<float4*>(output + (size_t)blockIdx.x * hidden);

  float sum = 0.f;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    float4 v = in4[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if ((threadIdx.x & 31) == 0) warp_sums[threadIdx.x >> 5] = sum;
  __syncthreads();

  if (threadIdx.x == 0) {
    float total = 0.f;
    for (int w = 0; w < blockDim.x / 32; ++w) total += warp_sums[w];
    inverse_rms = rsqrtf(total / hidden + eps);
  }
  __syncthreads();

  const float scale = inverse_rms;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    float4 v = in4[i];
    float4 w = __ldg(&w4[i]);
    out4[i] = make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
  }
}

void rmsnorm(const float* input, const float* weight, float* output, int tokens, int hidden, float eps,
             cudaStream_t stream) {
  assert(hidden % 4 == 0);
  rmsnorm_kernel<<<tokens, 256, 0, stream>>>(input, weight, output, eps, hidden);
}
