#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                      \
  do {                                                                                        \
    cudaError_t status = (call);                                                              \
    if (status != cudaSuccess) {                                                              \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));    \
      std::exit(1);                                                                           \
    }                                                                                         \
  } while (0)

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}

int main(int argc, char** argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 50000;
  size_t bytes = n * sizeof(float);
  std::vector<float> h_a(n), h_b(n), h_c(n);
  for (int i = 0; i < n; ++i) {
    h_a[i] = 0.5f * i;
    h_b[i] = 1.0f - i;
  }

  float *d_a, *d_b, *d_c;
  CUDA_CHECK(cudaMalloc((void**)&d_a, bytes));
  CUDA_CHECK(cudaMalloc((void**)&d_b, bytes));
  CUDA_CHECK(cudaMalloc((void**)&d_c, bytes));
  CUDA_CHECK(cudaMemcpy(d_a, h_a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_b, h_b.data(), bytes, cudaMemcpyHostToDevice));

  int threads = 256;
  int blocks = (n + threads - 1) / threads;
  vector_add<<<blocks, threads>>>(d_a, d_b, d_c, n);
  CUDA_CHECK(cudaGetLastError());

  CUDA_CHECK(cudaMemcpy(h_c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    wrong += h_c[i] != h_a[i] + h_b[i];
  }
  std::printf("%d of %d elements are wrong\n", wrong, n);

  cudaFree(d_a);
  cudaFree(d_b);
  cudaFree(d_c);
  return wrong != 0;
}
