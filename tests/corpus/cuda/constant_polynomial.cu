#include <cuda_runtime.h>

#define DEGREE 5

__constant__ float c_coefficients[DEGREE + 1];

__global__ void horner(const float* x, float* y, int n) {
  int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i < n) {
    float v = x[i];
    float r = c_coefficients[DEGREE];
    for (int k = DEGREE - 1; k >= 0; --k) {
      r = fmaf(r, v, c_coefficients[k]);
    }
    y[i] = r;
  }
}

void evaluate_polynomial(const float* h_coefficients, const float* h_x, float* h_y, int n) {
  float *d_x, *d_y;
  cudaMalloc(&d_x, n * sizeof(float));
  cudaMalloc(&d_y, n * sizeof(float));
  cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(c_coefficients, h_coefficients, (DEGREE + 1) * sizeof(float));

  const int block = 192;
  horner<<<(n - 1) / block + 1, block>>>(d_x, d_y, n);

  cudaMemcpy(h_y, d_y, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_x);
  cudaFree(d_y);
}
