#include <cuda_runtime.h>

// Tokens may repeat, so that several threads add to one row.
__global__ void embedding_backward(const float* grad_out, const int* ids, float* grad_table, int tokens, int dim,
                                   int vocab) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= tokens * dim) return;
  int token = i / dim;
  int column = i - token * dim;
  int id = ids[token];
  if (id < 0 || id >= vocab) return;
  atomicAdd(&grad_table[id * dim + column], grad_out[i]);
}

void embedding_backward_host(const float* h_grad_out, const int* h_ids, float* h_grad_table, int tokens, int dim,
                             int vocab) {
  float *d_grad_out, *d_grad_table;
  int* d_ids;
  cudaMalloc((void**)&d_grad_out, sizeof(float) * tokens * dim);
  cudaMalloc((void**)&d_ids, sizeof(int) * tokens);
  cudaMalloc((void**)&d_grad_table, sizeof(float) * vocab * dim);
  cudaMemcpy(d_grad_out, h_grad_out, sizeof(float) * tokens * dim, cudaMemcpyHostToDevice);
  cudaMemcpy(d_ids, h_ids, sizeof(int) * tokens, cudaMemcpyHostToDevice);
  cudaMemset(d_grad_table, 0, sizeof(float) * vocab * dim);

  int total = tokens * dim;
  embedding_backward<<<(total + 255) / 256, 256>>>(d_grad_out, d_ids, d_grad_table, tokens, dim, vocab);

  cudaMemcpy(h_grad_table, d_grad_table, sizeof(float) * vocab * dim, cudaMemcpyDeviceToHost);
  cudaFree(d_grad_out);
  cudaFree(d_ids);
  cudaFree(d_grad_table);
}
