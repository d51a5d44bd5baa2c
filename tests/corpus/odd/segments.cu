// Shuffles within a segment by a lane that is computed, up with a width, and a broadcast from each group of 8.
__global__ void lanes(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x & 31;
  float v = i < n ? x[i] : 0.f;
  float a = __shfl_sync(0xffffffff, v, (lane * 5 + 37) % 64);
  float b = __shfl_up_sync(0xffffffff, v, lane & 3, 8);
  float c = __shfl_sync(0xffffffff, v, -1, 8);
  float d = __shfl_xor_sync(0xffffffff, v, 12, 8);
  bool e = __shfl_down_sync(0xffffffff, v > 0.f, 1);
  if (i < n) y[i] = a + 2.f * b + 4.f * c + 8.f * d + (e ? 16.f : 0.f);
}
void go(const float* x, float* y, int n) { lanes<<<(n + 63) / 64, 64>>>(x, y, n); }
