#include <cassert>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define GROUP 32

// Eight weights of four bits in a word, the first in the lowest bits; a scale and a zero for each group of 32.
__global__ void matvec_int4(const uint32_t* __restrict__ packed,  // [rows, cols / 8]
                            const __half* __restrict__ scales,    // [rows, cols / 32]
                            const __half* __restrict__ zeros,     // [rows, cols / 32]
                            const __half* __restrict__ x,         // [cols]
                            float* __restrict__ y,                // [rows]
                            int rows, int cols) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int words = cols / 8;
  const int groups = cols / GROUP;

  float sum = 0.f;
  for (int w = threadIdx.x; w < words; w += 32) {
    const uint32_t bits = packed[row * words + w];
    const int group = w / (GROUP / 8);
    const float scale = __half2float(scales[row * groups + group]);
    const float zero = __half2float(zeros[row * groups + group]);
    float dot = 0.f, total = 0.f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float v = __half2float(x[8 * w + i]);
      dot += static_cast<float>((bits >> (4 * i)) & 0xF) * v;
      total += v;
    }
    sum += scale * (dot - zero * total);
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x == 0) y[row] = sum;
}

void matvec_int4_forward(const uint32_t* packed, const __half* scales, const __half* zeros, const __half* x, float* y,
                         int rows, int cols, cudaStream_t stream) {
  assert(cols % GROUP == 0);
  matvec_int4<<<(rows + 3) / 4, dim3(32, 4), 0, stream>>>(packed, scales, zeros, x, y, rows, cols);
}
