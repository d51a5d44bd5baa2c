// Loss and gradient of cross-entropy in one kernel; the gradient takes the place of the logits.
#include <assert.h>
#include <cuda_runtime.h>

struct SoftmaxParams {
    float Scale;
    float Offset;
};

__device__ float warpReduceSum(float val) {
    for (int offset = 16; offset > 0; offset /= 2) { val += __shfl_xor_sync(0xFFFFFFFF, val, offset); }
    return val;
}
__device__ float warpReduceMax(float val) {
    for (int offset = 16; offset > 0; offset /= 2) { val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFF, val, offset)); }
    return val;
}

using reduction_func_t = float (*) (float);
template<reduction_func_t warp_reduction>
__device__ float blockReduce(float val, bool final_sync=false, float out_of_bounds=0.0f) {
    __shared__ float shared_val[32];
    const int lane_id = threadIdx.x % 32;
    const int warp_id = threadIdx.x / 32;
    const int num_warps = blockDim.x / 32;

    float warp_val = warp_reduction(val);
    if (lane_id == 0) { shared_val[warp_id] = warp_val; }
    __syncthreads();
    warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
    float block_val = warp_reduction(warp_val);

    if (final_sync) {
        __syncthreads(); // only needed in loops when effectively reusing shared memory etc.
    }
    return block_val;
}

__device__ SoftmaxParams prepare_softmax_blockwide(int64_t idx, const float* inp, int V, int P) {
    const float* x = inp + idx * P;
    float thread_maxval = -INFINITY;
    float thread_sumval = 0.0f;
    for (int i = V - 1 - threadIdx.x; i >= 0; i -= blockDim.x) {
        float v = x[i];
        float old_maxval = thread_maxval;
        thread_maxval = fmaxf(thread_maxval, v);
        thread_sumval *= expf(old_maxval - thread_maxval);
        thread_sumval += expf(v - thread_maxval);
    }
    float block_maxval = blockReduce<warpReduceMax>(thread_maxval, false, -INFINITY);
    thread_sumval *= expf(thread_maxval - block_maxval);
    float block_sumval = blockReduce<warpReduceSum>(thread_sumval);
    return SoftmaxParams{1.f / block_sumval, block_maxval};
}

template <bool WriteDLogits = true, bool WriteProbs = false>
__global__ void __launch_bounds__(1024, 1)
    fused_classifier_kernel(float* logits, float* losses, float* probs,
                                const float dloss, const int* targets,
                                int B, int T, int V, int P) {
    int64_t idx = gridDim.x - (blockIdx.x+1); // reverse order for cache hits on matmul data
    int ix = targets[idx];

    SoftmaxParams sp = prepare_softmax_blockwide(idx, logits, V, P);

    if(threadIdx.x == 0) {
        float prob = expf(logits[idx * P + ix] - sp.Offset) * sp.Scale;
        losses[idx] -= logf(prob);
    }
    __syncthreads();

    const float* logits_vec = logits + idx * P;
    for (int i = threadIdx.x; i < V; i += blockDim.x) {
        float v = __ldcs(&logits_vec[i]);
        float prob = expf(v - sp.Offset) * sp.Scale;
        if (WriteProbs) {
            probs[idx * P + i] = prob;
        }
        if (WriteDLogits) {
            float indicator = (i == ix) ? 1.0f : 0.0f;
            logits[idx * P + i] = (prob - indicator) * dloss;
        }
    }
}

void fused_classifier(float* logits,       // [B, T, P]
                      float* losses,       // [B, T]
                      const float dloss,
                      const int* targets,  // [B, T], < V
                      int B, int T, int V, int P) {
    const int block_size = 1024;
    const int N = B * T;
    assert(P >= V);
    fused_classifier_kernel<<<N, block_size>>>(logits, losses, nullptr, dloss, targets, B, T, V, P);
}
