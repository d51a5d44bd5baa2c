#include <cassert>
#include <cstdint>

#include <cuda_runtime.h>

// A warp for each row of the matrix; four weights are read at once.
__global__ void matvec_int8(const int8_t* __restrict__ weight,  // [rows, cols]
                            const float* __restrict__ scale,    // [rows]
                            const float* __restrict__ x,        // [cols]
                            float* __restrict__ y,              // [rows]
                            int rows, int cols) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (row >= rows) return;

  const char4* w4 = reinterpret_cast<const char4*>(weight + (size_t)row * cols);
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float sum = 0.f;
  for (int i = lane; i < cols / 4; i += 32) {
    const char4 w = w4[i];
    const float4 v = x4[i];
    sum += w.x * v.x + w.y * v.y + w.z * v.z + w.w * v.w;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) y[row] = sum * scale[row];
}

void matvec_int8_forward(const int8_t* weight, const float* scale, const float* x, float* y, int rows, int cols) {
  assert(cols % 4 == 0);
  const int threads = 128;
  const int blocks = (rows * 32 + threads - 1) / threads;
  matvec_int8<<<blocks, threads>>>(weight, scale, x, y, rows, cols);
}
