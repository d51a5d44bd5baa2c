// Constants of type double in float arithmetic.
__global__ void poly(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  float r = 0.5 * v * (1.0 + tanhf(0.7978845608 * (v + 0.044715 * v * v * v)));
  r += 1e-5;
  int k = v * 2.5;
  y[i] = r / 3.0 + k;
}
void go(const float* x, float* y, int n) { poly<<<(n + 255) / 256, 256>>>(x, y, n); }
