#include <cuda_runtime.h>

// Mean and reciprocal deviation of rows by Welford's method, its operations in a struct template.
template <typename acc_scalar_t, typename index_t>
struct WelfordData {
  acc_scalar_t mean;
  acc_scalar_t m2;
  index_t n;
  acc_scalar_t nf;
  __host__ __device__ WelfordData() : mean(0), m2(0), n(0), nf(0) {}
  __host__ __device__ WelfordData(acc_scalar_t mean, acc_scalar_t m2, index_t n, acc_scalar_t nf) : mean(mean), m2(m2), n(n), nf(nf) {}
};
template <typename acc_scalar_t, typename index_t>
struct WelfordOps {
  using acc_t = WelfordData<acc_scalar_t, index_t>;
  __device__ acc_t reduce(acc_t acc, acc_scalar_t data) const {
    index_t new_n = acc.n + 1;
    acc_scalar_t new_nf = static_cast<acc_scalar_t>(new_n);
    acc_scalar_t delta = data - acc.mean;
    acc_scalar_t new_mean = acc.mean + delta / new_nf;
    acc_scalar_t new_delta = data - new_mean;
    return {new_mean, acc.m2 + delta * new_delta, new_n, new_nf};
  }
  __device__ acc_t combine(acc_t a, acc_t b) const {
    if (a.nf == 0) return b;
    if (b.nf == 0) return a;
    acc_scalar_t delta = b.mean - a.mean;
    acc_scalar_t new_count = a.nf + b.nf;
    acc_scalar_t nb_over_n = b.nf / new_count;
    return {a.mean + delta * nb_over_n, a.m2 + b.m2 + delta * delta * a.nf * nb_over_n, -1, new_count};
  }
  __device__ acc_t warp_shfl_down(acc_t data, int offset) const {
    return {__shfl_down_sync(0xffffffff, data.mean, offset), __shfl_down_sync(0xffffffff, data.m2, offset), __shfl_down_sync(0xffffffff, data.n, offset), __shfl_down_sync(0xffffffff, data.nf, offset)};
  }
};
template <typename T>
__global__ void rowwise_moments_kernel(int N, T eps, const T* X, T* mean, T* rstd) {
  using WelfordType = WelfordData<T, int>;
  using WelfordOp = WelfordOps<T, int>;
  const int i = blockIdx.x;
  WelfordOp welford_op;
  WelfordType val(0, 0, 0, 0);
  for (int j = threadIdx.x; j < N; j += blockDim.x) {
    const int index = i * N + j;
    val = welford_op.reduce(val, static_cast<T>(X[index]));
  }
  for (int offset = 16; offset > 0; offset >>= 1) val = welford_op.combine(val, welford_op.warp_shfl_down(val, offset));
  if (threadIdx.x == 0) {
    T m1 = val.mean;
    T m2 = val.m2 / N;
    mean[i] = m1;
    rstd[i] = rsqrtf(m2 + eps);
  }
}
void moments(const float* X, float* mean, float* rstd, int rows, int N, float eps) { rowwise_moments_kernel<float><<<rows, 32>>>(N, eps, X, mean, rstd); }
