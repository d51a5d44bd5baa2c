#include <cuda_runtime.h>

constexpr unsigned kFullMask = 0xffffffffu;
constexpr int kWarpsPerBlock = 4;

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v = fmaxf(v, __shfl_xor_sync(kFullMask, v, mask));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(kFullMask, v, mask);
  return v;
}

__global__ void __launch_bounds__(32 * kWarpsPerBlock) softmax_warp(float* y, const float* x, int rows, int cols) {
  const int lane = threadIdx.x;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;

  float best = -INFINITY;
  for (int i = lane; i < cols; i += 32) best = fmaxf(best, x[row * cols + i]);
  best = warp_max(best);

  float total = 0.0f;
  for (int i = lane; i < cols; i += 32) total += expf(x[row * cols + i] - best);
  total = warp_sum(total);

  for (int i = lane; i < cols; i += 32) y[row * cols + i] = expf(x[row * cols + i] - best) / total;
}

void softmax_rows(float* y, const float* x, int rows, int cols) {
  dim3 block(32, kWarpsPerBlock);
  softmax_warp<<<(rows + kWarpsPerBlock - 1) / kWarpsPerBlock, block>>>(y, x, rows, cols);
}
