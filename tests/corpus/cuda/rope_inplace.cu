#include <cassert>

#include <cuda_runtime.h>

// The two halves of a head are rotated against each other; queries are changed in place.
__global__ void rope_inplace_kernel(float* __restrict__ query,            // [tokens, heads, head_dim]
                                    const int* __restrict__ positions,    // [tokens], each < max_position
                                    const float* __restrict__ cos_sin,    // [max_position, head_dim]
                                    int heads, int head_dim) {
  const int token = blockIdx.x;
  const int half = head_dim / 2;
  const float* cos_row = cos_sin + (size_t)positions[token] * head_dim;
  const float* sin_row = cos_row + half;

  for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
    const int head = i / half;
    const int k = i % half;
    float* q = query + ((size_t)token * heads + head) * head_dim;
    const float x = q[k];
    const float y = q[k + half];
    q[k] = x * cos_row[k] - y * sin_row[k];
    q[k + half] = y * cos_row[k] + x * sin_row[k];
  }
}

void rope_inplace(float* query, const int* positions, const float* cos_sin, int tokens, int heads, int head_dim,
                  int max_position) {
  assert(head_dim % 2 == 0 && max_position > 0);
  rope_inplace_kernel<<<tokens, 64>>>(query, positions, cos_sin, heads, head_dim);
}
