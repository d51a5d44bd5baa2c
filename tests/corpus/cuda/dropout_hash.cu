#include <torch/extension.h>

#include <cuda_runtime.h>

__device__ __forceinline__ uint32_t hash(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

__global__ void dropout_kernel(const float* x, float* y, uint8_t* mask, int n, uint32_t seed, float keep) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float u = (hash(static_cast<uint32_t>(i) ^ hash(seed)) >> 8) * (1.0f / 16777216.0f);
  const bool kept = u < keep;
  mask[i] = kept;
  y[i] = kept ? x[i] / keep : 0.0f;
}

void dropout(torch::Tensor x, torch::Tensor y, torch::Tensor mask, int seed) {
  TORCH_CHECK(y.numel() == x.numel() && mask.numel() == x.numel(), "the same shape for all three");
  const int n = x.numel();
  dropout_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), mask.data_ptr<uint8_t>(), n,
                                           static_cast<uint32_t>(seed), 0.75f);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("dropout", &dropout); }
