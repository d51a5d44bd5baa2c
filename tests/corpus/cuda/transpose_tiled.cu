#include <cuda_runtime.h>

constexpr int TILE = 32;
constexpr int TILE_ROWS = 8;

// Both the read and the write are coalesced; the extra column keeps a tile's column out of one bank.
__global__ void transpose_tiled(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  __shared__ float tile[TILE][TILE + 1];

  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += TILE_ROWS) {
    if (x < cols && y + j < rows) {
      tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
    }
  }
  __syncthreads();

  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += TILE_ROWS) {
    if (x < rows && y + j < cols) {
      out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
    }
  }
}

inline int div_up(int a, int b) { return (a + b - 1) / b; }

void transpose_on_device(const float* h_in, float* h_out, int rows, int cols) {
  const size_t bytes = sizeof(float) * rows * cols;
  float* d_in = nullptr;
  float* d_out = nullptr;
  cudaMalloc(&d_in, bytes);
  cudaMalloc(&d_out, bytes);
  cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice);

  dim3 grid(div_up(cols, TILE), div_up(rows, TILE));
  dim3 block(TILE, TILE_ROWS);
  transpose_tiled<<<grid, block>>>(d_in, d_out, rows, cols);
  cudaDeviceSynchronize();

  cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost);
  cudaFree(d_in);
  cudaFree(d_out);
}
