#include <cassert>

#include <cuda_runtime.h>

// There is no atomicMax for float: compare and swap its bits until the larger one stands (0 for 0 only reads).
__device__ float atomic_max_float(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = atomicCAS(bits, 0, 0);
  while (__int_as_float(old) < value) {
    int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
  return __int_as_float(old);
}

__global__ void fill(float* __restrict__ out,  // [targets, dim]
                     int total, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < total) out[i] = value;
}

__global__ void scatter_max_kernel(const float* __restrict__ src,  // [n, dim]
                                   const int* __restrict__ index,  // [n], each < targets
                                   float* __restrict__ out,        // [targets, dim]
                                   int n, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * dim) return;
  atomic_max_float(&out[index[i / dim] * dim + i % dim], src[i]);
}

void scatter_max(const float* src, const int* index, float* out, int n, int targets, int dim) {
  assert(targets > 0);
  const int threads = 128;
  fill<<<(targets * dim + threads - 1) / threads, threads>>>(out, targets * dim, -1e30f);
  scatter_max_kernel<<<(n * dim + threads - 1) / threads, threads>>>(src, index, out, n, dim);
}
