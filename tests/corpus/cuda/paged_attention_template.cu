// Attention of one query a sequence over a paged cache, with the types of vectors taken from a struct's specialisations.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <float.h>
#include <assert.h>
#define WARP_SIZE 32
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define DIVIDE_ROUND_UP(a, b) (((a) + (b)-1) / (b))
template <typename T, int VEC_SIZE> struct Vec {};
template <> struct Vec<float, 1> { using Type = float; };
template <> struct Vec<float, 2> { using Type = float2; };
template <> struct Vec<float, 4> { using Type = float4; };
inline __device__ float qk_dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
template <int NUM_WARPS>
inline __device__ float block_sum(float* red_smem, float sum) {
  int warp = threadIdx.x / WARP_SIZE;
  int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
  for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2) { sum += __shfl_xor_sync(uint32_t(-1), sum, mask); }
  if (lane == 0) { red_smem[warp] = sum; }
  __syncthreads();
  if (lane < NUM_WARPS) { sum = red_smem[lane]; }
#pragma unroll
  for (int mask = NUM_WARPS / 2; mask >= 1; mask /= 2) { sum += __shfl_xor_sync(uint32_t(-1), sum, mask); }
  return __shfl_sync(uint32_t(-1), sum, 0);
}
template <typename scalar_t, int HEAD_SIZE, int BLOCK_SIZE, int NUM_THREADS>
__global__ void paged_attention_vec_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ q, const scalar_t* __restrict__ k_cache, const scalar_t* __restrict__ v_cache, const int num_kv_heads, const float scale, const int* __restrict__ block_tables, const int* __restrict__ seq_lens, const int max_num_blocks_per_seq) {
  constexpr int NUM_WARPS = NUM_THREADS / WARP_SIZE;
  const int head_idx = blockIdx.x, num_heads = gridDim.x, seq_idx = blockIdx.y;
  const int seq_len = min(seq_lens[seq_idx] + 1, max_num_blocks_per_seq * BLOCK_SIZE);
  const int num_queries_per_kv = num_heads / num_kv_heads;
  const int kv_head_idx = head_idx / num_queries_per_kv;
  const int thread_idx = threadIdx.x, warp_idx = thread_idx / WARP_SIZE, lane = thread_idx % WARP_SIZE;
  using Q_vec = typename Vec<scalar_t, 4>::Type;
  extern __shared__ char shared_mem[];
  float* logits = reinterpret_cast<float*>(shared_mem);
  __shared__ float red_smem[2 * NUM_WARPS];
  __shared__ scalar_t q_s[HEAD_SIZE];
  const scalar_t* q_ptr = q + (seq_idx * num_heads + head_idx) * HEAD_SIZE;
  for (int i = thread_idx; i < HEAD_SIZE; i += NUM_THREADS) q_s[i] = q_ptr[i];
  __syncthreads();
  const int* block_table = block_tables + seq_idx * max_num_blocks_per_seq;
  float qk_max = -FLT_MAX;
  for (int token = warp_idx; token < seq_len; token += NUM_WARPS) {
    const int64_t physical_block = static_cast<int64_t>(block_table[token / BLOCK_SIZE]);
    const scalar_t* k_ptr = k_cache + ((physical_block * BLOCK_SIZE + token % BLOCK_SIZE) * num_kv_heads + kv_head_idx) * HEAD_SIZE;
    float qk = 0.f;
    for (int d = lane * 4; d < HEAD_SIZE; d += WARP_SIZE * 4) {
      qk += qk_dot(*reinterpret_cast<const Q_vec*>(&q_s[d]), *reinterpret_cast<const Q_vec*>(k_ptr + d));
    }
#pragma unroll
    for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2) qk += __shfl_xor_sync(uint32_t(-1), qk, mask);
    qk *= scale;
    if (lane == 0) logits[token] = qk;
    qk_max = fmaxf(qk_max, qk);
  }
  if (lane == 0) red_smem[warp_idx] = qk_max;
  __syncthreads();
  qk_max = lane < NUM_WARPS ? red_smem[lane] : -FLT_MAX;
#pragma unroll
  for (int mask = NUM_WARPS / 2; mask >= 1; mask /= 2) qk_max = fmaxf(qk_max, __shfl_xor_sync(uint32_t(-1), qk_max, mask));
  qk_max = __shfl_sync(uint32_t(-1), qk_max, 0);
  float exp_sum = 0.f;
  for (int i = thread_idx; i < seq_len; i += NUM_THREADS) { float val = __expf(logits[i] - qk_max); logits[i] = val; exp_sum += val; }
  exp_sum = block_sum<NUM_WARPS>(&red_smem[NUM_WARPS], exp_sum);
  const float inv_sum = __fdividef(1.f, exp_sum + 1e-6f);
  for (int i = thread_idx; i < seq_len; i += NUM_THREADS) { logits[i] *= inv_sum; }
  __syncthreads();
  for (int d = thread_idx; d < HEAD_SIZE; d += NUM_THREADS) {
    float acc = 0.f;
    for (int token = 0; token < seq_len; ++token) {
      const int64_t physical_block = block_table[token / BLOCK_SIZE];
      acc += logits[token] * v_cache[((physical_block * BLOCK_SIZE + token % BLOCK_SIZE) * num_kv_heads + kv_head_idx) * HEAD_SIZE + d];
    }
    out[(seq_idx * num_heads + head_idx) * HEAD_SIZE + d] = acc;
  }
}
void paged_attention_vec(float* out,               // [num_seqs, num_heads, 64]
                         const float* q,           // [num_seqs, num_heads, 64]
                         const float* k_cache,     // [num_blocks, 16, num_kv_heads, 64]
                         const float* v_cache,     // [num_blocks, 16, num_kv_heads, 64]
                         const int* block_tables,  // [num_seqs, max_blocks], < num_blocks
                         const int* seq_lens,      // [num_seqs]
                         int num_seqs, int num_heads, int num_kv_heads, int max_blocks, int num_blocks, float scale) {
  assert(num_heads % num_kv_heads == 0);
  int shared_mem_size = max_blocks * 16 * sizeof(float);
  dim3 grid(num_heads, num_seqs, 1);
  dim3 block(128);
  paged_attention_vec_kernel<float, 64, 16, 128><<<grid, block, shared_mem_size>>>(out, q, k_cache, v_cache, num_kv_heads, scale, block_tables, seq_lens, max_blocks);
}
