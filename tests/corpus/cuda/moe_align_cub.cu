#include <cassert>

#include <cub/cub.cuh>

#define THREADS 256

// Room for each expert's tokens, rounded up to whole blocks, by an exclusive sum over the experts in one block.
__global__ void moe_align_block_size_kernel(const int* __restrict__ topk_ids,  // [numel], each < num_experts
                                            int* __restrict__ cumsum,          // [num_experts + 1]
                                            int* __restrict__ total_tokens_post_pad, int num_experts, int block_size,
                                            int numel) {
  __shared__ int counts[THREADS];
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < numel; i += blockDim.x) atomicAdd(&counts[topk_ids[i]], 1);
  __syncthreads();

  using BlockScan = cub::BlockScan<int, THREADS>;
  __shared__ typename BlockScan::TempStorage temp_storage;

  int expert_count = 0;
  const int expert_id = threadIdx.x;
  if (expert_id < num_experts) {
    expert_count = (counts[expert_id] + block_size - 1) / block_size * block_size;
  }

  int cumsum_val, total;
  BlockScan(temp_storage).ExclusiveSum(expert_count, cumsum_val, total);

  if (expert_id <= num_experts) cumsum[expert_id] = cumsum_val;
  if (threadIdx.x == 0) *total_tokens_post_pad = total;
}

// The expert that each block of rows belongs to, -1 past the last.
__global__ void expert_of_block(const int* __restrict__ cumsum,  // [num_experts + 1]
                                int* __restrict__ expert_ids,    // [max_blocks]
                                int num_experts, int block_size, int max_blocks) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= max_blocks) return;
  int found = -1;
  for (int e = 0; e < num_experts; ++e) {
    if (b * block_size >= cumsum[e] && b * block_size < cumsum[e + 1]) found = e;
  }
  expert_ids[b] = found;
}

void moe_align_block_size(const int* topk_ids, int* cumsum, int* total_tokens_post_pad, int* expert_ids, int num_experts,
                          int block_size, int numel, int max_blocks, cudaStream_t stream) {
  assert(num_experts < THREADS);
  moe_align_block_size_kernel<<<1, THREADS, 0, stream>>>(topk_ids, cumsum, total_tokens_post_pad, num_experts, block_size,
                                                         numel);
  expert_of_block<<<(max_blocks + 127) / 128, 128, 0, stream>>>(cumsum, expert_ids, num_experts, block_size, max_blocks);
}
