// Chunks of a scan carried through shared memory, with a running total that every thread adds to alike.
__global__ void long_scan(const int* x, int* y, int n) {
  __shared__ int part[128];
  int carry = 0;
  for (int base = 0; base < n; base += 128) {
    int i = base + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < 128; d <<= 1) {
      int add = threadIdx.x >= d ? part[threadIdx.x - d] : 0;
      __syncthreads();
      part[threadIdx.x] += add;
      __syncthreads();
    }
    if (i < n) y[i] = carry + part[threadIdx.x];
    carry += part[127];
    __syncthreads();
  }
}
void go(const int* x, int* y, int n) { long_scan<<<1, 128>>>(x, y, n); }
