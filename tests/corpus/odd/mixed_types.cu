// Minimum, maximum, shifts, quotients and conversions over mixed types.
__global__ void types(const float* x, const unsigned* u, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  unsigned a = u[i]; int b = -3; char c = -1; unsigned char d = 200;
  float r = min(a, 7u) + max(b, 2) + fmaxf(x[i], -1) + abs(b) + (c < 0 ? 0.5f : 0.25f);
  r += max((int)a, b) + fminf(d, 100.f) + (float)(a >> 31) + (b >> 1) + (unsigned)b / 2147483648u;
  r += a / 10 % 3 + (a & 1 ? 1 : -1) + !a + ~b + (x[i] != 0.f) + (int)x[i] + (int)(-2.7f) + truncf(-2.7f);
  r += fmodf(x[i] * 10.f, 3.f) + copysignf(1.f, x[i]) + rintf(2.5f) + roundf(2.5f) + __float2int_rn(3.5f) + lrintf(2.5f);
  bool flag = a; r += flag + powf(fabsf(x[i]), 0.5f) + exp2f(-1) + sizeof(a);
  y[i] = r;
}
void go(const float* x, const unsigned* u, float* y, int n) { types<<<(n + 63) / 64, 64>>>(x, u, y, n); }
