#include <cuda_runtime.h>

// A warp for each segment of the flat array.
__global__ void segmented_sum_kernel(const float* __restrict__ values,  // [n]
                                     const int* __restrict__ offsets,   // [segments + 1], each < n + 1
                                     float* __restrict__ sums,          // [segments]
                                     int segments) {
  const int segment = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize;
  const int lane = threadIdx.x % warpSize;
  if (segment >= segments) return;

  const int begin = offsets[segment];
  const int end = offsets[segment + 1];
  float sum = 0.f;
  for (int i = begin + lane; i < end; i += warpSize) sum += values[i];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) sums[segment] = sum;
}

void segmented_sum(const float* values, const int* offsets, float* sums, int n, int segments, cudaStream_t stream) {
  if (n == 0 || segments == 0) return;
  segmented_sum_kernel<<<(segments + 3) / 4, 128, 0, stream>>>(values, offsets, sums, segments);
}
