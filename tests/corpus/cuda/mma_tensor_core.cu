#include <cassert>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One warp makes a 16 x 8 tile of C = A B^T.
__global__ void matmul_mma(const __half* __restrict__ a,  // [m, k]
                           const __half* __restrict__ b,  // [n, k]
                           float* __restrict__ c,         // [m, n]
                           int n, int k) {
  const int lane = threadIdx.x;
  const int group = lane / 4, pair = (lane % 4) * 2;
  const int row = blockIdx.y * 16 + group;
  const int col = blockIdx.x * 8 + group;
  float d[4] = {0.f, 0.f, 0.f, 0.f};
  for (int k0 = 0; k0 < k; k0 += 16) {
    uint32_t fa[4], fb[2];
    fa[0] = *reinterpret_cast<const uint32_t*>(&a[row * k + k0 + pair]);
    fa[1] = *reinterpret_cast<const uint32_t*>(&a[(row + 8) * k + k0 + pair]);
    fa[2] = *reinterpret_cast<const uint32_t*>(&a[row * k + k0 + pair + 8]);
    fa[3] = *reinterpret_cast<const uint32_t*>(&a[(row + 8) * k + k0 + pair + 8]);
    fb[0] = *reinterpret_cast<const uint32_t*>(&b[col * k + k0 + pair]);
    fb[1] = *reinterpret_cast<const uint32_t*>(&b[col * k + k0 + pair + 8]);
    mma_m16n8k16(d, fa, fb);
  }
  float* tile = c + (blockIdx.y * 16) * n + blockIdx.x * 8;
  tile[group * n + pair] = d[0];
  tile[group * n + pair + 1] = d[1];
  tile[(group + 8) * n + pair] = d[2];
  tile[(group + 8) * n + pair + 1] = d[3];
}

void matmul_mma_forward(const __half* a, const __half* b, float* c, int m, int n, int k) {
  assert(m % 16 == 0 && n % 8 == 0 && k % 16 == 0);
  matmul_mma<<<dim3(n / 8, m / 16), 32>>>(a, b, c, n, k);
}
