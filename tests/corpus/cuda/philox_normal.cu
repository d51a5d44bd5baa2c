#include <cstdint>

#include <cuda_runtime.h>

__device__ __forceinline__ uint4 philox_round(uint4 c, uint2 k) {
  const uint32_t hi0 = __umulhi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
  const uint32_t hi1 = __umulhi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
  return make_uint4(hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0);
}

__device__ uint4 philox(uint32_t counter, uint32_t seed) {
  uint4 c = make_uint4(counter, 0u, 0u, 0u);
  uint2 k = make_uint2(seed, 0u);
#pragma unroll
  for (int r = 0; r < 10; ++r) {
    c = philox_round(c, k);
    k.x += 0x9E3779B9u;
    k.y += 0xBB67AE85u;
  }
  return c;
}

__device__ float2 box_muller(uint32_t a, uint32_t b) {
  const float u = ((a >> 8) + 1u) * (1.0f / 16777216.0f);
  const float radius = sqrtf(-2.0f * logf(u));
  float s, c;
  sincosf((b >> 8) * (6.283185307f / 16777216.0f), &s, &c);
  return make_float2(radius * c, radius * s);
}

__global__ void fill_normal(float* out, int n, uint32_t seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i >= n) return;
  const uint4 r = philox(i, seed);
  const float2 a = box_muller(r.x, r.y);
  const float2 b = box_muller(r.z, r.w);
  const float values[4] = {a.x, a.y, b.x, b.y};
  for (int j = 0; j < 4 && 4 * i + j < n; ++j) out[4 * i + j] = values[j];
}

void launch_fill_normal(float* out, int n, int seed) {
  int groups = (n + 3) / 4;
  fill_normal<<<(groups + 127) / 128, 128>>>(out, n, seed);
}
