#include <cstdio>

#include <cuda_runtime.h>

constexpr int kThreads = 128;

__device__ int warp_inclusive_scan(int v) {
  int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    int up = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += up;
  }
  return v;
}

__device__ int block_inclusive_scan(int v, int* warp_totals) {
  int lane = threadIdx.x & 31;
  int warp = threadIdx.x >> 5;
  v = warp_inclusive_scan(v);
  if (lane == 31) warp_totals[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int total = lane < kThreads / 32 ? warp_totals[lane] : 0;
    total = warp_inclusive_scan(total);
    if (lane < kThreads / 32) warp_totals[lane] = total;
  }
  __syncthreads();
  return warp > 0 ? v + warp_totals[warp - 1] : v;
}

// 1. Scan each block by itself, and note its total.
__global__ void scan_blocks(const int* in, int* out, int* block_totals, int n) {
  __shared__ int warp_totals[kThreads / 32];
  int i = blockIdx.x * kThreads + threadIdx.x;
  int v = block_inclusive_scan(i < n ? in[i] : 0, warp_totals);
  if (i < n) out[i] = v;
  if (threadIdx.x == kThreads - 1) block_totals[blockIdx.x] = v;
}

// 2. Scan the totals: one block, at most kThreads of them.
__global__ void scan_totals(int* block_totals, int blocks) {
  __shared__ int warp_totals[kThreads / 32];
  int v = block_inclusive_scan(threadIdx.x < blocks ? block_totals[threadIdx.x] : 0, warp_totals);
  if (threadIdx.x < blocks) block_totals[threadIdx.x] = v;
}

// 3. Add to each block what came before it.
__global__ void add_offsets(int* out, const int* block_totals, int n) {
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += block_totals[blockIdx.x - 1];
}

bool inclusive_scan(const int* h_in, int* h_out, int n) {
  if (n > kThreads * kThreads) {
    std::fprintf(stderr, "at most %d elements\n", kThreads * kThreads);
    return false;
  }
  const int blocks = (n + kThreads - 1) / kThreads;
  int *d_in, *d_out, *d_totals;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMalloc(&d_totals, blocks * sizeof(int));
  cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice);

  scan_blocks<<<blocks, kThreads>>>(d_in, d_out, d_totals, n);
  scan_totals<<<1, kThreads>>>(d_totals, blocks);
  add_offsets<<<blocks, kThreads>>>(d_out, d_totals, n);

  cudaMemcpy(h_out, d_out, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(d_in);
  cudaFree(d_out);
  cudaFree(d_totals);
  return true;
}
