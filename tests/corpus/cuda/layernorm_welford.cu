#include <cuda_runtime.h>

struct Moments {
  float mean;
  float m2;
  float count;
};

__device__ __forceinline__ Moments combine(const Moments& a, const Moments& b) {
  Moments r;
  r.count = a.count + b.count;
  if (r.count == 0.f) return a;
  float delta = b.mean - a.mean;
  float share = b.count / r.count;
  r.mean = a.mean + delta * share;
  r.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
  return r;
}

__device__ __forceinline__ Moments warp_combine(Moments v) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    Moments other;
    other.mean = __shfl_down_sync(0xffffffffu, v.mean, offset);
    other.m2 = __shfl_down_sync(0xffffffffu, v.m2, offset);
    other.count = __shfl_down_sync(0xffffffffu, v.count, offset);
    v = combine(v, other);
  }
  return v;
}

__global__ void layernorm_kernel(const float* __restrict__ x,      // [rows, hidden]
                                 const float* __restrict__ gamma,  // [hidden]
                                 const float* __restrict__ beta,   // [hidden]
                                 float* __restrict__ y,            // [rows, hidden]
                                 float* __restrict__ mean_out,     // [rows]
                                 float* __restrict__ rstd_out,     // [rows]
                                 int hidden, float eps) {
  __shared__ Moments warps[4];
  __shared__ float s_mean, s_rstd;
  const int row = blockIdx.x;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  x += row * hidden;
  y += row * hidden;

  Moments v = {0.f, 0.f, 0.f};
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    v.count += 1.f;
    float delta = x[i] - v.mean;
    v.mean += delta / v.count;
    v.m2 += delta * (x[i] - v.mean);
  }
  v = warp_combine(v);
  if (lane == 0) warps[warp] = v;
  __syncthreads();

  if (threadIdx.x == 0) {
    Moments all = warps[0];
    for (int w = 1; w < 4; ++w) all = combine(all, warps[w]);
    s_mean = all.mean;
    s_rstd = rsqrtf(all.m2 / hidden + eps);
    mean_out[row] = s_mean;
    rstd_out[row] = s_rstd;
  }
  __syncthreads();

  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    y[i] = (x[i] - s_mean) * s_rstd * gamma[i] + beta[i];
  }
}

void layernorm_forward(const float* x, const float* gamma, const float* beta, float* y, float* mean, float* rstd,
                       int rows, int hidden) {
  layernorm_kernel<<<rows, 128>>>(x, gamma, beta, y, mean, rstd, hidden, 1e-5f);
}
