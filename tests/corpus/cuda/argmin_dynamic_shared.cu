#include <cuda_runtime.h>

__global__ void row_argmin(const float* x, float* min_value, int* min_index, int cols) {
  extern __shared__ char smem[];
  float* values = (float*)smem;
  int* indices = (int*)(values + blockDim.x);
  int tid = threadIdx.x;
  int row = blockIdx.x;

  float best = INFINITY;
  int best_index = cols;
  for (int c = tid; c < cols; c += blockDim.x) {
    float v = x[row * cols + c];
    if (v < best) {
      best = v;
      best_index = c;
    }
  }
  values[tid] = best;
  indices[tid] = best_index;
  __syncthreads();

  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      float other = values[tid + s];
      if (other < values[tid] || (other == values[tid] && indices[tid + s] < indices[tid])) {
        values[tid] = other;
        indices[tid] = indices[tid + s];
      }
    }
    __syncthreads();
  }
  if (tid == 0) {
    min_value[row] = values[0];
    min_index[row] = indices[0];
  }
}

void launch_row_argmin(const float* x, float* min_value, int* min_index, int rows, int cols) {
  int threads = 64;
  size_t shared_bytes = threads * (sizeof(float) + sizeof(int));
  row_argmin<<<rows, threads, shared_bytes>>>(x, min_value, min_index, cols);
}
