#include <cuda_runtime.h>

#define THREADS 256

// One sum for each block. Launched a second time on those sums, with a single block.
__global__ void reduce_sum(const float* in, float* out, int n) {
  __shared__ float sums[THREADS];
  int tid = threadIdx.x;

  float sum = 0.0f;
  for (int i = blockIdx.x * THREADS + tid; i < n; i += gridDim.x * THREADS) {
    sum += in[i];
  }
  sums[tid] = sum;
  __syncthreads();

  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (tid < s) {
      sums[tid] += sums[tid + s];
    }
    __syncthreads();
  }

  if (tid == 0) out[blockIdx.x] = sums[0];
}

float sum_on_device(const float* h_in, int n) {
  int blocks = (n + 2 * THREADS - 1) / (2 * THREADS);

  float *d_in, *d_partial, *d_out;
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_partial, blocks * sizeof(float));
  cudaMalloc(&d_out, sizeof(float));
  cudaMemcpy(d_in, h_in, n * sizeof(float), cudaMemcpyHostToDevice);

  reduce_sum<<<blocks, THREADS>>>(d_in, d_partial, n);
  reduce_sum<<<1, THREADS>>>(d_partial, d_out, blocks);

  float sum;
  cudaMemcpy(&sum, d_out, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_in);
  cudaFree(d_partial);
  cudaFree(d_out);
  return sum;
}
