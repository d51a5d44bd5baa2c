// In place over rounds: each round reads what the last one wrote, in other threads, after a barrier.
__global__ void rounds(float* x, int n, int steps) {
  int i = threadIdx.x;
  for (int s = 0; s < steps; ++s) {
    float v = i < n ? x[i] : 0.f, w = i + 1 < n ? x[i + 1] : 1.f;
    __syncthreads();
    if (i < n && v > 0.f) x[i] = 0.5f * v + 0.25f * w;
    __syncthreads();
  }
}
void go(float* x, int n, int steps) { if (n > 256) return; rounds<<<1, 256>>>(x, n, steps); }
