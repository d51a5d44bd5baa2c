#include <cuda_runtime.h>

__global__ void mean_rows(const float* __restrict__ x,  // [rows, cols]
                          float* __restrict__ mean,     // [rows]
                          int cols) {
  __shared__ double sums[128];
  double sum = 0.0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += static_cast<double>(x[blockIdx.x * cols + c]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) mean[blockIdx.x] = static_cast<float>(sums[0] / cols);
}

void mean_rows_forward(const float* x, float* mean, int rows, int cols) {
  mean_rows<<<rows, 128>>>(x, mean, cols);
}
