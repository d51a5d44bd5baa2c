#include <cuda_runtime.h>

__global__ void broadcast_add(const float* a, const float* row_bias, const float* col_bias, float* out, int rows,
                              int cols, int stride_row, int stride_col) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= cols) return;
  out[r * cols + c] = a[r * stride_row + c * stride_col] + row_bias[r] + col_bias[c];
}

void broadcast_add_column_major(const float* a, const float* row_bias, const float* col_bias, float* out, int rows,
                                int cols, cudaStream_t stream) {
  dim3 block(32, 8);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  broadcast_add<<<grid, block, 0, stream>>>(a, row_bias, col_bias, out, rows, cols, 1, rows);
}
