#include <cassert>

#include <cuda_runtime.h>

__device__ float block_sum(float v, float* scratch) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  __syncthreads();  // scratch may still be read from the call before
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.f;
  for (int w = 0; w < blockDim.x / 32; ++w) v += scratch[w];
  return v;
}

__global__ void groupnorm_kernel(const float* __restrict__ x,      // [batch, channels, spatial]
                                 const float* __restrict__ gamma,  // [channels]
                                 const float* __restrict__ beta,   // [channels]
                                 float* __restrict__ y,            // [batch, channels, spatial]
                                 int channels, int spatial, int groups) {
  __shared__ float scratch[32];
  const int group = blockIdx.x, batch = blockIdx.y;
  const int per_group = channels / groups;
  const int count = per_group * spatial;
  const size_t base = ((size_t)batch * channels + group * per_group) * spatial;

  float sum = 0.f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[base + i];
  const float mean = block_sum(sum, scratch) / count;

  float square = 0.f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const float d = x[base + i] - mean;
    square += d * d;
  }
  const float rstd = rsqrtf(block_sum(square, scratch) / count + 1e-5f);

  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int c = group * per_group + i / spatial;
    y[base + i] = (x[base + i] - mean) * rstd * gamma[c] + beta[c];
  }
}

void groupnorm_forward(const float* x, const float* gamma, const float* beta, float* y, int batch, int channels,
                       int spatial, int groups) {
  assert(channels % groups == 0);
  groupnorm_kernel<<<dim3(groups, batch), 128>>>(x, gamma, beta, y, channels, spatial, groups);
}
