// A loop with barriers that the whole block leaves by a shared flag, and a continue that all threads take together.
__global__ void relax(const float* x, float* y, int n, int rounds) {
  __shared__ float a[128];
  __shared__ int settled;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  a[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int r = 0; r < rounds; ++r) {
    if (t == 0) settled = 1;
    __syncthreads();
    float left = t > 0 ? a[t - 1] : a[t], right = t < 127 ? a[t + 1] : a[t];
    float v = 0.25f * left + 0.5f * a[t] + 0.25f * right;
    if (fabsf(v - a[t]) > 0.05f) settled = 0;
    __syncthreads();
    if (r % 3 == 2) continue;
    a[t] = v;
    __syncthreads();
    if (settled) break;
    __syncthreads();
  }
  if (i < n) y[i] = a[t];
}
void go(const float* x, float* y, int n, int rounds) { relax<<<(n + 127) / 128, 128>>>(x, y, n, rounds); }
