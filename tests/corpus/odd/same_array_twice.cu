// One kernel reads an array in one place and writes it in another, given twice.
__global__ void halves(const float* a, float* c, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) c[i] = a[i] * 2.f + c[i]; }
void go(float* x, int n) { halves<<<(n + 63) / 64, 64>>>(x, x + n, n); halves<<<(n + 63) / 64, 64>>>(x + n, x, n); }
