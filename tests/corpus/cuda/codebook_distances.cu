#include <cassert>

#include <cuda_runtime.h>

#define MAX_DIM 128

__device__ float dot(const float* a, const float* b, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

__global__ void codebook_distances(const float* x, const float* codebook, float* distance, int codes, int dim) {
  __shared__ float query[MAX_DIM];
  __shared__ float query_norm;
  for (int d = threadIdx.x; d < dim; d += blockDim.x) query[d] = x[blockIdx.x * dim + d];
  __syncthreads();
  if (threadIdx.x == 0) query_norm = dot(query, query, dim);
  __syncthreads();

  for (int c = threadIdx.x; c < codes; c += blockDim.x) {
    const float* code = codebook + c * dim;
    distance[blockIdx.x * codes + c] = query_norm - 2.0f * dot(query, code, dim) + dot(code, code, dim);
  }
}

void launch_codebook_distances(const float* x, const float* codebook, float* distance, int n, int codes, int dim) {
  assert(dim <= MAX_DIM);
  codebook_distances<<<n, 64>>>(x, codebook, distance, codes, dim);
}
