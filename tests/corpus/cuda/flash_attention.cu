#include <cassert>
#include <cmath>

#include <cuda_runtime.h>

#define ROWS 16  // queries of a block
#define KEYS 32  // keys of a tile, one a lane
#define WARPS 4

// Causal attention in one pass over the keys: a running maximum and sum for each query, kept by its warp.
template <int HEAD_DIM>
__global__ void __launch_bounds__(32 * WARPS)
    flash_attention(const float* __restrict__ q,  // [batch_heads, seq, head_dim]
                    const float* __restrict__ k,  // [batch_heads, seq, head_dim]
                    const float* __restrict__ v,  // [batch_heads, seq, head_dim]
                    float* __restrict__ o,        // [batch_heads, seq, head_dim]
                    int seq, float scale_log2) {
  constexpr int PER_WARP = ROWS / WARPS;
  constexpr int PER_LANE = HEAD_DIM / 32;
  extern __shared__ float smem[];
  float* q_tile = smem;                          // ROWS x HEAD_DIM
  float* k_tile = q_tile + ROWS * HEAD_DIM;      // KEYS x (HEAD_DIM + 1): a lane reads a row
  float* v_tile = k_tile + KEYS * (HEAD_DIM + 1);  // KEYS x HEAD_DIM

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int first = blockIdx.x * ROWS;
  const size_t base = (size_t)blockIdx.y * seq * HEAD_DIM;

  for (int i = threadIdx.x; i < ROWS * HEAD_DIM; i += blockDim.x) {
    int row = first + i / HEAD_DIM;
    q_tile[i] = row < seq ? q[base + (size_t)row * HEAD_DIM + i % HEAD_DIM] * scale_log2 : 0.f;
  }

  float m[PER_WARP], l[PER_WARP], acc[PER_WARP][PER_LANE];
#pragma unroll
  for (int r = 0; r < PER_WARP; ++r) {
    m[r] = -INFINITY;
    l[r] = 0.f;
#pragma unroll
    for (int d = 0; d < PER_LANE; ++d) acc[r][d] = 0.f;
  }

  const int last = min(first + ROWS, seq);
  for (int start = 0; start < last; start += KEYS) {
    __syncthreads();  // the tile before is used up
    for (int i = threadIdx.x; i < KEYS * HEAD_DIM; i += blockDim.x) {
      int key = i / HEAD_DIM, d = i % HEAD_DIM;
      bool inside = start + key < seq;
      k_tile[key * (HEAD_DIM + 1) + d] = inside ? k[base + (size_t)(start + key) * HEAD_DIM + d] : 0.f;
      v_tile[key * HEAD_DIM + d] = inside ? v[base + (size_t)(start + key) * HEAD_DIM + d] : 0.f;
    }
    __syncthreads();

#pragma unroll
    for (int r = 0; r < PER_WARP; ++r) {
      const int row = warp * PER_WARP + r;
      float s = 0.f;
#pragma unroll 8
      for (int d = 0; d < HEAD_DIM; ++d) s += q_tile[row * HEAD_DIM + d] * k_tile[lane * (HEAD_DIM + 1) + d];
      if (start + lane > first + row) s = -INFINITY;

      float tile_max = s;
      for (int x = 16; x > 0; x >>= 1) tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, x));
      const float m_new = fmaxf(m[r], tile_max);
      const float correction = exp2f(m[r] - m_new);
      const float p = exp2f(s - m_new);
      float p_sum = p;
      for (int x = 16; x > 0; x >>= 1) p_sum += __shfl_xor_sync(0xffffffff, p_sum, x);
      l[r] = l[r] * correction + p_sum;
      m[r] = m_new;

#pragma unroll
      for (int d = 0; d < PER_LANE; ++d) acc[r][d] *= correction;
      for (int key = 0; key < KEYS; ++key) {
        const float weight = __shfl_sync(0xffffffff, p, key);
#pragma unroll
        for (int d = 0; d < PER_LANE; ++d) acc[r][d] += weight * v_tile[key * HEAD_DIM + lane + 32 * d];
      }
    }
  }

#pragma unroll
  for (int r = 0; r < PER_WARP; ++r) {
    const int row = first + warp * PER_WARP + r;
    if (row < seq) {
#pragma unroll
      for (int d = 0; d < PER_LANE; ++d) o[base + (size_t)row * HEAD_DIM + lane + 32 * d] = acc[r][d] / l[r];
    }
  }
}

void flash_attention_forward(const float* q, const float* k, const float* v, float* o, int batch_heads, int seq,
                             int head_dim, cudaStream_t stream) {
  assert(head_dim == 64);
  const float scale_log2 = 1.44269504f / sqrtf(64.f);
  const size_t shared = (ROWS * 64 + KEYS * 65 + KEYS * 64) * sizeof(float);
  dim3 grid((seq + ROWS - 1) / ROWS, batch_heads);
  flash_attention<64><<<grid, 32 * WARPS, shared, stream>>>(q, k, v, o, seq, scale_log2);
}
