// Attention, the plain way: one thread per query, scores computed twice, everything from global memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

template <int D, bool kCausal>
__global__ void attention_naive(const __half* __restrict__ q, const __half* __restrict__ k,
                                const __half* __restrict__ v, __half* __restrict__ o, int length, float scale) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= length) return;

  const size_t head = static_cast<size_t>(blockIdx.y) * length * D;
  const int keys = kCausal ? row + 1 : length;

  float peak = -CUDART_INF_F;
  for (int key = 0; key < keys; ++key) {
    float score = 0.0f;
    for (int d = 0; d < D; ++d) {
      score += __half2float(q[head + row * D + d]) * __half2float(k[head + key * D + d]);
    }
    peak = fmaxf(peak, score * scale);
  }

  float sum = 0.0f;
  float acc[D] = {};
  for (int key = 0; key < keys; ++key) {
    float score = 0.0f;
    for (int d = 0; d < D; ++d) {
      score += __half2float(q[head + row * D + d]) * __half2float(k[head + key * D + d]);
    }
    const float weight = expf(score * scale - peak);
    sum += weight;
    for (int d = 0; d < D; ++d) {
      acc[d] += weight * __half2float(v[head + key * D + d]);
    }
  }

  for (int d = 0; d < D; ++d) {
    o[head + row * D + d] = __float2half_rn(acc[d] / sum);
  }
}

void launch_attention_naive(const __half* q, const __half* k, const __half* v, __half* o, int heads, int length,
                            float scale, cudaStream_t stream) {
  const dim3 grid((length + 127) / 128, heads);
  attention_naive<64, true><<<grid, 128, 0, stream>>>(q, k, v, o, length, scale);
}
