// Switch with fallthrough, comma operators, shadowed names, short circuits with side effects.
__device__ bool bump(int& n) { n += 3; return n > 5; }
__global__ void odd(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = 0.f, b = 0.f;
  int steps = i % 5;
  switch (steps) {
    case 4: a += 4.f;
    case 3: a += 3.f; b -= 1.f;
    case 2: a += 2.f; break;
    case 1: { float b = 7.f; a += b; }
    default: b += 0.5f;
  }
  int tries = i % 4;
  bool late = (i & 1) || bump(tries);
  bool both = (i & 2) && bump(tries);
  if (i % 3) a += 10.f; else b += 10.f;
  int p = 0, q = 0;
  for (p = 0, q = 5; p < q; ++p, --q) a += p * q;
  float c = a * b;
  y[i] = a + 100.f * b + c + tries + (late ? 0.25f : 0.f) + (both ? 0.125f : 0.f) + x[i];
}
void go(const float* x, float* y, int n) { odd<<<(n + 63) / 64, 64>>>(x, y, n); }
