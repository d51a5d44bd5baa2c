// Softmax over short rows (up to 1024): one warp per row, the row kept in registers, shuffle reductions.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 4;
constexpr float kLog2e = 1.44269504088896f;

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, mask);
  }
  return value;
}

template <int kPerLane>
__global__ void softmax_warp(const __half* __restrict__ x, __half* __restrict__ y, int rows, int n) {
  const int lane = threadIdx.x;
  const int row = blockIdx.x * kWarpsPerBlock + threadIdx.y;
  if (row >= rows) return;

  const __half* in = x + static_cast<size_t>(row) * n;
  __half* out = y + static_cast<size_t>(row) * n;

  float kept[kPerLane];
  float peak = -CUDART_INF_F;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int c = lane + i * kWarp;
    kept[i] = c < n ? __half2float(in[c]) : -CUDART_INF_F;
    peak = fmaxf(peak, kept[i]);
  }
  peak = warp_max(peak);

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    kept[i] = exp2f((kept[i] - peak) * kLog2e);
    sum += kept[i];
  }
  const float inverse = __fdividef(1.0f, warp_sum(sum));

#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int c = lane + i * kWarp;
    if (c < n) out[c] = __float2half_rn(kept[i] * inverse);
  }
}

void launch_softmax_warp(const __half* x, __half* y, int rows, int n, cudaStream_t stream) {
  const dim3 block(kWarp, kWarpsPerBlock);
  const int blocks = (rows + kWarpsPerBlock - 1) / kWarpsPerBlock;
  if (n <= 256) {
    softmax_warp<8><<<blocks, block, 0, stream>>>(x, y, rows, n);
  } else {
    softmax_warp<32><<<blocks, block, 0, stream>>>(x, y, rows, n);
  }
}
