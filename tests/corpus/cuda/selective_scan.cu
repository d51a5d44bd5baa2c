#include <cassert>

#include <cuda_runtime.h>

// h_t = exp(delta_t A) h_(t-1) + delta_t B_t u_t;  y_t = C_t h_t + D u_t. A thread keeps the state of one channel.
template <int STATE>
__global__ void selective_scan_kernel(const float* __restrict__ u,           // [batch, dim, len]
                                      const float* __restrict__ delta,       // [batch, dim, len]
                                      const float* __restrict__ A_log,       // [dim, state]
                                      const float* __restrict__ B,           // [batch, state, len]
                                      const float* __restrict__ C,           // [batch, state, len]
                                      const float* __restrict__ D_skip,      // [dim]
                                      const float* __restrict__ z,           // [batch, dim, len]
                                      const float* __restrict__ delta_bias,  // [dim]
                                      float* __restrict__ y,                 // [batch, dim, len]
                                      float* __restrict__ last_state,        // [batch, dim, state]
                                      int dim, int len) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  const int b = blockIdx.y;
  if (channel >= dim) return;

  float a[STATE], h[STATE];
#pragma unroll
  for (int s = 0; s < STATE; ++s) {
    a[s] = -expf(A_log[channel * STATE + s]);
    h[s] = 0.f;
  }

  const size_t row = ((size_t)b * dim + channel) * len;
  for (int t = 0; t < len; ++t) {
    float dt = delta[row + t] + delta_bias[channel];
    dt = dt > 20.f ? dt : log1pf(expf(dt));
    const float x = u[row + t];
    float sum = D_skip[channel] * x;
#pragma unroll
    for (int s = 0; s < STATE; ++s) {
      const size_t at = ((size_t)b * STATE + s) * len + t;
      h[s] = expf(dt * a[s]) * h[s] + dt * B[at] * x;
      sum += C[at] * h[s];
    }
    const float gate = z[row + t];
    y[row + t] = sum * gate / (1.f + expf(-gate));
  }
#pragma unroll
  for (int s = 0; s < STATE; ++s) last_state[((size_t)b * dim + channel) * STATE + s] = h[s];
}

void selective_scan(const float* u, const float* delta, const float* A_log, const float* B, const float* C,
                    const float* D_skip, const float* z, const float* delta_bias, float* y, float* last_state,
                    int batch, int dim, int len, int state, cudaStream_t stream) {
  assert(state == 16);
  dim3 grid((dim + 31) / 32, batch);
  selective_scan_kernel<16><<<grid, 32, 0, stream>>>(u, delta, A_log, B, C, D_skip, z, delta_bias, y, last_state, dim,
                                                     len);
}
