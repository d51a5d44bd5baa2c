#include <cuda_runtime.h>

#define NUM_BINS 256
#define BLOCK_SIZE 128

__global__ void histogram_kernel(const unsigned char* data, unsigned int* bins, int n) {
  __shared__ unsigned int local[NUM_BINS];
  for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) local[b] = 0;
  __syncthreads();

  int stride = blockDim.x * gridDim.x;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += stride) {
    atomicAdd(&local[data[i]], 1u);
  }
  __syncthreads();

  for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(&bins[b], local[b]);
  }
}

void histogram(const unsigned char* h_data, unsigned int* h_bins, int n) {
  unsigned char* d_data;
  unsigned int* d_bins;
  cudaMalloc(&d_data, n);
  cudaMalloc(&d_bins, NUM_BINS * sizeof(unsigned int));
  cudaMemcpy(d_data, h_data, n, cudaMemcpyHostToDevice);
  cudaMemset(d_bins, 0, NUM_BINS * sizeof(unsigned int));

  int blocks = (n + 4 * BLOCK_SIZE - 1) / (4 * BLOCK_SIZE);
  histogram_kernel<<<blocks, BLOCK_SIZE>>>(d_data, d_bins, n);

  cudaMemcpy(h_bins, d_bins, NUM_BINS * sizeof(unsigned int), cudaMemcpyDeviceToHost);
  cudaFree(d_data);
  cudaFree(d_bins);
}
