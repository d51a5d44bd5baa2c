#include <torch/extension.h>

#include <cuda_runtime.h>

__device__ __forceinline__ float warp_max(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}

// A warp a token: loss = log(sum of exp) - logit of the label, and its gradient (softmax - one hot) / tokens.
__global__ void cross_entropy_kernel(const float* __restrict__ logits, const int* __restrict__ labels,
                                     float* __restrict__ loss, float* __restrict__ grad, int tokens, int vocab) {
  const int token = blockIdx.x * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const float* row = logits + (size_t)token * vocab;
  const int label = labels[token];

  float m = -INFINITY;
  for (int c = threadIdx.x; c < vocab; c += 32) m = fmaxf(m, row[c]);
  m = warp_max(m);
  float sum = 0.f;
  for (int c = threadIdx.x; c < vocab; c += 32) sum += expf(row[c] - m);
  sum = warp_sum(sum);

  if (threadIdx.x == 0) loss[token] = logf(sum) + m - row[label];
  for (int c = threadIdx.x; c < vocab; c += 32) {
    float p = expf(row[c] - m) / sum;
    grad[(size_t)token * vocab + c] = (p - (c == label ? 1.f : 0.f)) / tokens;
  }
}

std::vector<torch::Tensor> cross_entropy(torch::Tensor logits, torch::Tensor labels) {
  TORCH_CHECK(logits.dim() == 2, "logits: [tokens, vocab]");
  TORCH_CHECK(labels.size(0) == logits.size(0), "one label a token, each below vocab");
  const int tokens = logits.size(0);
  const int vocab = logits.size(1);
  auto loss = torch::empty({tokens}, logits.options());
  auto grad = torch::empty_like(logits);

  dim3 block(32, 4);
  cross_entropy_kernel<<<(tokens + 3) / 4, block>>>(logits.data_ptr<float>(), labels.data_ptr<int>(),
                                                    loss.data_ptr<float>(), grad.data_ptr<float>(), tokens, vocab);
  return {loss, grad};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("cross_entropy", &cross_entropy); }
