#include <cuda_runtime.h>

__global__ void difference(const float* in, float* out, int n) {
  __shared__ float s[128];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  if (i >= n) return;

  s[t] = in[i];
  __syncthreads();

  float before = 0.0f;
  if (t > 0) {
    before = s[t - 1];
  } else if (i > 0) {
    before = in[i - 1];
  }
  out[i] = s[t] - before;
}

void launch_difference(const float* in, float* out, int n) {
  difference<<<(n + 127) / 128, 128>>>(in, out, n);
}
