#include <cuda_runtime.h>

__global__ void row_stats16(const float* x, float* sum_out, float* max_out, int rows, int cols) {
  int segment_lane = threadIdx.x % 16;
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 16;

  float sum = 0.0f, largest = -INFINITY;
  if (row < rows) {
    for (int c = segment_lane; c < cols; c += 16) {
      float v = x[row * cols + c];
      sum += v;
      largest = fmaxf(largest, v);
    }
  }
  for (int offset = 8; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset, 16);
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset, 16));
  }
  sum = __shfl_sync(0xffffffff, sum, 0, 16);
  if (row < rows && segment_lane == 0) sum_out[row] = sum;
  if (row < rows && segment_lane == 15) max_out[row] = largest;
}

void launch_row_stats16(const float* x, float* sum_out, float* max_out, int rows, int cols) {
  int threads = 64;
  int rows_per_block = threads / 16;
  row_stats16<<<(rows + rows_per_block - 1) / rows_per_block, threads>>>(x, sum_out, max_out, rows, cols);
}
