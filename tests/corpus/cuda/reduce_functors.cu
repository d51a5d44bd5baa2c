#include <cuda_runtime.h>
#include <cfloat>

// A tree of a reduction over functors: the launcher says which, by value.
struct SumOp {
  static __device__ float identity() { return 0.0f; }
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

struct MaxOp {
  static __device__ float identity() { return -FLT_MAX; }
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename Op>
__device__ float warp_reduce(float v, Op op) {
  for (int offset = 16; offset > 0; offset >>= 1) v = op(v, __shfl_down_sync(0xffffffff, v, offset));
  return v;
}

template <typename Op>
__device__ float block_reduce(float v, Op op) {
  __shared__ float partial[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_reduce(v, op);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? partial[lane] : Op::identity();
  if (warp == 0) v = warp_reduce(v, op);
  return v;
}

template <typename Op>
__global__ void reduce_rows(const float* __restrict__ x, float* __restrict__ y, int cols, Op op) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float v = Op::identity();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) v = op(v, row[c]);
  v = block_reduce(v, op);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

// The range that a row's sum of exponentials needs: its maximum, and the sum of exp(x - maximum).
__global__ void log_sum_exp(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float shared_max;
  const float* row = x + (size_t)blockIdx.x * cols;
  float m = -FLT_MAX, s = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = MaxOp()(m, row[c]);
  m = block_reduce(m, MaxOp{});
  if (threadIdx.x == 0) shared_max = m;
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += expf(row[c] - shared_max);
  s = block_reduce(s, SumOp{});
  if (threadIdx.x == 0) y[blockIdx.x] = shared_max + logf(s);
}

void reduce_all(const float* x, float* sums, float* maxima, float* lse, int rows, int cols) {
  reduce_rows<<<rows, 128>>>(x, sums, cols, SumOp());
  reduce_rows<<<rows, 128>>>(x, maxima, cols, MaxOp());
  log_sum_exp<<<rows, 128>>>(x, lse, cols);
}
