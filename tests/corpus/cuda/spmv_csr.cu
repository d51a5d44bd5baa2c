#include <cuda_runtime.h>

__global__ void spmv_csr(int rows, const int* __restrict__ row_ptr, const int* __restrict__ col_idx,
                         const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int j = row_ptr[row]; j < row_ptr[row + 1]; ++j) {
      sum += values[j] * x[col_idx[j]];
    }
    y[row] = sum;
  }
}

void multiply_csr(const int* h_row_ptr, const int* h_col_idx, const float* h_values, const float* h_x, float* h_y,
                  int rows, int cols, int nnz) {
  int *d_row_ptr, *d_col_idx;
  float *d_values, *d_x, *d_y;
  cudaMalloc((void**)&d_row_ptr, (rows + 1) * sizeof(int));  // each <= nnz
  cudaMalloc((void**)&d_col_idx, nnz * sizeof(int));         // each < cols
  cudaMalloc((void**)&d_values, nnz * sizeof(float));
  cudaMalloc((void**)&d_x, cols * sizeof(float));
  cudaMalloc((void**)&d_y, rows * sizeof(float));
  cudaMemcpy(d_row_ptr, h_row_ptr, (rows + 1) * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_col_idx, h_col_idx, nnz * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_values, h_values, nnz * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_x, h_x, cols * sizeof(float), cudaMemcpyHostToDevice);

  int threads = 64;
  int blocks = rows / threads + (rows % threads != 0);
  spmv_csr<<<blocks, threads>>>(rows, d_row_ptr, d_col_idx, d_values, d_x, d_y);

  cudaMemcpy(h_y, d_y, rows * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_row_ptr);
  cudaFree(d_col_idx);
  cudaFree(d_values);
  cudaFree(d_x);
  cudaFree(d_y);
}
