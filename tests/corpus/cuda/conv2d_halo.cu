#include <cuda_runtime.h>

#define TILE 16
#define HALO 1

// 3 x 3 correlation with zeros outside of the picture. A block loads its tile with a border of one.
__global__ void conv3x3(const float* image, const float* weight, float* out, int height, int width) {
  __shared__ float tile[TILE + 2 * HALO][TILE + 2 * HALO];
  int x0 = blockIdx.x * TILE - HALO;
  int y0 = blockIdx.y * TILE - HALO;

  for (int y = threadIdx.y; y < TILE + 2 * HALO; y += TILE) {
    for (int x = threadIdx.x; x < TILE + 2 * HALO; x += TILE) {
      int gy = y0 + y, gx = x0 + x;
      bool inside = gy >= 0 && gy < height && gx >= 0 && gx < width;
      tile[y][x] = inside ? image[gy * width + gx] : 0.0f;
    }
  }
  __syncthreads();

  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < width && y < height) {
    float sum = 0.0f;
    for (int dy = 0; dy < 3; ++dy) {
      for (int dx = 0; dx < 3; ++dx) {
        sum += weight[dy * 3 + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
      }
    }
    out[y * width + x] = sum;
  }
}

void filter_image(const float* h_image, const float* h_weight, float* h_out, int height, int width) {
  float *d_image, *d_weight, *d_out;
  size_t bytes = sizeof(float) * height * width;
  cudaMalloc(&d_image, bytes);
  cudaMalloc(&d_weight, 9 * sizeof(float));
  cudaMalloc(&d_out, bytes);
  cudaMemcpy(d_image, h_image, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_weight, h_weight, 9 * sizeof(float), cudaMemcpyHostToDevice);

  dim3 block(TILE, TILE);
  dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
  conv3x3<<<grid, block>>>(d_image, d_weight, d_out, height, width);

  cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost);
  cudaFree(d_image);
  cudaFree(d_weight);
  cudaFree(d_out);
}
