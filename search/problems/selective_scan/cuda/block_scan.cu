// Selective scan of a prompt, parallel over time: a block has one channel, its threads have one token each. A token is
// the map h -> a h + b; maps compose, so the states of 128 tokens are a scan of pairs (a, b).
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kState = 16;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ float softplus(float v) { return v > 20.0f ? v : log1pf(__expf(v)); }

__device__ __forceinline__ float2 compose(float2 first, float2 second) {
  return make_float2(first.x * second.x, second.x * first.y + second.y);
}

__device__ __forceinline__ float2 warp_scan(float2 pair, int lane) {
#pragma unroll
  for (int reach = 1; reach < 32; reach *= 2) {
    float2 before;
    before.x = __shfl_up_sync(0xffffffffu, pair.x, reach);
    before.y = __shfl_up_sync(0xffffffffu, pair.y, reach);
    if (lane >= reach) pair = compose(before, pair);
  }
  return pair;
}

__global__ void __launch_bounds__(kThreads)
selective_scan_block(const __half* __restrict__ x, const __half* __restrict__ dt, const float* __restrict__ A,
                     const __half* __restrict__ B, const __half* __restrict__ C, const float* __restrict__ D,
                     __half* __restrict__ y, float* __restrict__ last_state, int len, int dim) {
  __shared__ float2 totals[kState][kWarps];
  __shared__ float carried[kState];
  const int channel = blockIdx.x;
  const int b = blockIdx.y;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  if (threadIdx.x < kState) carried[threadIdx.x] = 0.0f;
  __syncthreads();

  for (int start = 0; start < len; start += kThreads) {
    const int t = start + threadIdx.x;
    const size_t row = static_cast<size_t>(b) * len + t;
    // Past the end a token changes nothing: a step of 0 is the map h -> h.
    const float value = t < len ? __half2float(x[row * dim + channel]) : 0.0f;
    const float step = t < len ? softplus(__half2float(dt[row * dim + channel])) : 0.0f;

    float2 own[kState];
#pragma unroll
    for (int s = 0; s < kState; ++s) {
      const float input = t < len ? step * value * __half2float(B[row * kState + s]) : 0.0f;
      own[s] = warp_scan(make_float2(__expf(step * A[channel * kState + s]), input), lane);
      if (lane == 31) totals[s][warp] = own[s];
    }
    __syncthreads();

    float sum = D[channel] * value;
    float after[kState];
#pragma unroll
    for (int s = 0; s < kState; ++s) {
      float before = carried[s];
      for (int w = 0; w < warp; ++w) before = totals[s][w].x * before + totals[s][w].y;
      after[s] = own[s].x * before + own[s].y;
      if (t < len) sum += after[s] * __half2float(C[row * kState + s]);
    }
    if (t < len) y[row * dim + channel] = __float2half(sum);
    __syncthreads();
    if (threadIdx.x == kThreads - 1) {
#pragma unroll
      for (int s = 0; s < kState; ++s) carried[s] = after[s];
    }
    __syncthreads();
  }
  if (threadIdx.x < kState) {
    last_state[(static_cast<size_t>(b) * dim + channel) * kState + threadIdx.x] = carried[threadIdx.x];
  }
}

void selective_scan_over_time(const __half* x, const __half* dt, const float* A, const __half* B, const __half* C,
                              const float* D, __half* y, float* last_state, int batch, int len, int dim,
                              cudaStream_t stream) {
  selective_scan_block<<<dim3(dim, batch), kThreads, 0, stream>>>(x, dt, A, B, C, D, y, last_state, len, dim);
}
