#include <cassert>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

// residual += input, and input becomes the normalised residual: both in place.
__global__ void fused_add_rmsnorm_kernel(__half* __restrict__ input,         // [tokens, hidden]
                                         __half* __restrict__ residual,      // [tokens, hidden]
                                         const __half* __restrict__ weight,  // [hidden]
                                         const float epsilon, const int hidden) {
  __shared__ float partial[32];
  const int pairs = hidden / 2;
  __half2* in2 = reinterpret_cast<__half2*>(input) + blockIdx.x * pairs;
  __half2* res2 = reinterpret_cast<__half2*>(residual) + blockIdx.x * pairs;
  const __half2* w2 = reinterpret_cast<const __half2*>(weight);

  float square = 0.0f;
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    __half2 sum = __hadd2(in2[i], res2[i]);
    res2[i] = sum;
    float2 f = __half22float2(sum);
    square += f.x * f.x + f.y * f.y;
  }

  for (int mask = 16; mask >= 1; mask /= 2) square += __shfl_xor_sync(0xffffffff, square, mask);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = square;
  __syncthreads();
  square = lane < blockDim.x / 32 ? partial[lane] : 0.0f;
  for (int mask = 16; mask >= 1; mask /= 2) square += __shfl_xor_sync(0xffffffff, square, mask);
  const float scale = rsqrtf(square / hidden + epsilon);

  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    float2 f = __half22float2(res2[i]);
    float2 w = __half22float2(w2[i]);
    in2[i] = __floats2half2_rn(f.x * scale * w.x, f.y * scale * w.y);
  }
}

void fused_add_rmsnorm(__half* input, __half* residual, const __half* weight, int tokens, int hidden) {
  assert(hidden % 2 == 0);
  fused_add_rmsnorm_kernel<<<tokens, 128>>>(input, residual, weight, 1e-6f, hidden);
}
