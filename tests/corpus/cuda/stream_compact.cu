#include <cuda_runtime.h>

#define THREADS 128
#define WARPS (THREADS / 32)

// Keeps the positive elements in their order.
__global__ void count_kept(const float* x, int* block_counts, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  int kept = __syncthreads_count(i < n && x[i] > 0.0f);
  if (threadIdx.x == 0) block_counts[blockIdx.x] = kept;
}

__global__ void offsets_of_blocks(const int* block_counts, int* block_offsets, int* total, int blocks) {
  int sum = 0;
  for (int b = 0; b < blocks; ++b) {
    block_offsets[b] = sum;
    sum += block_counts[b];
  }
  *total = sum;
}

__global__ void write_kept(const float* x, const int* block_offsets, float* out, int n) {
  __shared__ int warp_counts[WARPS];
  int i = blockIdx.x * THREADS + threadIdx.x;
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;

  float v = i < n ? x[i] : 0.0f;
  bool keep = v > 0.0f;
  unsigned int ballot = __ballot_sync(0xFFFFFFFF, keep);
  if (lane == 0) warp_counts[warp] = __popc(ballot);
  __syncthreads();

  int position = block_offsets[blockIdx.x];
  for (int w = 0; w < warp; ++w) position += warp_counts[w];
  position += __popc(ballot & ((1u << lane) - 1));
  if (keep) out[position] = v;
}

int compact_positive(const float* h_x, float* h_out, int n) {
  int blocks = (n + THREADS - 1) / THREADS;
  float *d_x, *d_out;
  int *d_counts, *d_offsets, *d_total;
  cudaMalloc(&d_x, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaMalloc(&d_counts, blocks * sizeof(int));
  cudaMalloc(&d_offsets, blocks * sizeof(int));
  cudaMalloc(&d_total, sizeof(int));
  cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(d_out, 0, n * sizeof(float));

  count_kept<<<blocks, THREADS>>>(d_x, d_counts, n);
  offsets_of_blocks<<<1, 1>>>(d_counts, d_offsets, d_total, blocks);
  write_kept<<<blocks, THREADS>>>(d_x, d_offsets, d_out, n);

  int total = 0;
  cudaMemcpy(&total, d_total, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(h_out, d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_x);
  cudaFree(d_out);
  cudaFree(d_counts);
  cudaFree(d_offsets);
  cudaFree(d_total);
  return total;
}
