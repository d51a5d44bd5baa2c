// A matrix of 4-bit weights times a vector; weights become halves two at a time.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <assert.h>
__device__ __forceinline__ void unpack8(unsigned int packed, half2* out, half2 scale, half2 zero) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int lo = packed & 0xF, hi = (packed >> 4) & 0xF;
        packed >>= 8;
        half2 q = __halves2half2(__int2half_rn(lo), __int2half_rn(hi));
        out[i] = __hmul2(__hsub2(q, zero), scale);
    }
}
__global__ void gemv_int4(const unsigned int* __restrict__ qweight,  // [n, k / 8]
                          const half* __restrict__ scales,           // [n, k / group]
                          const half* __restrict__ zeros,            // [n, k / group]
                          const half* __restrict__ x,                // [k]
                          half* __restrict__ y,                      // [n]
                          int n, int k, int group) {
    int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= n) return;
    float acc = 0.f;
    for (int c = threadIdx.x; c < k / 8; c += 32) {
        half2 w[4];
        int g = c * 8 / group;
        half2 s = __half2half2(scales[row * (k / group) + g]);
        half2 z = __half2half2(zeros[row * (k / group) + g]);
        unpack8(qweight[row * (k / 8) + c], w, s, z);
        const half2* x2 = reinterpret_cast<const half2*>(x + c * 8);
        half2 part = __float2half2_rn(0.f);
#pragma unroll
        for (int i = 0; i < 4; ++i) part = __hfma2(w[i], x2[i], part);
        float2 f = __half22float2(part);
        acc += f.x + f.y;
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
    if (threadIdx.x == 0) y[row] = __float2half(acc);
}
void gemv(const unsigned int* qweight, const half* scales, const half* zeros, const half* x, half* y, int n, int k, int group) {
    assert(k % group == 0 && group % 8 == 0);
    gemv_int4<<<(n + 3) / 4, dim3(32, 4)>>>(qweight, scales, zeros, x, y, n, k, group);
}
