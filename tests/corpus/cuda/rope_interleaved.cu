#include <cassert>

#include <cuda_runtime.h>

__global__ void rope_interleaved(float* out, const float* in, int seq, int heads, int dim, float base) {
  int pair = blockIdx.x * blockDim.x + threadIdx.x;
  int pairs = dim / 2;
  if (pair >= seq * heads * pairs) return;

  int k = pair % pairs;
  int position = pair / (heads * pairs);
  float frequency = powf(base, -2.0f * k / dim);
  float s, c;
  sincosf(position * frequency, &s, &c);

  float2 v = reinterpret_cast<const float2*>(in)[pair];
  float2 r;
  r.x = v.x * c - v.y * s;
  r.y = v.x * s + v.y * c;
  reinterpret_cast<float2*>(out)[pair] = r;
}

void launch_rope_interleaved(float* out, const float* in, int seq, int heads, int dim) {
  assert(dim % 2 == 0);
  int total = seq * heads * (dim / 2);
  int threads = 256;
  rope_interleaved<<<(total + threads - 1) / threads, threads>>>(out, in, seq, heads, dim, 10000.0f);
}
