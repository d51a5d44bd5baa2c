#include <cassert>

#include <cuda_runtime.h>

constexpr int kBlockSize = 16;  // tokens of a page
constexpr int kWarps = 4;
constexpr int kHeadDim = 64;

// One query a sequence. Pages of the cache are found through the block table; warps take tokens in turn.
__global__ void paged_attention_kernel(float* __restrict__ out,              // [num_seqs, num_heads, head_dim]
                                       const float* __restrict__ q,          // [num_seqs, num_heads, head_dim]
                                       const float* __restrict__ k_cache,    // [num_blocks, 16, num_kv_heads, head_dim]
                                       const float* __restrict__ v_cache,    // [num_blocks, 16, num_kv_heads, head_dim]
                                       const int* __restrict__ block_tables,  // [num_seqs, max_blocks], < num_blocks
                                       const int* __restrict__ context_lens,  // [num_seqs]
                                       int num_heads, int num_kv_heads, int max_blocks, float scale) {
  __shared__ float warp_out[kWarps][kHeadDim];
  __shared__ float warp_max[kWarps];
  __shared__ float warp_sum[kWarps];

  const int head = blockIdx.x;
  const int seq = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int kv_head = head / (num_heads / num_kv_heads);
  const int context = min(context_lens[seq], max_blocks * kBlockSize);
  const int* table = block_tables + seq * max_blocks;

  const float2* q2 = reinterpret_cast<const float2*>(q + (seq * num_heads + head) * kHeadDim);
  const float2 query = q2[lane];

  float m = -INFINITY, l = 0.f;
  float2 acc = make_float2(0.f, 0.f);
  for (int token = warp; token < context; token += kWarps) {
    const int page = table[token / kBlockSize];
    const size_t row = ((size_t)page * kBlockSize + token % kBlockSize) * num_kv_heads + kv_head;
    const float2 key = reinterpret_cast<const float2*>(k_cache + row * kHeadDim)[lane];
    float s = query.x * key.x + query.y * key.y;
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) s += __shfl_xor_sync(0xffffffff, s, mask);
    s *= scale;

    const float m_new = fmaxf(m, s);
    const float old = __expf(m - m_new);
    const float p = __expf(s - m_new);
    const float2 value = reinterpret_cast<const float2*>(v_cache + row * kHeadDim)[lane];
    acc.x = acc.x * old + p * value.x;
    acc.y = acc.y * old + p * value.y;
    l = l * old + p;
    m = m_new;
  }

  warp_out[warp][2 * lane] = acc.x;
  warp_out[warp][2 * lane + 1] = acc.y;
  if (lane == 0) {
    warp_max[warp] = m;
    warp_sum[warp] = l;
  }
  __syncthreads();

  if (threadIdx.x < kHeadDim) {
    float largest = -INFINITY;
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, warp_max[w]);
    float sum = 0.f, total = 0.f;
    for (int w = 0; w < kWarps; ++w) {
      if (warp_sum[w] > 0.f) {
        const float weight = __expf(warp_max[w] - largest);
        sum += weight * warp_sum[w];
        total += weight * warp_out[w][threadIdx.x];
      }
    }
    out[(seq * num_heads + head) * kHeadDim + threadIdx.x] = sum > 0.f ? total / sum : 0.f;
  }
}

void paged_attention(float* out, const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                     const int* context_lens, int num_seqs, int num_heads, int num_kv_heads, int head_dim,
                     int num_blocks, int max_blocks) {
  assert(head_dim == kHeadDim && num_blocks > 0);
  assert(num_heads % num_kv_heads == 0);
  dim3 grid(num_heads, num_seqs);
  paged_attention_kernel<<<grid, kWarps * 32>>>(out, q, k_cache, v_cache, block_tables, context_lens, num_heads,
                                                num_kv_heads, max_blocks, 0.125f);
}
