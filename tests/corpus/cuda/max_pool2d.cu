#include <cuda_runtime.h>

// Windows of 3 x 3, a stride of 2, a border of 1 that never wins.
__global__ void max_pool2d(const float* __restrict__ x,  // [channels, height, width]
                           float* __restrict__ y,        // [channels, (height + 1) / 2, (width + 1) / 2]
                           int height, int width, int out_height, int out_width) {
  const int ox = blockIdx.x * blockDim.x + threadIdx.x;
  const int oy = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (ox >= out_width || oy >= out_height) return;

  const float* plane = x + channel * height * width;
  float best = -INFINITY;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int iy = 2 * oy + dy;
      const int ix = 2 * ox + dx;
      if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
      best = fmaxf(best, plane[iy * width + ix]);
    }
  }
  y[(channel * out_height + oy) * out_width + ox] = best;
}

void max_pool2d_forward(const float* x, float* y, int channels, int height, int width) {
  const int out_height = (height + 1) / 2;
  const int out_width = (width + 1) / 2;
  dim3 block(16, 8, 1);
  dim3 grid((out_width + block.x - 1) / block.x, (out_height + block.y - 1) / block.y, channels);
  max_pool2d<<<grid, block>>>(x, y, height, width, out_height, out_width);
}
