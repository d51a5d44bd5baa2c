#include <algorithm>

#include <cuda_runtime.h>

__inline__ __device__ float warp_reduce_sum(float v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    v += __shfl_down_sync(0xffffffff, v, offset);
  }
  return v;
}

// The sum is right in thread 0 only.
__inline__ __device__ float block_reduce_sum(float v) {
  static __shared__ float warp_sums[32];
  int lane = threadIdx.x % warpSize;
  int warp = threadIdx.x / warpSize;

  v = warp_reduce_sum(v);
  if (lane == 0) warp_sums[warp] = v;
  __syncthreads();

  v = threadIdx.x < blockDim.x / warpSize ? warp_sums[lane] : 0.0f;
  if (warp == 0) v = warp_reduce_sum(v);
  return v;
}

__global__ void dot(const float* x, const float* y, float* result, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum = fmaf(x[i], y[i], sum);
  }
  sum = block_reduce_sum(sum);
  if (threadIdx.x == 0) {
    atomicAdd(result, sum);
  }
}

void dot_on_device(const float* h_x, const float* h_y, float* h_result, int n) {
  float *d_x, *d_y, *d_result;
  cudaMalloc(&d_x, sizeof(float) * n);
  cudaMalloc(&d_y, sizeof(float) * n);
  cudaMalloc(&d_result, sizeof(float));
  cudaMemcpy(d_x, h_x, sizeof(float) * n, cudaMemcpyHostToDevice);
  cudaMemcpy(d_y, h_y, sizeof(float) * n, cudaMemcpyHostToDevice);
  cudaMemset(d_result, 0, sizeof(float));

  const int threads = 128;
  const int blocks = std::min((n + threads - 1) / threads, 8);
  dot<<<blocks, threads>>>(d_x, d_y, d_result, n);

  cudaMemcpy(h_result, d_result, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_x);
  cudaFree(d_y);
  cudaFree(d_result);
}
