#include <cuda_runtime.h>

#define TILE 64
#define DEPTH 96

// Two tiles of 64 x 96 floats: 48 KiB, all that a block gets without asking.
__global__ void matmul_large_tiles(const float* __restrict__ a,  // [m, k]
                                   const float* __restrict__ b,  // [n, k]
                                   float* __restrict__ c,        // [m, n]
                                   int m, int n, int k) {
  __shared__ float a_tile[TILE][DEPTH];
  __shared__ float b_tile[TILE][DEPTH];
  const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  float acc[4][4] = {};

  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
      const int r = i / DEPTH, kk = i % DEPTH;
      a_tile[r][kk] = row0 + r < m && k0 + kk < k ? a[(row0 + r) * k + k0 + kk] : 0.f;
      b_tile[r][kk] = col0 + r < n && k0 + kk < k ? b[(col0 + r) * k + k0 + kk] : 0.f;
    }
    __syncthreads();
    for (int kk = 0; kk < DEPTH; ++kk)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += a_tile[ty + 16 * i][kk] * b_tile[tx + 16 * j][kk];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row0 + ty + 16 * i, cc = col0 + tx + 16 * j;
      if (r < m && cc < n) c[r * n + cc] = acc[i][j];
    }
}

void matmul_large(const float* a, const float* b, float* c, int m, int n, int k) {
  matmul_large_tiles<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), 256>>>(a, b, c, m, n, k);
}
