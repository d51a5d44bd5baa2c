#include <cuda_runtime.h>

struct MaxSum {
  float m;  // the largest value so far
  float s;  // sum of exp(x - m)
};

__device__ MaxSum merge(MaxSum a, MaxSum b) {
  bool a_larger = a.m > b.m;
  MaxSum large = a_larger ? a : b;
  MaxSum small = a_larger ? b : a;
  MaxSum r;
  r.m = large.m;
  r.s = large.s + (small.s > 0.0f ? small.s * expf(small.m - large.m) : 0.0f);
  return r;
}

template <int THREADS>
__global__ void softmax_online(const float* x, float* y, int cols) {
  __shared__ MaxSum shared[THREADS];
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;

  MaxSum own = {-INFINITY, 0.0f};
  for (int i = threadIdx.x; i < cols; i += THREADS) {
    own = merge(own, MaxSum{x[i], 1.0f});
  }
  shared[threadIdx.x] = own;
  __syncthreads();
  for (int s = THREADS / 2; s >= 1; s /= 2) {
    if (threadIdx.x < s) {
      shared[threadIdx.x] = merge(shared[threadIdx.x], shared[threadIdx.x + s]);
    }
    __syncthreads();
  }

  MaxSum row = shared[0];
  for (int i = threadIdx.x; i < cols; i += THREADS) {
    y[i] = expf(x[i] - row.m) / row.s;
  }
}

int softmax_on_device(const float* h_x, float* h_y, int rows, int cols) {
  float *d_x = NULL, *d_y = NULL;
  if (cudaMalloc((void**)&d_x, rows * cols * sizeof(float)) != cudaSuccess) return 1;
  if (cudaMalloc((void**)&d_y, rows * cols * sizeof(float)) != cudaSuccess) return 1;
  cudaMemcpy(d_x, h_x, rows * cols * sizeof(float), cudaMemcpyHostToDevice);
  softmax_online<64><<<rows, 64>>>(d_x, d_y, cols);
  cudaMemcpy(h_y, d_y, rows * cols * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_x);
  cudaFree(d_y);
  return 0;
}
