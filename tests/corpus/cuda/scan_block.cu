#include <cuda_runtime.h>

__global__ void scan_rows(const float* in, float* out, int cols) {
  __shared__ float buffer[2][256];
  const int tid = threadIdx.x;
  const int row = blockIdx.x;
  float carry = 0.0f;

  for (int start = 0; start < cols; start += 256) {
    int i = start + tid;
    int current = 0;
    buffer[0][tid] = i < cols ? in[row * cols + i] : 0.0f;
    __syncthreads();

    for (int offset = 1; offset < 256; offset *= 2) {
      float v = buffer[current][tid];
      if (tid >= offset) v += buffer[current][tid - offset];
      buffer[1 - current][tid] = v;
      current = 1 - current;
      __syncthreads();
    }

    if (i < cols) out[row * cols + i] = buffer[current][tid] + carry;
    carry += buffer[current][255];
    __syncthreads();
  }
}

void inclusive_scan_rows(const float* in, float* out, int rows, int cols) {
  scan_rows<<<rows, 256>>>(in, out, cols);
}
