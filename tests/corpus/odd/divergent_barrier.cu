// in-place with a hazard across threads: a shift
__global__ void shift(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) { float v = x[i + 1]; __syncthreads(); x[i] = v; }
}
void go(float* x, int n) { shift<<<(n + 255) / 256, 256>>>(x, n); }
