#include <cassert>
#include <cstdint>

#include <cuda_runtime.h>

__device__ __forceinline__ void copy16_async(float* shared, const float* global) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::); }

template <int PENDING>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING));
}

// While one half of the buffer is summed, the other is filled.
__global__ void column_sums(const float* __restrict__ x,  // [rows, cols]
                            float* __restrict__ sums,     // [cols]
                            int rows, int cols) {
  __shared__ __align__(16) float stage[2][128];
  const int column0 = blockIdx.x * 128;
  const bool loads = threadIdx.x < 32;
  float sum = 0.f;

  if (loads) copy16_async(&stage[0][4 * threadIdx.x], x + column0 + 4 * threadIdx.x);
  commit();
  for (int r = 0; r < rows; ++r) {
    if (r + 1 < rows && loads) {
      copy16_async(&stage[(r + 1) % 2][4 * threadIdx.x], x + (r + 1) * cols + column0 + 4 * threadIdx.x);
    }
    commit();
    wait<1>();
    __syncthreads();
    sum += stage[r % 2][threadIdx.x];
    __syncthreads();
  }
  sums[column0 + threadIdx.x] = sum;
}

void column_sums_forward(const float* x, float* sums, int rows, int cols) {
  assert(cols % 128 == 0 && rows > 0);
  column_sums<<<cols / 128, 128>>>(x, sums, rows, cols);
}
