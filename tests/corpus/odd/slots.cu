// Atomics whose returned value is a slot; the order within a block is free, so that only sums are compared.
__global__ void compact(const float* x, float* sums, int* counts, int n) {
  __shared__ float kept[256];
  __shared__ int used;
  if (threadIdx.x == 0) used = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0.f) { int slot = atomicAdd(&used, 1); kept[slot] = x[i]; }
  __syncthreads();
  float s = 0.f;
  for (int j = threadIdx.x; j < used; j += blockDim.x) s += kept[j] * kept[j];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffffu, s, o);
  __shared__ float warp_sums[8];
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    float t = 0.f;
    for (int w = 0; w < blockDim.x / 32; ++w) t += warp_sums[w];
    sums[blockIdx.x] = t; counts[blockIdx.x] = used;
  }
}
void go(const float* x, float* sums, int* counts, int n) { compact<<<(n + 255) / 256, 256>>>(x, sums, counts, n); }
