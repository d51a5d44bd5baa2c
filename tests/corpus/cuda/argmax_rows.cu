#include <cuda_runtime.h>

struct ValueIndex {
  float value;
  int index;
};

__device__ inline bool better(ValueIndex a, ValueIndex b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

__device__ inline ValueIndex warp_argmax(ValueIndex v) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    ValueIndex o;
    o.value = __shfl_down_sync(0xffffffff, v.value, offset);
    o.index = __shfl_down_sync(0xffffffff, v.index, offset);
    if (better(o, v)) v = o;
  }
  return v;
}

__global__ void argmax_rows(const float* x, int* out, int cols) {
  __shared__ ValueIndex best_of_warp[8];
  ValueIndex v = {-INFINITY, cols};
  for (int c = threadIdx.x; c < cols; c += 256) {
    ValueIndex o = {x[blockIdx.x * cols + c], c};
    if (better(o, v)) v = o;
  }
  v = warp_argmax(v);
  if (threadIdx.x % 32 == 0) best_of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v.value = threadIdx.x < 8 ? best_of_warp[threadIdx.x].value : -INFINITY;
    v.index = threadIdx.x < 8 ? best_of_warp[threadIdx.x].index : cols;
    v = warp_argmax(v);
    if (threadIdx.x == 0) out[blockIdx.x] = v.index;
  }
}

void launch_argmax(const float* x, int* out, int rows, int cols) {
  argmax_rows<<<rows, 256>>>(x, out, cols);
}
