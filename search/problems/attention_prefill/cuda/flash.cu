// Flash attention, forward: four warps share tiles of 32 keys, each warp owns four query rows.
// Lane j of a warp scores key j of the tile; the maximum and sum run along, so scores never leave registers.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int kWarps = 4;
constexpr int kRows = 4;   // query rows of one warp
constexpr int kTile = 32;  // keys of one tile: one for each lane
constexpr float kLog2e = 1.44269504088896f;

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, mask);
  }
  return value;
}

// Starts copying one tile of V (asynchronously) into its half of the double buffer. Rows past the end become zero.
template <int D>
__device__ void fetch_values(float (*v_tile)[D], const float* v, int start, int length) {
  for (int i = threadIdx.x; i < kTile * D / 4; i += kWarps * 32) {
    const int key = i / (D / 4);
    const int d = i % (D / 4) * 4;
    if (start + key < length) {
      __pipeline_memcpy_async(&v_tile[key][d], v + static_cast<size_t>(start + key) * D + d, sizeof(float4));
    } else {
      *reinterpret_cast<float4*>(&v_tile[key][d]) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }
  __pipeline_commit();
}

template <int D, bool kCausal>
__global__ void __launch_bounds__(kWarps * 32)
attention_flash(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                float* __restrict__ o, int length, float scale) {
  constexpr int kOwn = D / 32;  // output columns of one lane
  __shared__ float q_tile[kWarps][kRows][D];
  __shared__ float k_tile[D][kTile + 1];  // transposed; the extra column keeps the transposing stores off one bank
  __shared__ alignas(16) float v_tile[2][kTile][D];

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int block_row = blockIdx.x * kWarps * kRows;
  const int first_row = block_row + warp * kRows;
  const size_t head = static_cast<size_t>(blockIdx.y) * length * D;
  q += head;
  k += head;
  v += head;
  o += head;

  // log2(e) goes into the scale once, so that every exponential is a plain exp2.
  const float fold = scale * kLog2e;
  for (int r = 0; r < kRows; ++r) {
    const int row = min(first_row + r, length - 1);
    for (int d = lane; d < D; d += 32) q_tile[warp][r][d] = q[static_cast<size_t>(row) * D + d] * fold;
  }

  float acc[kRows][kOwn] = {};
  float peak[kRows], sum[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    peak[r] = -CUDART_INF_F;
    sum[r] = 0.0f;
  }

  const int keys = kCausal ? min(length, block_row + kWarps * kRows) : length;
  int buffer = 0;
  fetch_values<D>(v_tile[0], v, 0, length);

  for (int start = 0; start < keys; start += kTile) {
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * D / 4; i += kWarps * 32) {
      const int key = i / (D / 4);
      const int d = i % (D / 4) * 4;
      float4 part = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (start + key < length) {
        part = *reinterpret_cast<const float4*>(k + static_cast<size_t>(start + key) * D + d);
      }
      k_tile[d][key] = part.x;
      k_tile[d + 1][key] = part.y;
      k_tile[d + 2][key] = part.z;
      k_tile[d + 3][key] = part.w;
    }
    if (start + kTile < keys) {
      fetch_values<D>(v_tile[buffer ^ 1], v, start + kTile, length);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();

    float score[kRows] = {};
#pragma unroll 8
    for (int d = 0; d < D; ++d) {
      const float key_part = k_tile[d][lane];
#pragma unroll
      for (int r = 0; r < kRows; ++r) score[r] += q_tile[warp][r][d] * key_part;
    }

#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int seen = kCausal ? min(first_row + r + 1, length) : length;
      const float masked = start + lane < seen ? score[r] : -CUDART_INF_F;
      const float grown = fmaxf(peak[r], warp_max(masked));
      const float shrink = exp2f(peak[r] - grown);
      score[r] = exp2f(masked - grown);
      sum[r] = sum[r] * shrink + score[r];
      peak[r] = grown;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) acc[r][i] *= shrink;
    }

    for (int key = 0; key < kTile; ++key) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float weight = __shfl_sync(0xffffffffu, score[r], key);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) acc[r][i] += weight * v_tile[buffer][key][lane + 32 * i];
      }
    }
    buffer ^= 1;
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float inverse = 1.0f / warp_sum(sum[r]);
    if (first_row + r < length) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        o[static_cast<size_t>(first_row + r) * D + lane + 32 * i] = acc[r][i] * inverse;
      }
    }
  }
}

void launch_attention_flash(const float* q, const float* k, const float* v, float* o, int heads, int length,
                            float scale, cudaStream_t stream) {
  const dim3 grid((length + kWarps * kRows - 1) / (kWarps * kRows), heads);
  attention_flash<64, true><<<grid, kWarps * 32, 0, stream>>>(q, k, v, o, length, scale);
}
