#include <algorithm>

#include <cub/cub.cuh>
#include <cuda_fp16.h>

// RMS norm with the residual added, a block a token; the type's block size is the largest, not the launch's.
template <typename scalar_t>
__global__ void fused_add_rms_norm_kernel(scalar_t* __restrict__ out,             // [tokens, hidden]
                                          const scalar_t* __restrict__ input,     // [tokens, hidden]
                                          const scalar_t* __restrict__ residual,  // [tokens, hidden]
                                          const scalar_t* __restrict__ weight,    // [hidden]
                                          const float epsilon, const int hidden_size) {
  __shared__ float s_variance;
  float variance = 0.0f;

  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const int at = blockIdx.x * hidden_size + idx;
    const float x = (float)input[at] + (float)residual[at];
    variance += x * x;
  }

  using BlockReduce = cub::BlockReduce<float, 1024>;
  __shared__ typename BlockReduce::TempStorage reduceStore;
  variance = BlockReduce(reduceStore).Reduce(variance, cub::Sum{}, blockDim.x);

  if (threadIdx.x == 0) {
    s_variance = rsqrtf(variance / hidden_size + epsilon);
  }
  __syncthreads();

  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const int at = blockIdx.x * hidden_size + idx;
    const float x = (float)input[at] + (float)residual[at];
    out[at] = (scalar_t)(x * s_variance * (float)weight[idx]);
  }
}

void fused_add_rms_norm(__half* out, const __half* input, const __half* residual, const __half* weight, float epsilon,
                        int num_tokens, int hidden_size) {
  dim3 grid(num_tokens);
  dim3 block(std::min(hidden_size, 1024));
  fused_add_rms_norm_kernel<__half><<<grid, block>>>(out, input, residual, weight, epsilon, hidden_size);
}
