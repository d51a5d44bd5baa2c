#include <cassert>
#include <cfloat>

#include <cuda_runtime.h>

#define EXPERTS_PER_LANE 2

// A warp for each token: softmax over the experts, the best two, their weights scaled to a sum of one.
__global__ void topk_gating(const float* __restrict__ logits,   // [tokens, experts]
                            float* __restrict__ topk_weights,   // [tokens, 2]
                            int* __restrict__ topk_ids,         // [tokens, 2]
                            int tokens, int experts) {
  const int lane = threadIdx.x % 32;
  const int token = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (token >= tokens) return;

  float p[EXPERTS_PER_LANE];
  float largest = -FLT_MAX;
#pragma unroll
  for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
    const int e = lane + 32 * i;
    p[i] = e < experts ? logits[token * experts + e] : -FLT_MAX;
    largest = fmaxf(largest, p[i]);
  }
  for (int m = 16; m > 0; m >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, m));

  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
    p[i] = lane + 32 * i < experts ? expf(p[i] - largest) : -1.f;
    if (p[i] > 0.f) sum += p[i];
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, m);

  float chosen[2];
  int ids[2];
  for (int k = 0; k < 2; ++k) {
    float best = p[0];
    int best_id = lane;
#pragma unroll
    for (int i = 1; i < EXPERTS_PER_LANE; ++i) {
      if (p[i] > best) {
        best = p[i];
        best_id = lane + 32 * i;
      }
    }
    for (int m = 16; m > 0; m >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best, m);
      const int other_id = __shfl_xor_sync(0xffffffffu, best_id, m);
      if (other > best || (other == best && other_id < best_id)) {
        best = other;
        best_id = other_id;
      }
    }
    chosen[k] = best / sum;
    ids[k] = best_id;
#pragma unroll
    for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
      if (lane + 32 * i == best_id) p[i] = -1.f;
    }
  }

  if (lane < 2) {
    topk_weights[token * 2 + lane] = chosen[lane] / (chosen[0] + chosen[1]);
    topk_ids[token * 2 + lane] = ids[lane];
  }
}

void moe_topk_gating(const float* logits, float* topk_weights, int* topk_ids, int tokens, int experts,
                     cudaStream_t stream) {
  assert(experts >= 2 && experts <= 32 * EXPERTS_PER_LANE);
  const int warps = 4;
  topk_gating<<<(tokens + warps - 1) / warps, 32 * warps, 0, stream>>>(logits, topk_weights, topk_ids, tokens, experts);
}
