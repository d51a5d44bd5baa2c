// An optional array that the host leaves out.
__global__ void scale(const float* x, const float* bias, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x; if (i < n) { float v = x[i]; if (bias != nullptr) v += bias[i]; y[i] = v; } }
void go(const float* x, float* y, int n) { scale<<<(n + 63) / 64, 64>>>(x, nullptr, y, n); }
