#include <cfloat>

#include <cub/cub.cuh>

// Softmax over the experts of each token, and then the best k of them, one block reduction each.
template <int TPB>
__launch_bounds__(TPB) __global__ void moe_softmax(const float* gating, float* probs, const int num_experts) {
  using BlockReduce = cub::BlockReduce<float, TPB>;
  __shared__ typename BlockReduce::TempStorage tmpStorage;
  __shared__ float normalizing_factor;
  __shared__ float float_max;

  const int row = blockIdx.x * num_experts;
  cub::Sum sum;
  float threadData(-FLT_MAX);
  for (int e = threadIdx.x; e < num_experts; e += TPB) threadData = max(gating[row + e], threadData);

  const float maxElem = BlockReduce(tmpStorage).Reduce(threadData, cub::Max());
  if (threadIdx.x == 0) float_max = maxElem;
  __syncthreads();

  threadData = 0;
  for (int e = threadIdx.x; e < num_experts; e += TPB) threadData += expf(gating[row + e] - float_max);

  const auto Z = BlockReduce(tmpStorage).Reduce(threadData, sum);
  if (threadIdx.x == 0) normalizing_factor = 1.f / Z;
  __syncthreads();

  for (int e = threadIdx.x; e < num_experts; e += TPB) {
    probs[row + e] = expf(gating[row + e] - float_max) * normalizing_factor;
  }
}

template <int TPB>
__launch_bounds__(TPB) __global__ void moe_top_k(const float* probs,  // [tokens, num_experts]
                                                 float* weights,      // [tokens, k]
                                                 int* indices,        // [tokens, k]
                                                 const int num_experts, const int k) {
  using cub_kvp = cub::KeyValuePair<int, float>;
  using BlockReduce = cub::BlockReduce<cub_kvp, TPB>;
  __shared__ typename BlockReduce::TempStorage tmpStorage;

  cub_kvp thread_kvp;
  cub::ArgMax arg_max;
  for (int k_idx = 0; k_idx < k; ++k_idx) {
    thread_kvp.key = 0;
    thread_kvp.value = -1.f;  // probabilities are greater

    cub_kvp inp_kvp;
    for (int e = threadIdx.x; e < num_experts; e += TPB) {
      inp_kvp.key = e;
      inp_kvp.value = probs[blockIdx.x * num_experts + e];
      for (int prior_k = 0; prior_k < k_idx; ++prior_k) {
        if (indices[k * blockIdx.x + prior_k] == e) inp_kvp = thread_kvp;
      }
      thread_kvp = arg_max(inp_kvp, thread_kvp);
    }

    const cub_kvp result_kvp = BlockReduce(tmpStorage).Reduce(thread_kvp, arg_max);
    if (threadIdx.x == 0) {
      const int idx = k * blockIdx.x + k_idx;
      weights[idx] = result_kvp.value;
      indices[idx] = result_kvp.key;
    }
    __syncthreads();
  }
}

void topk_softmax(const float* gating_output, float* softmax_workspace, float* topk_weights, int* topk_indices,
                  int num_tokens, int num_experts, int topk, cudaStream_t stream) {
  static constexpr int TPB = 256;
  moe_softmax<TPB><<<num_tokens, TPB, 0, stream>>>(gating_output, softmax_workspace, num_experts);
  moe_top_k<TPB><<<num_tokens, TPB, 0, stream>>>(softmax_workspace, topk_weights, topk_indices, num_experts, topk);
}
