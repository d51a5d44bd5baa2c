#include <cuda_runtime.h>

__global__ void clear_bins(unsigned* bins, unsigned num_bins) {
  unsigned b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < num_bins) bins[b] = 0;
}

__global__ void count_keys(const unsigned* keys, unsigned* bins, int n, unsigned num_bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31;
  unsigned active = __ballot_sync(0xffffffffu, i < n);
  if (i < n) {
    unsigned bin = keys[i] % num_bins;
    unsigned peers = __match_any_sync(active, bin);
    int leader = __ffs(peers) - 1;
    if (lane == leader) atomicAdd(&bins[bin], __popc(peers));
  }
}

void launch_count_keys(const unsigned* keys, unsigned* bins, int n, int num_bins) {
  clear_bins<<<(num_bins + 63) / 64, 64>>>(bins, num_bins);
  count_keys<<<(n + 127) / 128, 128>>>(keys, bins, n, num_bins);
}
