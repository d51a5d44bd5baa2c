#include <cassert>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
struct Convert;

template <>
struct Convert<float> {
  static __device__ __forceinline__ float load(float v) { return v; }
  static __device__ __forceinline__ float store(float v) { return v; }
};

template <>
struct Convert<__half> {
  static __device__ __forceinline__ float load(__half v) { return __half2float(v); }
  static __device__ __forceinline__ __half store(float v) { return __float2half_rn(v); }
};

// Each head of each token is normalised by itself: a warp a head, several warps a block.
template <typename T, int BLOCK, int HEAD_DIM>
__global__ void __launch_bounds__(BLOCK) head_norm_kernel(T* __restrict__ qk,            // [tokens, heads, head_dim]
                                                          const T* __restrict__ weight,  // [head_dim]
                                                          int total_heads, float eps) {
  static_assert(HEAD_DIM % 32 == 0, "a warp covers a head");
  constexpr int kPerLane = HEAD_DIM / 32;
  constexpr int kWarps = BLOCK / 32;
  const int head = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (head >= total_heads) return;

  T* row = qk + static_cast<int64_t>(head) * HEAD_DIM;
  float v[kPerLane];
  float square = 0.f;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    v[i] = Convert<T>::load(row[lane + 32 * i]);
    square += v[i] * v[i];
  }
#pragma unroll
  for (int m = 16; m > 0; m >>= 1) square += __shfl_xor_sync(0xffffffff, square, m);
  const float scale = rsqrtf(square / HEAD_DIM + eps);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    row[lane + 32 * i] = Convert<T>::store(v[i] * scale * Convert<T>::load(weight[lane + 32 * i]));
  }
}

void head_norm(__half* qk, const __half* weight, int tokens, int heads, int head_dim, cudaStream_t stream) {
  assert(head_dim == 64);
  constexpr int kBlock = 128;
  const int total_heads = tokens * heads;
  head_norm_kernel<__half, kBlock, 64>
      <<<(total_heads + kBlock / 32 - 1) / (kBlock / 32), kBlock, 0, stream>>>(qk, weight, total_heads, 1e-6f);
}
