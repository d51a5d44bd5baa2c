#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__device__ float to_float(T v);
template <>
__device__ float to_float<__half>(__half v) {
  return __half2float(v);
}

__device__ __forceinline__ float gelu_tanh(float x) {
  const float k = 0.7978845608f;
  float inner = k * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + tanhf(inner));
}

template <typename T>
__global__ void gelu(const T* x, T* y, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2half(gelu_tanh(to_float<T>(x[i])));
}

void gelu_half(const __half* x, __half* y, int n, cudaStream_t stream) {
  gelu<__half><<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
