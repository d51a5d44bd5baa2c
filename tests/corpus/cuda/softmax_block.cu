#include <cfloat>

#include <cuda_runtime.h>

// A block for each row. Shared memory: one float a thread.
__global__ void softmax_block(const float* __restrict__ logits,  // [rows, cols]
                              float* __restrict__ probs,         // [rows, cols]
                              int cols) {
  extern __shared__ float buffer[];
  const float* in = logits + blockIdx.x * cols;
  float* out = probs + blockIdx.x * cols;
  const int tid = threadIdx.x;

  float largest = -FLT_MAX;
  for (int c = tid; c < cols; c += blockDim.x) largest = fmaxf(largest, in[c]);
  buffer[tid] = largest;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) buffer[tid] = fmaxf(buffer[tid], buffer[tid + s]);
    __syncthreads();
  }
  largest = buffer[0];
  __syncthreads();  // everyone has the maximum before the buffer is used again

  float sum = 0.f;
  for (int c = tid; c < cols; c += blockDim.x) {
    float e = __expf(in[c] - largest);
    out[c] = e;
    sum += e;
  }
  buffer[tid] = sum;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) buffer[tid] += buffer[tid + s];
    __syncthreads();
  }

  const float scale = 1.f / buffer[0];
  for (int c = tid; c < cols; c += blockDim.x) out[c] *= scale;
}

void softmax_forward(const float* logits, float* probs, int rows, int cols, cudaStream_t stream) {
  const int threads = 128;
  softmax_block<<<rows, threads, threads * sizeof(float), stream>>>(logits, probs, cols);
}
