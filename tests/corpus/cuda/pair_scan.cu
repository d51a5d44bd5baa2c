#include <cuda_runtime.h>

// h_t = a_t h_(t-1) + b_t as a scan: (a, b) stands for the map h -> a h + b, and maps compose.
struct Pair {
  float a, b;
};

__device__ __forceinline__ Pair compose(Pair first, Pair second) {
  return {first.a * second.a, second.a * first.b + second.b};
}

__device__ __forceinline__ Pair warp_scan(Pair p) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    Pair before;
    before.a = __shfl_up_sync(0xffffffff, p.a, d);
    before.b = __shfl_up_sync(0xffffffff, p.b, d);
    if (lane >= d) p = compose(before, p);
  }
  return p;
}

template <int THREADS>
__global__ void linear_recurrence(const float* __restrict__ gate,   // [rows, len]
                                  const float* __restrict__ input,  // [rows, len]
                                  float* __restrict__ hidden,       // [rows, len]
                                  int len) {
  constexpr int WARPS = THREADS / 32;
  __shared__ Pair totals[WARPS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const size_t row = (size_t)blockIdx.x * len;
  float carry = 0.f;

  for (int start = 0; start < len; start += THREADS) {
    const int t = start + threadIdx.x;
    Pair p = {1.f, 0.f};
    if (t < len) {
      p.a = 1.f / (1.f + __expf(-gate[row + t]));
      p.b = input[row + t];
    }
    p = warp_scan(p);
    if (lane == 31) totals[warp] = p;
    __syncthreads();

    Pair before = {1.f, 0.f};
    for (int w = 0; w < warp; ++w) before = compose(before, totals[w]);
    Pair all = before;
    for (int w = warp; w < WARPS; ++w) all = compose(all, totals[w]);
    p = compose(before, p);

    if (t < len) hidden[row + t] = p.a * carry + p.b;
    carry = all.a * carry + all.b;
    __syncthreads();
  }
}

void linear_recurrence_forward(const float* gate, const float* input, float* hidden, int rows, int len) {
  linear_recurrence<128><<<rows, 128>>>(gate, input, hidden, len);
}
