#include <cuda_runtime.h>

__global__ void transpose(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    out[x * height + y] = in[y * width + x];
  }
}

void launch_transpose(float* out, const float* in, int width, int height) {
  dim3 threads(16, 16);
  dim3 blocks((width + 15) / 16, (height + 15) / 16);
  transpose<<<blocks, threads>>>(out, in, width, height);
}
