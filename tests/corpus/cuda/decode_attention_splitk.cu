#include <cassert>
#include <cmath>

#include <cuda_runtime.h>

#define SPLIT 64  // keys of a block
#define D 64

// One query a head. Each block sees SPLIT keys and leaves its sum, its maximum and its unscaled output behind.
__global__ void decode_partial(const float* __restrict__ q,    // [heads, head_dim]
                               const float* __restrict__ k,    // [kv_heads, length, head_dim]
                               const float* __restrict__ v,    // [kv_heads, length, head_dim]
                               float* __restrict__ part_out,   // [heads, splits, head_dim]
                               float* __restrict__ part_max,   // [heads, splits]
                               float* __restrict__ part_sum,   // [heads, splits]
                               int length, int group, float scale) {
  __shared__ float q_s[D];
  __shared__ float p_s[SPLIT];
  const int split = blockIdx.x, splits = gridDim.x, head = blockIdx.y;
  const int kv_head = head / group;
  const int tid = threadIdx.x;
  const int first = split * SPLIT;
  const int count = min(SPLIT, length - first);
  const float* k_rows = k + ((size_t)kv_head * length + first) * D;
  const float* v_rows = v + ((size_t)kv_head * length + first) * D;

  q_s[tid] = q[head * D + tid] * scale;
  __syncthreads();

  float score = -INFINITY;
  if (tid < count) {
    score = 0.f;
    for (int d = 0; d < D; ++d) score += q_s[d] * k_rows[tid * D + d];
  }
  p_s[tid] = score;
  __syncthreads();

  float largest = -INFINITY;
  for (int j = 0; j < count; ++j) largest = fmaxf(largest, p_s[j]);
  float sum = 0.f, out = 0.f;
  for (int j = 0; j < count; ++j) {
    float p = expf(p_s[j] - largest);
    sum += p;
    out += p * v_rows[j * D + tid];
  }

  const int slot = head * splits + split;
  part_out[slot * D + tid] = out;
  if (tid == 0) {
    part_max[slot] = largest;
    part_sum[slot] = sum;
  }
}

__global__ void decode_merge(const float* __restrict__ part_out,  // [heads, splits, head_dim]
                             const float* __restrict__ part_max,  // [heads, splits]
                             const float* __restrict__ part_sum,  // [heads, splits]
                             float* __restrict__ out,             // [heads, head_dim]
                             int splits) {
  const int head = blockIdx.x, d = threadIdx.x;
  float largest = -INFINITY;
  for (int s = 0; s < splits; ++s) largest = fmaxf(largest, part_max[head * splits + s]);
  float sum = 0.f, acc = 0.f;
  for (int s = 0; s < splits; ++s) {
    const float w = expf(part_max[head * splits + s] - largest);
    sum += w * part_sum[head * splits + s];
    acc += w * part_out[(head * splits + s) * D + d];
  }
  out[head * D + d] = acc / sum;
}

void decode_attention(const float* q, const float* k, const float* v, float* out, float* part_out, float* part_max,
                      float* part_sum, int heads, int kv_heads, int length, int head_dim, cudaStream_t stream) {
  assert(head_dim == D);
  assert(heads % kv_heads == 0);
  int splits = (length + SPLIT - 1) / SPLIT;
  decode_partial<<<dim3(splits, heads), D, 0, stream>>>(q, k, v, part_out, part_max, part_sum, length,
                                                        heads / kv_heads, 1.f / sqrtf((float)head_dim));
  decode_merge<<<heads, D, 0, stream>>>(part_out, part_max, part_sum, out, splits);
}
