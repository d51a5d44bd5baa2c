#include <cassert>

#include <cuda_runtime.h>

__global__ void embedding_gather(float* __restrict__ out,          // [tokens, dim]
                                 const float* __restrict__ table,  // [vocab, dim]
                                 const int* __restrict__ ids,      // [tokens], each < vocab
                                 int tokens, int dim) {
  const int vec_dim = dim / 4;
  const int t = blockIdx.y * blockDim.y + threadIdx.y;
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < tokens && c < vec_dim) {
    const float4* src = reinterpret_cast<const float4*>(table) + static_cast<size_t>(ids[t]) * vec_dim;
    reinterpret_cast<float4*>(out)[t * vec_dim + c] = src[c];
  }
}

void embedding_forward(float* out, const float* table, const int* ids, int tokens, int vocab, int dim) {
  assert(dim % 4 == 0 && vocab > 0);
  dim3 block(16, 8);
  dim3 grid((dim / 4 + 15) / 16, (tokens + 7) / 8);
  embedding_gather<<<grid, block>>>(out, table, ids, tokens, dim);
}
