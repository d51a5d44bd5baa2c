#include <cassert>

#include <cuda_runtime.h>

// y[t] = silu(bias + sum over k of w[k] x[t - (WIDTH - 1) + k]), with zeros before the beginning.
template <int WIDTH, int THREADS>
__global__ void causal_conv1d_kernel(const float* __restrict__ x,       // [batch, dim, len]
                                     const float* __restrict__ weight,  // [dim, width]
                                     const float* __restrict__ bias,    // [dim]
                                     float* __restrict__ out,           // [batch, dim, len]
                                     int dim, int len) {
  __shared__ float window[THREADS + WIDTH - 1];
  const int channel = blockIdx.x;
  const size_t row = ((size_t)blockIdx.y * dim + channel) * len;
  const int tid = threadIdx.x;

  float w[WIDTH];
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) w[k] = weight[channel * WIDTH + k];
  const float b = bias[channel];

  if (tid < WIDTH - 1) window[tid] = 0.f;
  for (int start = 0; start < len; start += THREADS) {
    const int t = start + tid;
    window[WIDTH - 1 + tid] = t < len ? x[row + t] : 0.f;
    __syncthreads();

    float sum = b;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) sum += w[k] * window[tid + k];
    if (t < len) out[row + t] = sum / (1.f + expf(-sum));

    float kept = 0.f;
    if (tid < WIDTH - 1) kept = window[THREADS + tid];
    __syncthreads();
    if (tid < WIDTH - 1) window[tid] = kept;
  }
}

void causal_conv1d_fwd(const float* x, const float* weight, const float* bias, float* out, int batch, int dim, int len,
                       int width, cudaStream_t stream) {
  assert(width == 4);
  constexpr int kThreads = 64;
  dim3 grid(dim, batch);
  causal_conv1d_kernel<4, kThreads><<<grid, kThreads, 0, stream>>>(x, weight, bias, out, dim, len);
}
