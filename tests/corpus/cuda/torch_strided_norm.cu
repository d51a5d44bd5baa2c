#include <torch/extension.h>
#include <cuda_runtime.h>

// RMSNorm over the last dimension of a tensor with any number of rows, by the tensor's own strides.
template <typename scalar_t>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input,
                                const scalar_t* __restrict__ weight, int hidden_size, int64_t input_stride,
                                int64_t out_stride, float epsilon) {
  __shared__ float partial[32];
  const scalar_t* row = input + blockIdx.x * input_stride;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    float v = static_cast<float>(row[i]);
    sum += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < blockDim.x / 32; ++w) total += partial[w];
  float scale = rsqrtf(total / hidden_size + epsilon);
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    out[blockIdx.x * out_stride + i] = static_cast<scalar_t>(static_cast<float>(row[i]) * scale * static_cast<float>(weight[i]));
  }
}

torch::Tensor rms_norm(torch::Tensor input, torch::Tensor weight, double epsilon) {
  TORCH_CHECK(input.stride(-1) == 1, "the last dimension must be contiguous");
  const int hidden_size = input.size(-1);
  const int num_tokens = input.numel() / hidden_size;
  torch::Tensor out = torch::empty_like(input);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "rms_norm", [&] {
    rms_norm_kernel<scalar_t><<<num_tokens, 128>>>(
        out.data_ptr<scalar_t>(), input.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), hidden_size,
        input.stride(-2), out.stride(-2), static_cast<float>(epsilon));
  });
  return out;
}
