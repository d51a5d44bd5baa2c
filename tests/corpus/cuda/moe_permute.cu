#include <cassert>

#include <cuda_runtime.h>

#define MAX_EXPERTS 64

__global__ void count_experts(const int* __restrict__ expert_ids,  // [tokens], each < experts
                              int* __restrict__ counts,            // [experts]
                              int tokens, int experts) {
  __shared__ int local[MAX_EXPERTS];
  for (int e = threadIdx.x; e < experts; e += blockDim.x) local[e] = 0;
  __syncthreads();
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < tokens) atomicAdd(&local[expert_ids[t]], 1);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    if (local[e] > 0) atomicAdd(&counts[e], local[e]);
  }
}

__global__ void exclusive_offsets(const int* __restrict__ counts,  // [experts]
                                  int* __restrict__ offsets,       // [experts + 1]
                                  int experts) {
  int sum = 0;
  for (int e = 0; e < experts; ++e) {
    offsets[e] = sum;
    sum += counts[e];
  }
  offsets[experts] = sum;
}

// A warp for each expert walks over the tokens, so that the order of tokens is kept.
__global__ void place_tokens(const int* __restrict__ expert_ids,  // [tokens], each < experts
                             const int* __restrict__ offsets,     // [experts + 1]
                             int* __restrict__ source_row,        // [tokens]
                             int tokens) {
  const int expert = blockIdx.x;
  const int lane = threadIdx.x;
  int next = offsets[expert];
  for (int start = 0; start < tokens; start += 32) {
    const int t = start + lane;
    const bool mine = t < tokens && expert_ids[t] == expert;
    const unsigned mask = __ballot_sync(0xffffffffu, mine);
    if (mine) source_row[next + __popc(mask & ((1u << lane) - 1u))] = t;
    next += __popc(mask);
  }
}

__global__ void gather_rows(const float* __restrict__ hidden,     // [tokens, dim]
                            const int* __restrict__ source_row,   // [tokens], each < tokens
                            float* __restrict__ permuted,         // [tokens, dim]
                            int dim) {
  const int from = source_row[blockIdx.x];
  for (int c = threadIdx.x; c < dim; c += blockDim.x) permuted[blockIdx.x * dim + c] = hidden[from * dim + c];
}

void moe_permute(const float* hidden, const int* expert_ids, int* counts, int* offsets, int* source_row,
                 float* permuted, int tokens, int experts, int dim, cudaStream_t stream) {
  assert(experts <= MAX_EXPERTS);
  cudaMemsetAsync(counts, 0, experts * sizeof(int), stream);
  count_experts<<<(tokens + 127) / 128, 128, 0, stream>>>(expert_ids, counts, tokens, experts);
  exclusive_offsets<<<1, 1, 0, stream>>>(counts, offsets, experts);
  place_tokens<<<experts, 32, 0, stream>>>(expert_ids, offsets, source_row, tokens);
  gather_rows<<<tokens, 64, 0, stream>>>(hidden, source_row, permuted, dim);
}
