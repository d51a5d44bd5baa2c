#include <cassert>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

__global__ void residual_add_kernel(__nv_bfloat16* __restrict__ out,            // [rows, cols]
                                    const __nv_bfloat16* __restrict__ x,        // [rows, cols]
                                    const __nv_bfloat16* __restrict__ residual,  // [rows, cols]
                                    const __nv_bfloat16* __restrict__ bias,     // [cols]
                                    int rows, int cols) {
  const int pairs = cols / 2;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * pairs) return;

  const __nv_bfloat162 xv = reinterpret_cast<const __nv_bfloat162*>(x)[i];
  const __nv_bfloat162 rv = reinterpret_cast<const __nv_bfloat162*>(residual)[i];
  const __nv_bfloat162 bv = reinterpret_cast<const __nv_bfloat162*>(bias)[i % pairs];
  const float2 xf = __bfloat1622float2(xv);
  const float2 rf = __bfloat1622float2(rv);
  const float2 bf = __bfloat1622float2(bv);
  reinterpret_cast<__nv_bfloat162*>(out)[i] = __floats2bfloat162_rn(xf.x + rf.x + bf.x, xf.y + rf.y + bf.y);
}

void residual_add(__nv_bfloat16* out, const __nv_bfloat16* x, const __nv_bfloat16* residual, const __nv_bfloat16* bias,
                  int rows, int cols, cudaStream_t stream) {
  assert(cols % 2 == 0);
  const int total = rows * cols / 2;
  residual_add_kernel<<<(total + 255) / 256, 256, 0, stream>>>(out, x, residual, bias, rows, cols);
}
