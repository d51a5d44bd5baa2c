#include <cassert>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int BM = 32;
constexpr int BN = 32;
constexpr int BK = 16;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// 64 threads, each with a 4 x 4 piece of the 32 x 32 tile in registers; products are summed in float.
__global__ void __launch_bounds__(64) matmul_half(const __half* __restrict__ a,     // [m, k]
                                                  const __half* __restrict__ b,     // [n, k]
                                                  const __half* __restrict__ bias,  // [n]
                                                  __half* __restrict__ c,           // [m, n]
                                                  int m, int n, int k) {
  __shared__ __half a_tile[BK][BM + 2];
  __shared__ __half b_tile[BK][BN + 2];
  const int row0 = blockIdx.y * BM;
  const int col0 = blockIdx.x * BN;
  const int tr = (threadIdx.x / 8) * 4;
  const int tc = (threadIdx.x % 8) * 4;

  float acc[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += 64) {
      const int r = i / BK, kk = i % BK;
      const bool inside = k0 + kk < k;
      a_tile[kk][r] = inside && row0 + r < m ? a[(row0 + r) * k + k0 + kk] : __float2half(0.f);
      b_tile[kk][r] = inside && col0 + r < n ? b[(col0 + r) * k + k0 + kk] : __float2half(0.f);
    }
    __syncthreads();
    for (int kk = 0; kk < BK; ++kk) {
      float av[4], bv[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        av[i] = __half2float(a_tile[kk][tr + i]);
        bv[i] = __half2float(b_tile[kk][tc + i]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += av[i] * bv[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int r = row0 + tr + i, cc = col0 + tc + j;
      if (r < m && cc < n) c[r * n + cc] = __float2half(acc[i][j] + __half2float(bias[cc]));
    }
  }
}

}  // namespace

void linear_half(const __half* a, const __half* b, const __half* bias, __half* c, int m, int n, int k,
                 cudaStream_t stream) {
  matmul_half<<<dim3(ceil_div(n, BN), ceil_div(m, BM)), 64, 0, stream>>>(a, b, bias, c, m, n, k);
}
