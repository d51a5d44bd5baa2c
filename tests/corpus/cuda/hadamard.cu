#include <cassert>

#include <cuda_runtime.h>

// Walsh-Hadamard transform of each row: strides below 32 by shuffles, the larger ones through shared memory.
template <int LOG_N>
__global__ void hadamard_kernel(const float* __restrict__ x,  // [rows, n]
                                float* __restrict__ y,        // [rows, n]
                                float scale) {
  constexpr int N = 1 << LOG_N;
  __shared__ float exchange[N];
  const int t = threadIdx.x;
  float v = x[blockIdx.x * N + t];

#pragma unroll
  for (int stride = 1; stride < 32; stride <<= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, v, stride);
    v = (t & stride) ? other - v : v + other;
  }
  for (int stride = 32; stride < N; stride <<= 1) {
    exchange[t] = v;
    __syncthreads();
    const float other = exchange[t ^ stride];
    v = (t & stride) ? other - v : v + other;
    __syncthreads();
  }
  y[blockIdx.x * N + t] = v * scale;
}

void hadamard_transform(const float* x, float* y, int rows, int n, cudaStream_t stream) {
  assert(n == 256);
  hadamard_kernel<8><<<rows, 256, 0, stream>>>(x, y, 0.0625f);
}
