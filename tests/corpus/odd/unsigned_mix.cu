// Signed and unsigned indices in comparisons and differences.
__global__ void window(const float* x, float* y, int n, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0.f;
  int count = 0;
  for (int d = -radius; d <= radius; ++d) {
    unsigned j = i + d;               // wraps for negative
    if (j < (unsigned)n) { s += x[j]; ++count; }
  }
  unsigned lane = threadIdx.x % 32u;
  int back = lane - 16;               // negative for small lanes
  s += back < 0 ? 1.f : 2.f;
  s += (int)(lane - 16) / 4;          // signed division of a negative
  s += (lane - 16) / 4u > 100u ? 10.f : 0.f;
  long long wide = (long long)lane - 16;
  s += wide >> 2;
  y[i] = s / count;
}
void go(const float* x, float* y, int n, int radius) { window<<<(n + 127) / 128, 128>>>(x, y, n, radius); }
