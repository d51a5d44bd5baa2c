#include <cuda_runtime.h>

// A block for each query; the scores of one query lie in shared memory.
__global__ void attention_naive(const float* __restrict__ q,  // [batch, heads, seq, dim]
                                const float* __restrict__ k,  // [batch, heads, seq, dim]
                                const float* __restrict__ v,  // [batch, heads, seq, dim]
                                float* __restrict__ out,      // [batch, heads, seq, dim]
                                int seq, int dim, float scale) {
  extern __shared__ float scores[];
  __shared__ float reduce[64];
  const int query = blockIdx.x;
  const size_t head = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
  const float* q_row = q + (head * seq + query) * dim;
  const float* k_head = k + head * seq * dim;
  const float* v_head = v + head * seq * dim;

  float largest = -INFINITY;
  for (int j = threadIdx.x; j < seq; j += 64) {
    float s = 0.f;
    for (int d = 0; d < dim; ++d) s += q_row[d] * k_head[j * dim + d];
    s = j <= query ? s * scale : -INFINITY;
    scores[j] = s;
    largest = fmaxf(largest, s);
  }
  reduce[threadIdx.x] = largest;
  __syncthreads();
  for (int s = 32; s > 0; s >>= 1) {
    if (threadIdx.x < s) reduce[threadIdx.x] = fmaxf(reduce[threadIdx.x], reduce[threadIdx.x + s]);
    __syncthreads();
  }
  largest = reduce[0];
  __syncthreads();

  float sum = 0.f;
  for (int j = threadIdx.x; j < seq; j += 64) {
    scores[j] = expf(scores[j] - largest);
    sum += scores[j];
  }
  reduce[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 32; s > 0; s >>= 1) {
    if (threadIdx.x < s) reduce[threadIdx.x] += reduce[threadIdx.x + s];
    __syncthreads();
  }

  for (int d = threadIdx.x; d < dim; d += 64) {
    float o = 0.f;
    for (int j = 0; j <= query; ++j) o += scores[j] * v_head[j * dim + d];
    out[(head * seq + query) * dim + d] = o / reduce[0];
  }
}

void attention_forward(const float* q, const float* k, const float* v, float* out, int batch, int heads, int seq,
                       int dim, float scale) {
  if (seq > 4096) return;
  dim3 grid(seq, heads, batch);
  attention_naive<<<grid, 64, seq * sizeof(float)>>>(q, k, v, out, seq, dim, scale);
}
