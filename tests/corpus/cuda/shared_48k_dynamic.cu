#include <cassert>

#include <cuda_runtime.h>

constexpr int kCached = 12288;  // floats of the vector that a block keeps: 48 KiB

// The whole vector is kept in shared memory; a warp goes over a row of the matrix.
__global__ void matvec_cached(const float* __restrict__ matrix,  // [rows, cols]
                              const float* __restrict__ x,       // [cols]
                              float* __restrict__ y,             // [rows]
                              int rows, int cols) {
  extern __shared__ float cached[];
  for (int i = threadIdx.x; i < cols; i += blockDim.x) cached[i] = x[i];
  __syncthreads();

  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.f;
  for (int c = lane; c < cols; c += 32) sum += matrix[(size_t)row * cols + c] * cached[c];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (lane == 0) y[row] = sum;
}

void matvec(const float* matrix, const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  assert(cols <= kCached);
  matvec_cached<<<(rows + 7) / 8, 256, kCached * sizeof(float), stream>>>(matrix, x, y, rows, cols);
}
