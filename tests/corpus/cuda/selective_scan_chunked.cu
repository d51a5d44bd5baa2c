#include <cuda_runtime.h>
#include <assert.h>

#define LOG2E 1.44269504f

// A step of the recurrence is the pair (a, b) of h = a h + b; steps are put together from the left.
__device__ __forceinline__ float2 ssm_op(float2 x, float2 y) { return make_float2(y.x * x.x, y.x * x.y + y.y); }
template <int kNThreads, int kNItems, bool kDeltaSoftplus>
__global__ void selective_scan_fwd_kernel(const float* __restrict__ u, const float* __restrict__ delta, const float* __restrict__ A_log, const float* __restrict__ B, const float* __restrict__ C, const float* __restrict__ D, const float* __restrict__ z, float* __restrict__ out, int dim, int dstate, int seqlen) {
  __shared__ float2 warp_tot[kNThreads / 32];
  __shared__ float2 running[16];
  const int batch_id = blockIdx.x, dim_id = blockIdx.y;
  const float* u_row = u + (batch_id * dim + dim_id) * seqlen;
  const float* d_row = delta + (batch_id * dim + dim_id) * seqlen;
  const float* z_row = z + (batch_id * dim + dim_id) * seqlen;
  float* o_row = out + (batch_id * dim + dim_id) * seqlen;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < dstate) running[threadIdx.x] = make_float2(1.f, 0.f);
  __syncthreads();
  for (int chunk = 0; chunk < seqlen; chunk += kNThreads * kNItems) {
    float uv[kNItems], dv[kNItems], ov[kNItems];
#pragma unroll
    for (int i = 0; i < kNItems; ++i) {
      int t = chunk + threadIdx.x * kNItems + i;
      uv[i] = t < seqlen ? u_row[t] : 0.f;
      float x = t < seqlen ? d_row[t] : 0.f;
      if constexpr (kDeltaSoftplus) { x = x <= 20.f ? log1pf(expf(x)) : x; }
      dv[i] = t < seqlen ? x : 0.f;
      ov[i] = D[dim_id] * uv[i];
    }
    for (int s = 0; s < dstate; ++s) {
      const float a2 = -expf(A_log[dim_id * dstate + s]) * LOG2E;
      float2 items[kNItems];
      float2 acc = make_float2(1.f, 0.f);
#pragma unroll
      for (int i = 0; i < kNItems; ++i) {
        int t = chunk + threadIdx.x * kNItems + i;
        float bv = t < seqlen ? B[(batch_id * dstate + s) * seqlen + t] : 0.f;
        items[i] = make_float2(exp2f(dv[i] * a2), dv[i] * uv[i] * bv);
        acc = ssm_op(acc, items[i]);
      }
      float2 incl = acc;
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        float px = __shfl_up_sync(0xffffffffu, incl.x, o), py = __shfl_up_sync(0xffffffffu, incl.y, o);
        if (lane >= o) incl = ssm_op(make_float2(px, py), incl);
      }
      if (lane == 31) warp_tot[warp] = incl;
      __syncthreads();
      float2 before = running[s];
      for (int w = 0; w < warp; ++w) before = ssm_op(before, warp_tot[w]);
      float ex = __shfl_up_sync(0xffffffffu, incl.x, 1), ey = __shfl_up_sync(0xffffffffu, incl.y, 1);
      if (lane > 0) before = ssm_op(before, make_float2(ex, ey));
#pragma unroll
      for (int i = 0; i < kNItems; ++i) {
        int t = chunk + threadIdx.x * kNItems + i;
        before = ssm_op(before, items[i]);
        float cv = t < seqlen ? C[(batch_id * dstate + s) * seqlen + t] : 0.f;
        ov[i] += before.y * cv;
      }
      __syncthreads();
      if (threadIdx.x == kNThreads - 1) running[s] = before;
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kNItems; ++i) {
      int t = chunk + threadIdx.x * kNItems + i;
      if (t < seqlen) { float zv = z_row[t]; o_row[t] = ov[i] * zv / (1.f + expf(-zv)); }
    }
  }
}
void selective_scan(const float* u, const float* delta, const float* A_log, const float* B, const float* C, const float* D, const float* z, float* out, int batch, int dim, int dstate, int seqlen) {
  assert(dstate <= 16);
  selective_scan_fwd_kernel<64, 4, true><<<dim3(batch, dim), 64>>>(u, delta, A_log, B, C, D, z, out, dim, dstate, seqlen);
}
