#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

template <typename T>
__global__ void batched_transpose(const T* __restrict__ in,  // [batch, rows, cols]
                                  T* __restrict__ out,       // [batch, cols, rows]
                                  int rows, int cols) {
  __shared__ T tile[32][33];
  const size_t base = static_cast<size_t>(blockIdx.z) * rows * cols;

  int c = blockIdx.x * 32 + threadIdx.x;
  int r = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int k = 0; k < 32; k += 8) {
    if (r + k < rows && c < cols) tile[threadIdx.y + k][threadIdx.x] = in[base + (r + k) * cols + c];
  }
  __syncthreads();

  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int k = 0; k < 32; k += 8) {
    if (r + k < cols && c < rows) out[base + (r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
  }
}

void batched_transpose_half(const __half* in, __half* out, int batch, int rows, int cols, cudaStream_t stream) {
  dim3 grid(CEIL_DIV(cols, 32), CEIL_DIV(rows, 32), batch);
  batched_transpose<__half><<<grid, dim3(32, 8, 1), 0, stream>>>(in, out, rows, cols);
}
