// Softmax over long rows: maximum and sum in one pass (Milakov and Gimelshein, 2018), one block per row.
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

struct Running {
  float peak;  // largest value seen
  float sum;   // sum of exp(value - peak)
};

__device__ __forceinline__ Running merge(Running a, Running b) {
  const Running high = a.peak > b.peak ? a : b;
  const Running low = a.peak > b.peak ? b : a;
  if (low.sum == 0.0f) return high;
  return {high.peak, high.sum + low.sum * __expf(low.peak - high.peak)};
}

__device__ __forceinline__ Running warp_merge(Running r) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    r = merge(r, {__shfl_xor_sync(0xffffffffu, r.peak, offset), __shfl_xor_sync(0xffffffffu, r.sum, offset)});
  }
  return r;
}

__global__ void __launch_bounds__(kThreads)
softmax_online(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float peaks[kWarps];
  __shared__ float sums[kWarps];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const float* in = x + static_cast<size_t>(blockIdx.x) * n;
  float* out = y + static_cast<size_t>(blockIdx.x) * n;

  Running own = {-CUDART_INF_F, 0.0f};
#pragma unroll 4
  for (int c = threadIdx.x; c < n; c += kThreads) {
    const float value = __ldg(in + c);
    const float peak = fmaxf(own.peak, value);
    own.sum = own.sum * __expf(own.peak - peak) + __expf(value - peak);
    own.peak = peak;
  }

  own = warp_merge(own);
  if (lane == 0) {
    peaks[warp] = own.peak;
    sums[warp] = own.sum;
  }
  __syncthreads();
  own = lane < kWarps ? Running{peaks[lane], sums[lane]} : Running{-CUDART_INF_F, 0.0f};
  own = warp_merge(own);

  const float inverse = 1.0f / own.sum;
  for (int c = threadIdx.x; c < n; c += kThreads) {
    out[c] = __expf(in[c] - own.peak) * inverse;
  }
}

void launch_softmax_online(const float* x, float* y, int rows, int n, cudaStream_t stream) {
  softmax_online<<<rows, kThreads, 0, stream>>>(x, y, n);
}
